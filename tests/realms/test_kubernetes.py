"""Another cluster behind the address of the one that is meant (S26): nothing is made there, nothing counts as gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.sandbox import Sandbox
from tests.offers.kubernetes.declaring import service, workload
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

TEN = [*(workload(f"web-{number}") for number in range(5)), *(service(f"front-{n}", f"web-{n}") for n in range(5))]


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as made:
        yield made


def objects(world: KubernetesWorld) -> list[str]:
    found = [*world.cloud.objects("deployments", "default"), *world.cloud.objects("services", "default")]
    return sorted(one["metadata"]["name"] for one in found if one["metadata"]["name"] != "kubernetes")


def components(world: KubernetesWorld) -> list[dict[str, Any]]:
    return [world.component("ls-a", part["id"]) for part in TEN]


@pytest.mark.rule("S26", "S0")
def test_a_fresh_cluster_behind_the_same_address_is_not_filled(world: KubernetesWorld) -> None:
    world.deploy("ls-a", *TEN)
    world.settle()
    assert len(objects(world)) == 10
    before = components(world)
    world.cloud.replace()
    world.cycle(4)
    assert objects(world) == []
    after = components(world)
    assert [one["status"] for one in after] == ["Active"] * 10, "what is unreadable is neither absent nor present"
    assert [one["resourceId"] for one in after] == [one["resourceId"] for one in before]
    assert all(" is now " in one["message"] and "it was" in one["message"] for one in after), after[0]["message"]
    assert not [event for event in world.events("ls-a") if event["kind"] == "ResourceLost"]
