"""What is peculiar to clusters: answers spell otherwise than requests, and every write repeats the pools whole."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.offers.aruba.kaas import ArubaKaas, ArubaKaasOffer
from tests.offers.aruba.examples import EXAMPLES, POOL
from tests.offers.aruba.worlds import ArubaWorld

SCALED = {**POOL, "autoscaling": True, "minCount": 1, "maxCount": 5}
REQUESTED = {name: POOL[name] for name in ("name", "nodes", "instance", "dataCenter")}


def declared(**parameters: Any) -> list[dict[str, Any]]:
    *parents, last = EXAMPLES[ArubaKaas].components
    return [*parents, {**last, "parameters": {**last["parameters"], **parameters}}]


def answered(pools: dict[str, Any], **cidrs: Any) -> dict[str, Any]:
    properties = {
        "vpc": {"uri": "/vpc"},
        "subnet": {"uri": "/subnet"},
        "securityGroup": {"name": "nodes"},
        "kubernetesVersion": {"value": "1.33.2", "recommended": True},
        "ha": None,
    }
    return {"properties": {**properties, **pools, **cidrs}}


def properties_of(world: ArubaWorld, uri: str) -> dict[str, Any]:
    item = world.aruba.get(uri)
    assert item is not None
    found: dict[str, Any] = item["properties"]
    return found


OBJECTS = {**REQUESTED, "instance": {"name": "K2A4", "cpu": "2"}, "dataCenter": {"name": "ITBG-1"}, "minCount": None}
SPELLINGS = [
    answered({"nodesPool": [OBJECTS]}, nodecidr={"address": "10.1.0.0/16"}, podcidr={"address": "10.2.0.0/16"}),
    answered({"nodePools": [OBJECTS]}, nodecidr={"address": "10.1.0.0/16"}, podcidr={"address": "10.2.0.0/16"}),
    answered({"nodePools": [REQUESTED]}, nodeCidr={"address": "10.1.0.0/16"}, podCidr="10.2.0.0/16"),
]


@pytest.mark.rule("S0", "G3")
@pytest.mark.parametrize("item", SPELLINGS)
def test_every_spelling_of_an_answer_is_read_as_the_same(item: dict[str, Any]) -> None:
    actual = ArubaKaasOffer().actual(item)
    assert (actual["nodeCidr"], actual["podCidr"]) == ("10.1.0.0/16", "10.2.0.0/16")
    assert actual["nodePools"] == [{**REQUESTED, "autoscaling": False}]


@pytest.mark.rule("G3", "S12")
def test_the_nodes_of_a_scaled_pool_are_no_drift_and_no_write_resets_them(world: ArubaWorld) -> None:
    world.deploy("ls-a", *declared(nodePools=[SCALED]))
    world.survive()
    assert world.status("ls-a", "cluster") == "Active", world.component("ls-a", "cluster")
    uri = world.component("ls-a", "cluster")["resourceId"]
    world.aruba.put(uri, nodePools=[{**SCALED, "nodes": 4}], kubernetesVersion={"value": "1.32.3"}, ha=False)
    world.survive()
    assert world.drift("ls-a", "cluster") is None

    world.deploy("ls-a", *declared(nodePools=[{**SCALED, "maxCount": 8}], kubernetesVersion="1.33.2"))
    world.survive()
    [pool] = properties_of(world, uri)["nodesPool"]
    assert (pool["nodes"], pool["autoscaling"], pool["minCount"], pool["maxCount"]) == (4, True, 1, 8)
    world.assert_safe()


@pytest.mark.rule("G3")
def test_a_pool_that_says_that_it_is_not_scaled_is_as_one_that_says_nothing(world: ArubaWorld) -> None:
    for pool in (POOL, {**POOL, "autoscaling": False}):
        world.deploy("ls-a", *declared(nodePools=[pool]))
        world.survive()
        assert world.status("ls-a", "cluster") == "Active"
        assert world.drift("ls-a", "cluster") is None


@pytest.mark.rule("T1", "T10", "G7")
def test_a_tag_write_repeats_the_whole_pool_and_what_people_set_beside_it(world: ArubaWorld) -> None:
    world.deploy("ls-a", *declared(nodePools=[SCALED]))
    world.survive()
    uri = world.component("ls-a", "cluster")["resourceId"]
    version, storage = {"value": "1.32.3"}, {"maxCumulativeVolumeSize": 500}
    tags = ["managed-by:fractal-cloud", "fractal-cloud:reconcile", "fractal-cloud-owner:ls-a"]
    world.aruba.put(uri, tags=tags, nodePools=[SCALED], kubernetesVersion=version, ha=False, storage=storage)
    world.survive()
    assert "fractal-cloud:reconcile" not in world.aruba.tags(uri)
    properties = properties_of(world, uri)
    [pool] = properties["nodesPool"]
    assert (pool["autoscaling"], pool["minCount"], pool["maxCount"]) == (True, 1, 5)
    assert properties["storage"] == storage
    world.assert_safe()
