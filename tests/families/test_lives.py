"""Components of a family live like all others: made, corrected, taken over by people, handed back and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER
from tests.families import toys
from tests.families.world import World, alarm, queue, world


@pytest.fixture
def toy_world(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


POLICY = {"deadLetterTargetArn": "toy:dead", "maxReceiveCount": 3}


@pytest.mark.rule("S4", "T2")
def test_a_component_of_a_family_is_created_with_its_nested_values_and_tags(toy_world: World) -> None:
    toy_world.deploy(queue(QueueName="orders", RedrivePolicy=POLICY, Entries=[{"Id": "a", "Weight": 1}]), alarm())
    toy_world.settle()
    made = toy_world.cloud.named("orders")
    assert made.tags == {MANAGED_BY: OURS, OWNER: "shop"}
    assert made.actual["RedrivePolicy"] == POLICY
    assert toy_world.status("shop", "jobs") == "Active"
    assert toy_world.fields("jobs")["Arn"] == f"toy:{made.id}"
    assert toy_world.cloud.named("loud").type == toys.ALARM
    assert toy_world.cloud.calls["create"] == 2


@pytest.mark.rule("S12")
def test_what_was_changed_inside_a_value_is_corrected(toy_world: World) -> None:
    toy_world.deploy(queue(QueueName="orders", RedrivePolicy=POLICY))
    toy_world.settle()
    toy_world.cloud.named("orders").actual["RedrivePolicy"] = {**POLICY, "maxReceiveCount": 7}
    toy_world.settle()
    assert toy_world.cloud.named("orders").actual["RedrivePolicy"] == POLICY
    assert toy_world.cloud.calls["update"] == 1


@pytest.mark.rule("G1", "G3", "G7", "S9")
def test_the_glass_is_broken_and_handed_back_by_tags(toy_world: World) -> None:
    toy_world.deploy(queue(QueueName="orders", RedrivePolicy=POLICY))
    toy_world.settle()
    toy_world.cloud.break_glass("orders")
    toy_world.cloud.named("orders").actual["Delay"] = 60
    toy_world.settle()
    assert toy_world.status("shop", "jobs") == "ManualOverride"
    assert toy_world.fields("jobs")["drift"] == {"Delay": {"declared": 5, "actual": 60}}
    assert toy_world.cloud.named("orders").actual["Delay"] == 60
    toy_world.cloud.hand_back("orders")
    toy_world.settle()
    assert toy_world.status("shop", "jobs") == "Active"
    assert toy_world.cloud.named("orders").actual["Delay"] == 5
    assert toy_world.cloud.named("orders").tags == {MANAGED_BY: OURS, OWNER: "shop"}


@pytest.mark.rule("O10", "O17")
def test_it_is_deleted_with_its_live_system(toy_world: World) -> None:
    toy_world.deploy(queue(QueueName="orders"), alarm())
    toy_world.settle()
    toy_world.delete()
    toy_world.settle()
    assert toy_world.cloud.things == {}
    assert toy_world.api.get("/livesystems/shop").status_code == 404


@pytest.mark.rule("C2", "S20")
def test_an_agent_that_starts_anew_serves_them_without_a_write(toy_world: World) -> None:
    toy_world.deploy(queue(QueueName="orders", RedrivePolicy=POLICY), alarm())
    toy_world.settle()
    before = dict(toy_world.cloud.calls)
    toy_world.restart_agent()
    toy_world.settle()
    writes = ("create", "update", "delete", "tag")
    assert {name: toy_world.cloud.calls[name] for name in writes} == {name: before.get(name, 0) for name in writes}
    assert toy_world.status("shop", "jobs") == "Active"


@pytest.mark.rule("O1", "S6")
def test_two_live_systems_share_one(toy_world: World) -> None:
    toy_world.deploy(queue(QueueName="orders"))
    toy_world.settle()
    toy_world.deploy(queue(QueueName="orders", Delay=9), live_system="other")
    toy_world.settle()
    assert toy_world.status("other", "jobs") == "ExternallyManaged"
    assert toy_world.cloud.named("orders").actual["Delay"] == 5
