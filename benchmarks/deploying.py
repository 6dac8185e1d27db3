"""A deploy of many independent things takes hardly longer than the cloud makes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks import peers
from benchmarks.jobs import Job, Stage
from benchmarks.peers import NotHere, Spent, Terraform
from benchmarks.result import Bar, Result
from benchmarks.rig import Canned, bench
from benchmarks.stock import REGION, VPC, Declared
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.model.status import Status

COUNT: Final = 500
LATENCY: Final = 0.05
SERIAL_CALLS: Final = 2
"""The list that shows that they are not there, and the one that confirms that they are."""
MOST: Final = 1.3
HELD_AT: Final = 10
"""The concurrency the bar is held at; the agent's default is reported beside it, where the machine is the limit."""
ROUNDS: Final = 5
OF_ANSIBLE: Final = 20


def ideal(count: int, concurrency: int, latency: float) -> float:
    """What the cloud alone takes: the calls that must be serial, and the creations in full ranks."""
    return (SERIAL_CALLS + ceil(count / concurrency)) * latency


def deploy_seconds(canned: Canned, count: int, concurrency: int, latency: float) -> float:
    """The wall time of the cycle that deploys, in an agent that has been at work before."""
    canned.stock([], latency)
    work = Declared(VPC, count + 1).work(settled=False)
    first, *others = work.components
    with bench(work.model_copy(update={"components": [first]}), concurrency=concurrency) as made:
        made.settle()  # its clients and connections exist from here on, as those of a running agent do
        made.claim(work.model_copy(update={"components": others, "full": False, "version": 2}))
        started = time.perf_counter()
        made.cycle()
        seconds = time.perf_counter() - started
        statuses = {tracked.memory.status for tracked in made.held.work.tracked.values()}
        assert statuses == {Status.ACTIVE}, f"not deployed in one cycle: {statuses}"
        return seconds


def bare_seconds(canned: Canned, count: int, concurrency: int, latency: float) -> float:
    """The same calls, made by boto3 and a pool of threads and nothing else: what this machine can do right now."""
    import boto3
    from botocore.config import Config

    canned.stock([], latency)
    client: Any = boto3.client("ec2", region_name=REGION, config=Config(max_pool_connections=concurrency))
    tags = [{"Key": key, "Value": "benchmark"} for key in ("Name", "managed-by", "fractal-cloud-owner")]
    asked = {"CidrBlock": "10.0.0.0/24", "TagSpecifications": [{"ResourceType": "vpc", "Tags": tags}]}
    client.describe_vpcs(MaxResults=1000)
    with ThreadPoolExecutor(concurrency) as pool:
        started = time.perf_counter()
        client.describe_vpcs(MaxResults=1000)
        list(pool.map(lambda _: client.create_vpc(**asked), range(count)))
        client.describe_vpcs(MaxResults=1000)
        return time.perf_counter() - started


def measure(stage: Stage, count: int = COUNT, rounds: int = ROUNDS) -> Iterator[Result]:
    """The best of a few deploys, each beside a bare one: wall time shows everything else that runs on the machine."""
    default = AgentSettings().concurrency
    yield from _beside_bare(stage, count, HELD_AT, MOST, rounds)
    yield from _beside_bare(stage, count, default, None, rounds)
    yield _peer(peers.terraform_subject(), count, default, _terraform)
    yield _peer(f"Ansible ({peers.ANSIBLE}, amazon.aws)", OF_ANSIBLE, default, partial(_ansible, stage))


def _beside_bare(stage: Stage, count: int, concurrency: int, most: float | None, rounds: int) -> Iterator[Result]:
    best = ideal(count, concurrency, LATENCY)
    ours: list[float] = []
    bare: list[float] = []
    while len(ours) < rounds and (not ours or min(ours) > MOST * best):
        ours.append(deploy_seconds(stage.canned, count, concurrency, LATENCY))
        bare.append(bare_seconds(stage.canned, count, concurrency, LATENCY))
    note = f"ideal: {SERIAL_CALLS} serial calls + ⌈{count}/{concurrency}⌉ ranks, {LATENCY * 1000:g} ms each"
    bar = Bar("wall time by the ideal", min(ours), best, "s", most=most)
    yield Result("deploying", f"agent, {concurrency} calls at once", count, {"wall s": min(ours)}, (bar,), note)
    reported = Bar("wall time by the ideal", min(bare), best, "s")
    subject = f"boto3 and {concurrency} threads alone"
    yield Result("deploying", subject, count, {"wall s": min(bare)}, (reported,), "what the machine could do meanwhile")


def _peer(subject: str, count: int, concurrency: int, run: Callable[[Path, int, int], tuple[Spent, str]]) -> Result:
    with TemporaryDirectory() as folder:
        try:
            spent, note = run(Path(folder), count, concurrency)
        except NotHere as reason:
            return Result("deploying", subject, count, note=str(reason))
    bar = Bar("wall time by the ideal", spent.wall, ideal(count, concurrency, LATENCY), "s")
    return Result("deploying", subject, count, spent.figures(), (bar,), note)


def _terraform(folder: Path, count: int, concurrency: int) -> tuple[Spent, str]:
    spent = Terraform(folder, count, latency=LATENCY).create(concurrency)
    return spent, f"-parallelism={concurrency}; a `sleep` of 50 ms in the place of the call"


def _ansible(stage: Stage, folder: Path, count: int, concurrency: int) -> tuple[Spent, str]:
    del concurrency
    stage.canned.stock([], LATENCY)
    return peers.ansible(folder, count, check=False), "one module run after the other"


JOBS: Final = (Job("deploying", "wall time of a deploy of independent VPCs at 50 ms a call", measure, 50),)
