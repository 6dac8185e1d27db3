"""What is measured in a process of its own: an agent with many scopes at rest.

``python -m benchmarks.scopes FILE FIRST LAST`` takes the work of one scope from a file, once for each number of a
region, and then answers each line of input with one of JSON: what a round of one cycle of every scope took, eight at a
time as in an agent. Answers are put in below the SDK, so that no server takes part: what is measured is the agent.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import pages
from benchmarks.rig import Bench
from benchmarks.stock import REGION, VPC, Declared
from fractal_cloud.agent.main import SCOPES_AT_ONCE
from fractal_cloud.model.wire import ScopeWork
from fractal_cloud.offers.aws.cloud import AwsSession
from fractal_cloud.offers.offer import Session


class Raw:
    """An answer as urllib3 would hand it out."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> Iterator[bytes]:
        """All of it."""
        yield self._body


def answered(count: int) -> Session:
    """A session whose lists of VPCs are answered without leaving the process."""
    from botocore.awsrequest import AWSResponse

    lot = Declared(VPC, count).lot
    items = [pages.RENDER[VPC](lot, number) for number in range(count)]
    body = pages.ec2_page("DescribeVpcs", "vpcSet", items, "").encode()

    def answer(request: Any, **_: Any) -> Any:
        return AWSResponse(request.url, 200, {"Content-Length": str(len(body))}, Raw(body))  # type: ignore[arg-type]

    session = AwsSession()
    session._session.events.register("before-send.ec2.DescribeVpcs", answer)  # noqa: SLF001  # there is no other way in
    return session


def region(number: int) -> str:
    """A region of its own for every number, as long as the one the work was made for."""
    return f"x{number:07}"[: len(REGION)]


def main() -> None:
    """Get ready, then follow commands until the input ends."""
    text, first, last = Path(sys.argv[1]).read_text(), int(sys.argv[2]), int(sys.argv[3])
    count = len(ScopeWork.model_validate_json(text).components)
    session = answered(count)
    benches: list[Bench] = []
    for number in range(first, last):
        work = ScopeWork.model_validate_json(text.replace(REGION, region(number)))
        made = Bench(work, session=session, beside=benches[0] if benches else None)
        made.settle()
        benches.append(made)
    print("{}", flush=True)
    with ThreadPoolExecutor(SCOPES_AT_ONCE) as pool:
        for _ in sys.stdin:
            cpu, wall = time.process_time(), time.perf_counter()
            assert all(result.settled and not result.changes for result in pool.map(Bench.cycle, benches))
            spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
            print(json.dumps({**spent, "peak": peak, "resident": resident}), flush=True)


if __name__ == "__main__":
    main()
