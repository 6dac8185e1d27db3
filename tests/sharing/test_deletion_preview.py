"""Before a LiveSystem is deleted: the warning with true numbers, the preview, and the list of who shares what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sharing.aws_state import is_there
from tests.world import World, security_group, subnet, vpc

ONE_BY_ONE = (
    "This LiveSystem owns 1 resource that is imported by 1 other LiveSystem. "
    "Deleting will cause that LiveSystem to report Missing on that reference."
)
ONE_BY_TWO = (
    "This LiveSystem owns 1 resource that is imported by 2 other LiveSystems. "
    "Deleting will cause those LiveSystems to report Missing on that reference."
)
TWO_BY_ONE = (
    "This LiveSystem owns 2 resources that are imported by 1 other LiveSystem. "
    "Deleting will cause that LiveSystem to report Missing on those references."
)
THREE_BY_TWO = (
    "This LiveSystem owns 3 resources that are imported by 2 other LiveSystems. "
    "Deleting will cause those LiveSystems to report Missing on those references."
)


def _preview(world: World, live_system: str = "ls-a") -> dict[str, Any]:
    response = world.api.delete(f"/livesystems/{live_system}", params={"dryRun": "true"})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def _endings(body: dict[str, Any]) -> dict[str, str]:
    return {item["componentId"]: item["ending"] for item in body["preview"]["components"]}


@pytest.mark.rule("O7")
@pytest.mark.parametrize(
    ("importers", "said"),
    [
        ({}, []),
        ({"ls-b": 1}, [ONE_BY_ONE]),
        ({"ls-b": 1, "ls-c": 1}, [ONE_BY_TWO]),
        ({"ls-b": 2}, [TWO_BY_ONE]),
        ({"ls-b": 3, "ls-c": 2}, [THREE_BY_TWO]),
    ],
    ids=["nobody", "one by one", "one by two", "two by one", "three by two"],
)
def test_a_deletion_warns_with_the_true_numbers_and_goes_through(
    world: World, importers: dict[str, int], said: list[str]
) -> None:
    everything = [vpc(), subnet(), security_group()]
    world.deploy("ls-a", *everything)
    world.settle()
    for live_system, many in importers.items():
        world.deploy(live_system, *everything[:many])
    world.settle()
    assert _preview(world)["warnings"] == said
    assert world.delete("ls-a")["warnings"] == said
    world.settle()
    assert world.api.get("/livesystems/ls-a").status_code == 404
    for live_system in importers:
        assert world.status(live_system, "net") == "Missing"


@pytest.mark.rule("O7", "O10")
def test_what_would_be_left_in_the_cloud_is_not_warned_about(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    world.deploy("ls-b", vpc())
    world.settle()
    world.person.break_glass(world.output("ls-a", "net", "vpcId"))
    world.cycle()
    assert _preview(world)["warnings"] == []
    assert _preview(world, "ls-b")["warnings"] == [], "an importer's end takes nothing from anybody"


@pytest.mark.rule("O14")
def test_a_preview_says_what_goes_what_is_left_what_is_dropped_and_touches_nothing(world: World) -> None:
    world.deploy("ls-b", vpc("shared", cidrBlock="10.9.0.0/16"))
    world.settle()
    world.deploy(
        "ls-a",
        vpc(),
        subnet(),
        vpc("shared", cidrBlock="10.9.0.0/16"),
        vpc("mine", cidrBlock="10.2.0.0/16"),
        {**vpc("never", cidrBlock="10.3.0.0/16"), "importOnly": True},
    )
    world.settle()
    world.deploy("ls-c", vpc("mine", cidrBlock="10.2.0.0/16"))
    world.settle()
    world.person.break_glass(world.output("ls-a", "subnet", "subnetId"))
    world.cycle()
    calls = world.sandbox.aws.calls.count(actor="agent", writes_only=True)
    body = _preview(world)
    assert _endings(body) == {
        "net": "left",
        "subnet": "left",
        "shared": "dropped",
        "mine": "deleted",
        "never": "absent",
    }
    assert body["preview"]["summary"] == {"deleted": 1, "left": 2, "dropped": 1, "absent": 1, "unknown": 0}
    by_id = {item["componentId"]: item for item in body["preview"]["components"]}
    assert by_id["mine"]["importers"] == ["ls-c"]
    assert by_id["net"]["message"] == "'subnet' is left in the cloud and depends on it"
    world.cycle()
    assert world.sandbox.aws.calls.count(actor="agent", writes_only=True) == calls
    assert world.status("ls-a", "mine") == "Active"
    assert is_there(world, by_id["mine"]["resourceId"])


@pytest.mark.rule("O14", "O10")
def test_a_deletion_keeps_what_its_preview_promised(world: World) -> None:
    world.deploy("ls-a", vpc(), subnet(), security_group())
    world.settle()
    world.person.break_glass(world.output("ls-a", "group", "groupId"))
    world.cycle()
    previewed = _preview(world)["preview"]["components"]
    world.delete("ls-a")
    world.settle()
    for item in previewed:
        assert is_there(world, item["resourceId"]) == (item["ending"] == "left"), item


@pytest.mark.rule("O13")
def test_every_resource_is_listed_with_its_owner_and_all_its_importers(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    world.deploy("ls-b", vpc("their-net", name="net"), subnet("their-subnet", vpc="their-net"))
    world.deploy("ls-c", vpc())
    world.settle()
    items = world.api.get("/resources").json()["items"]
    listed = {item["name"]: (item["owner"], item["importers"], item["resourceId"]) for item in items}
    assert listed == {
        "net": ("ls-a", ["ls-b", "ls-c"], world.output("ls-a", "net", "vpcId")),
        "net/their-subnet": ("ls-b", [], world.output("ls-b", "their-subnet", "subnetId")),
    }
    key = next(item["key"] for item in items if item["name"] == "net")
    one = world.api.get(f"/resources/{key}").json()
    declared = {(d["liveSystemId"], d["componentId"], d["status"]) for d in one["declaredBy"]}
    assert declared == {
        ("ls-a", "net", "Active"),
        ("ls-b", "their-net", "ExternallyManaged"),
        ("ls-c", "net", "ExternallyManaged"),
    }


@pytest.mark.rule("O13", "O8")
def test_the_list_follows_an_owner_tag_that_was_edited(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    world.deploy("ls-b", vpc())
    world.settle()
    world.person.tag(world.output("ls-a", "net", "vpcId"), fractal_cloud_owner="ls-b")
    world.settle()
    (item,) = world.api.get("/resources").json()["items"]
    assert (item["owner"], item["importers"]) == ("ls-b", ["ls-a"])
