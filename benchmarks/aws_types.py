"""An idle cycle over queues declared as `AWS::SQS::Queue`, beside boto3 asking Cloud Control for each of them.

`python -m benchmarks.aws_types [COUNT]` prints calls and CPU seconds of both, against the sandbox, whose threads are
not counted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import boto3

from fractal_cloud.model.identity import Scope
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import stamp
from fractal_cloud.offers.aws.cloud import Aws, AwsSession
from fractal_cloud.offers.call_context import CallCount, counting
from fractal_cloud.offers.offer import AnyOffer, DeclaredResource, Query, Wanted
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.seen_pages import SeenPages
from fractal_sandbox import Sandbox, agent_env

QUEUE: Final = "AWS::SQS::Queue"
REGION: Final = "eu-west-1"
LIVE_SYSTEM: Final = "bench"
SWEPT: Final = 100
CYCLES: Final = 3


class Idle:
    """Queues that are declared and as declared, and what the last cycle saw of them."""

    def __init__(self, cloud: Aws, count: int) -> None:
        self.cloud = cloud
        self.offer: AnyOffer = installed("aws")[QUEUE]
        self.declared: list[DeclaredResource] = []
        self.seen: dict[str, Sighting] = {}
        self.pages: Any = {}
        self._turn = 0
        for number in range(count):
            self._make(f"jobs-{number}")

    def _make(self, name: str) -> None:
        values = {"region": REGION, "QueueName": name, "DelaySeconds": 5}
        component = self.offer.component.from_parameters(name, values)
        made = self.offer.create(self.cloud, Wanted(component, LIVE_SYSTEM, None, f"bench-{name}"), stamp(LIVE_SYSTEM))
        self.declared.append(DeclaredResource(name, made.resource_id, None, values))

    def cycle(self) -> None:
        """List everything, and sweep as many as a cycle may."""
        recall = SeenPages(self.seen, self.pages)
        names = frozenset(one.name for one in self.declared)
        query = Query(names, seen_pages=recall, live_systems=frozenset({LIVE_SYSTEM}), declared=tuple(self.declared))
        self.seen = {
            one.resource_id: one for one in self.offer.sightings(self.cloud, query) if isinstance(one, Sighting)
        }
        self.pages = recall.pages
        assert len(self.seen) == len(self.declared)
        ids = [one.resource_id or "" for one in self.declared]
        for identifier in (ids[self._turn :] + ids[: self._turn])[:SWEPT]:
            self.offer.sweep(self.cloud, self.seen[identifier], ("DelaySeconds",))
        self._turn = (self._turn + SWEPT) % max(len(ids), 1)


def measured(run: Callable[[], None]) -> tuple[float, float]:
    """CPU seconds of this thread (the sandbox has others), and seconds."""
    cpu, clock = time.thread_time(), time.perf_counter()
    run()
    return time.thread_time() - cpu, time.perf_counter() - clock


def main(count: int) -> None:
    """Print both, one line each."""
    with Sandbox(port=0) as sandbox:
        os.environ.update(agent_env(sandbox.url))
        session = AwsSession()
        idle = Idle(session.at(Scope("aws", session.realms()[""], REGION)), count)
        idle.cycle()  # everything is read whole once
        calls = CallCount()
        with counting(calls):
            ours = [measured(idle.cycle) for _ in range(CYCLES)]
        client = boto3.client("cloudcontrol", region_name=REGION)
        ids = [one.resource_id for one in idle.declared]

        def one_by_one() -> None:
            for identifier in ids:
                client.get_resource(TypeName=QUEUE, Identifier=str(identifier))

        theirs = measured(one_by_one)
    best = min(ours)
    print(f"{count} queues, idle cycle: {calls.calls // CYCLES} calls, {best[0]:.2f} s CPU, {best[1]:.2f} s")
    print(f"{count} queues, boto3 get_resource each: {len(ids)} calls, {theirs[0]:.2f} s CPU, {theirs[1]:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
