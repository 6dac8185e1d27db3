"""Sightings are cheap: ten thousand VPCs are read in every cycle, and all of them are kept."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

from fractal_cloud.offers.aws.vpc import _sightings
from tests.offers.aws.conftest import World

COUNT = 2_000


def _answers() -> Iterator[dict[str, Any]]:
    """As the SDK parses them: every text is an object of its own."""
    for number in range(COUNT):
        tags = {"Name": f"vpc-{number}", "managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a", "stage": "prod"}
        yield {
            "VpcId": f"vpc-{number:017x}",
            "State": "".join(["avail", "able"]),
            "CidrBlock": f"10.{number % 256}.0.0/16",
            "InstanceTenancy": "".join(["def", "ault"]),
            "IsDefault": False,
            "Tags": [{"Key": "".join([key]), "Value": "".join([value])} for key, value in tags.items()],
        }


def test_a_sighting_of_a_vpc_is_small(world: World) -> None:
    cloud = world.cloud()
    list(_sightings(cloud, _answers()))
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    kept = list(_sightings(cloud, _answers()))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (after - before) / len(kept) < 1_200


def test_a_sighting_of_a_vpc_is_quick(world: World) -> None:
    cloud = world.cloud()
    answers = list(_answers())
    best = min(_seconds(cloud, answers) for _ in range(5))
    assert best / COUNT < 40e-6, "five times what it takes on a quiet machine"


def _seconds(cloud: Any, answers: list[dict[str, Any]]) -> float:
    started = time.perf_counter()
    list(_sightings(cloud, answers))
    return time.perf_counter() - started


def test_equal_texts_are_one_object(world: World) -> None:
    first, second, *_ = _sightings(world.cloud(), _answers())
    assert first.actual["instanceTenancy"] is second.actual["instanceTenancy"]
    assert first.protocol is second.protocol
    assert all(one is other for one, other in zip(first.tags, second.tags, strict=True))
