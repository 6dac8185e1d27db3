"""What is measured in a process of its own: an agent with one scope at rest, or the bare loop it is held against.

``python -m benchmarks.child agent FILE`` takes the scope's work from a file, as an agent gets it over the wire;
``bare`` and ``each`` remember what is there, and list it, or ask for it one by one. Then each line of input is answered
with one of JSON:

    go        run one cycle (or loop); the CPU seconds of this whole process it took, and the seconds that went by
    judge     the same, but every component is judged anew, as after a new declaration
    changed   the same, after something changed in the cloud
    weigh     the memory this process holds after letting go of what it can
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CYCLES_BEFORE = 2


class Child:
    """A child process, seen from its parent; ready when made, unless it is to get ready beside others."""

    def __init__(
        self, *arguments: str, traced: bool = False, module: str = "benchmarks.child", is_awaited: bool = True
    ) -> None:
        options = ["-X", "tracemalloc=1"] if traced else []
        self._process = subprocess.Popen(
            [sys.executable, *options, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if is_awaited:
            self.answer()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, command: str) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self.command(command)
        return self.answer()

    def keep_to(self, core: int) -> None:
        """Let all its threads run on one core only."""
        for thread in Path(f"/proc/{self._process.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {core})

    def command(self, command: str) -> None:
        """Send one command."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Wait for the answer to a command."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a benchmark's child ended with {self._process.wait(10)}: see its output above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Let it end."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait(30)


def child(*arguments: str, traced: bool = False) -> Child:
    """An agent or a loop that ends with the block."""
    return Child(*arguments, traced=traced)


def agent(file: Path) -> Callable[[str], None]:
    """The cycle of an agent that has claimed a scope at rest; if asked to, it judges everything anew."""
    from benchmarks.rig import Bench
    from fractal_cloud.model.wire import ScopeWork

    made = Bench(ScopeWork.model_validate_json(file.read_bytes()))
    made.settle()

    def cycle(command: str) -> None:
        if command == "judge":
            made.held.work.invalidate()
        before = made.control.publications
        made.cycle()
        if command == "changed":
            assert made.control.publications > before, "what a person did is not published"
            return
        assert made.control.publications == before, "a scope at rest publishes"

    return cycle


def bare() -> Callable[[str], None]:
    """The loop anybody would write first: list with boto3's paginator, compare each dictionary with the known one."""
    import boto3

    from benchmarks.stock import REGION

    paginator: Any = boto3.client("ec2", region_name=REGION).get_paginator("describe_vpcs")

    def listed() -> Iterator[dict[str, Any]]:
        for page in paginator.paginate(PaginationConfig={"PageSize": 1000}):
            yield from page["Vpcs"]

    known = {vpc["VpcId"]: vpc for vpc in listed()}

    def loop(command: str) -> None:
        drifted = [vpc for vpc in listed() if known.get(vpc["VpcId"]) != vpc]
        known.update((vpc["VpcId"], vpc) for vpc in drifted)
        assert bool(drifted) == (command == "changed"), "canned pages change only on request"

    return loop


def each() -> Callable[[str], None]:
    """The loop that asks for every one of them by its id."""
    import boto3

    from benchmarks.stock import REGION

    client: Any = boto3.client("ec2", region_name=REGION)
    paginator: Any = client.get_paginator("describe_vpcs")
    found = (vpc for page in paginator.paginate(PaginationConfig={"PageSize": 1000}) for vpc in page["Vpcs"])
    known = {vpc["VpcId"]: vpc for vpc in found}

    def loop(_: str) -> None:
        drifted = [key for key, vpc in known.items() if client.describe_vpcs(VpcIds=[key])["Vpcs"] != [vpc]]
        assert not drifted, "canned pages change only on request"

    return loop


def _weigh() -> dict[str, int]:
    for _ in range(2):
        gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return {"resident": resident, "traced": tracemalloc.get_traced_memory()[0]}


def main() -> None:
    """Get ready, then follow commands until the input ends."""
    what, *files = sys.argv[1:]
    run = agent(Path(files[0])) if what == "agent" else {"bare": bare, "each": each}[what]()
    for _ in range(0 if what == "each" else CYCLES_BEFORE):
        run("go")
    print("{}", flush=True)
    for line in sys.stdin:
        command = line.strip()
        if command == "weigh":
            print(json.dumps(_weigh()), flush=True)
            continue
        cpu, wall = time.process_time(), time.perf_counter()
        run(command)
        spent = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        print(json.dumps(spent), flush=True)


if __name__ == "__main__":
    main()
