"""Parts: what carries no tags and belongs to what does lives, waits and ends as its parent says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE
from tests.families import toys
from tests.families.world import Declaration, World, declared, queue, running, world
from tests.links.clouds import Thing

pytestmark = pytest.mark.rule("S25")


@pytest.fixture(params=["beside it", pytest.param("in the scope of its parent", marks=pytest.mark.soak)])
def toy_world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Parents lie in the region of their parts, or are observed for all regions, and their parts with them."""
    if request.param != "beside it":
        monkeypatch.setattr(toys, "EVERYWHERE", frozenset({toys.QUEUE}))
    with world(tmp_path) as made:
        yield made


def entry(component_id: str = "way", **values: Any) -> Declaration:
    """An entry of the queue ``jobs``."""
    return declared(
        toys.ENTRY, component_id, **{"Queue": {"$output": "jobs.QueueId"}, "To": "x", "Weight": 1, **values}
    )


def lock(**values: Any) -> Declaration:
    """The lock of the queue ``jobs``, without which it cannot be deleted."""
    return declared(toys.LOCK, "lock", **{"Queue": {"$output": "jobs.QueueId"}, "Strength": 1, **values})


def of_type(world: World, component_type: str) -> list[Thing]:
    return [thing for thing in world.cloud.things.values() if thing.type == component_type]


def the_entry(world: World) -> Thing:
    [found] = of_type(world, toys.ENTRY)
    return found


def settled(world: World, *components: Declaration) -> None:
    world.deploy(queue(QueueName="orders"), *components)
    world.settle()
    assert {thing.type for thing in world.cloud.things.values()} >= {toys.QUEUE}


def writes(world: World) -> dict[str, int]:
    return {name: world.cloud.calls[name] for name in ("create", "update", "delete", "tag")}


# --- while it lives


@pytest.mark.rule("S4", "S17")
def test_a_part_is_made_after_its_parent_and_bears_no_tag(toy_world: World) -> None:
    settled(toy_world, entry(), entry("other", To="y", Port=80), lock())
    jobs = toy_world.cloud.named("orders")
    entries, locks = of_type(toy_world, toys.ENTRY), of_type(toy_world, toys.LOCK)
    assert (sorted(one.actual["To"] for one in entries), len(locks)) == (["x", "y"], 1)
    assert all(one.actual["Queue"] == jobs.id for one in (*entries, *locks))
    assert [one.tags for one in toy_world.cloud.things.values() if one.type != toys.QUEUE] == [{}, {}, {}]
    assert toy_world.status("shop", "way") == "Active"
    assert toy_world.component("shop", "way")["owner"] == "shop", "its parent's tags are its own"
    before = writes(toy_world)
    toy_world.settle()
    assert writes(toy_world) == before


@pytest.mark.rule("S12", "S18")
def test_a_part_is_corrected_while_its_parent_is_managed(toy_world: World) -> None:
    settled(toy_world, entry())
    the_entry(toy_world).actual["Weight"] = 9
    toy_world.settle()
    assert the_entry(toy_world).actual["Weight"] == 1
    del toy_world.cloud.things[the_entry(toy_world).id]
    toy_world.settle()
    assert the_entry(toy_world).actual["Weight"] == 1, "and made again"


@pytest.mark.rule("G1", "G3", "G4")
def test_a_part_is_in_override_with_its_parent_and_remembers_none_of_its_own(toy_world: World) -> None:
    settled(toy_world, entry(), entry("other", To="y"))
    toy_world.cloud.break_glass("orders")
    first, second = sorted(of_type(toy_world, toys.ENTRY), key=lambda one: str(one.actual["To"]))
    first.actual["Weight"] = 9
    del toy_world.cloud.things[second.id]
    before = writes(toy_world)
    toy_world.settle()
    assert toy_world.status("shop", "way") == toy_world.status("shop", "other") == "ManualOverride"
    assert toy_world.fields("way")["drift"] == {"Weight": {"declared": 1, "actual": 9}}
    assert "'jobs'" in toy_world.message("way")
    assert "it is absent" in toy_world.message("other")
    assert toy_world.component("shop", "way").get("override") is None
    assert writes(toy_world) == before


@pytest.mark.rule("G7", "S9", "S12a", "T6")
def test_a_part_is_shown_first_once_its_parent_was_handed_back(toy_world: World) -> None:
    settled(toy_world, entry(), entry("other", To="y"))
    toy_world.cloud.break_glass("orders")
    first, second = sorted(of_type(toy_world, toys.ENTRY), key=lambda one: str(one.actual["To"]))
    first.actual["Weight"] = 9
    del toy_world.cloud.things[second.id]
    toy_world.settle()
    toy_world.cloud.hand_back("orders")
    toy_world.cycle()
    assert RECONCILE not in toy_world.cloud.named("orders").tags, "the parent does not wait for its parts"
    assert the_entry(toy_world).actual["Weight"] == 9
    assert toy_world.status("shop", "way") == toy_world.status("shop", "other") == "Mutating"
    toy_world.settle()
    assert sorted(one.actual["Weight"] for one in of_type(toy_world, toys.ENTRY)) == [1, 1]
    assert toy_world.status("shop", "way") == toy_world.status("shop", "other") == "Active"


@pytest.mark.rule("S16", "G1")
@pytest.mark.parametrize("operation", ["update", "create", "delete"])
def test_whoever_breaks_the_parents_glass_right_before_a_write_of_the_part_wins(
    toy_world: World, operation: str
) -> None:
    settled(toy_world, entry())
    if operation == "update":
        the_entry(toy_world).actual["Weight"] = 9
    elif operation == "create":
        del toy_world.cloud.things[the_entry(toy_world).id]
    else:
        toy_world.deploy(queue(QueueName="orders"))
    before = writes(toy_world)
    at = {"reads": 0}

    def break_it(call: str) -> None:
        if call == f"read {toys.QUEUE}":
            toy_world.cloud.break_glass("orders")
            at["reads"] += 1

    toy_world.cloud.before.append(break_it)
    toy_world.cycle(3)
    assert at["reads"], "the parent was read right before the write"
    toy_world.cloud.before.clear()
    toy_world.settle()
    assert writes(toy_world) == before


@pytest.mark.rule("O1", "S3", "S6")
def test_a_part_of_what_another_live_system_owns_is_only_read(toy_world: World) -> None:
    settled(toy_world, entry())
    toy_world.deploy(queue(QueueName="orders"), entry(Weight=7), entry("own", To="z"), live_system="guest")
    toy_world.settle()
    assert toy_world.status("guest", "jobs") == "ExternallyManaged"
    assert toy_world.status("guest", "way") == "ExternallyManaged"
    assert toy_world.status("guest", "own") == "Missing"
    assert "'shop'" in toy_world.message("way", "guest")
    assert "'shop'" in toy_world.message("own", "guest")
    assert the_entry(toy_world).actual["Weight"] == 1


@pytest.mark.rule("O8", "S12a")
def test_a_part_follows_its_parent_to_another_owner(toy_world: World) -> None:
    settled(toy_world, entry())
    toy_world.deploy(queue(QueueName="orders"), entry(Weight=7), entry("own", To="z"), live_system="guest")
    toy_world.settle()
    toy_world.cloud.give_to("orders", "guest")
    toy_world.settle()
    assert sorted((one.actual["To"], one.actual["Weight"]) for one in of_type(toy_world, toys.ENTRY)) == [
        ("x", 7),
        ("z", 1),
    ]
    assert toy_world.status("shop", "way") == "ExternallyManaged"


@pytest.mark.rule("O12")
def test_a_part_of_what_is_only_imported_is_not_made(toy_world: World) -> None:
    toy_world.cloud.things["toys-9"] = Thing("toys-9", toys.QUEUE, "orders", {}, {"Delay": 5})
    toy_world.deploy(queue(QueueName="orders", importOnly=True), entry())
    toy_world.settle()
    assert toy_world.status("shop", "way") == "Missing"
    assert of_type(toy_world, toys.ENTRY) == []


@pytest.mark.rule("S12a", "G11")
def test_a_part_that_is_found_without_memory_is_shown_first(toy_world: World) -> None:
    settled(toy_world)
    jobs = toy_world.cloud.named("orders")
    toy_world.cloud.things["toys-9"] = Thing("toys-9", toys.ENTRY, "", {}, {"Queue": jobs.id, "To": "x", "Weight": 5})
    toy_world.deploy(queue(QueueName="orders"), entry())
    toy_world.cycle()
    assert (toy_world.status("shop", "way"), the_entry(toy_world).actual["Weight"]) == ("Mutating", 5)
    toy_world.settle()
    assert (toy_world.status("shop", "way"), the_entry(toy_world).actual["Weight"]) == ("Active", 1)


@pytest.mark.rule("S17", "S20")
@pytest.mark.parametrize("is_lost", [True, False])
def test_a_part_whose_agent_died_is_made_once(toy_world: World, is_lost: bool) -> None:
    settled(toy_world)

    class Died(BaseException):
        pass

    def die(call: str) -> None:
        if call == "create":
            toy_world.cloud.before.clear()
            if not is_lost:
                jobs = toy_world.cloud.named("orders")
                toy_world.cloud.things["toys-9"] = Thing(
                    "toys-9", toys.ENTRY, "", {}, {"Queue": jobs.id, "To": "x", "Weight": 1}
                )
            raise Died

    toy_world.cloud.before.append(die)
    toy_world.deploy(queue(QueueName="orders"), entry())
    with pytest.raises(Died):
        toy_world.cycle()
    toy_world.restart_agent()
    toy_world.settle()
    assert the_entry(toy_world).actual["Weight"] == 1
    assert toy_world.status("shop", "way") == "Active"


# --- when it ends


@pytest.mark.rule("O10", "O17")
def test_parts_go_with_their_parent_and_only_what_blocks_it_by_itself(toy_world: World) -> None:
    settled(toy_world, entry(), entry("other", To="y"), lock())
    toy_world.delete()
    toy_world.settle()
    assert toy_world.cloud.things == {}
    assert toy_world.cloud.calls["delete"] == 2, "the lock, and the queue"
    assert toy_world.api.get("/livesystems/shop").status_code == 404


@pytest.mark.rule("O10")
def test_a_part_alone_is_deleted_where_it_was_made_here(toy_world: World) -> None:
    settled(toy_world, entry(), entry("other", To="y"))
    toy_world.deploy(queue(QueueName="orders"), entry())
    toy_world.settle()
    assert the_entry(toy_world).actual["To"] == "x"


@pytest.mark.rule("O10", "O19")
def test_a_part_alone_is_left_where_nobody_knows_who_made_it(toy_world: World) -> None:
    settled(toy_world, entry())
    toy_world.cloud.break_glass("orders")
    toy_world.settle()
    toy_world.deploy(queue(QueueName="orders"))
    toy_world.settle()
    assert the_entry(toy_world).actual["To"] == "x", "left with its parent, which is in override"


@pytest.mark.rule("O10")
def test_parts_are_left_with_their_parent(toy_world: World) -> None:
    settled(toy_world, entry(), lock())
    toy_world.cloud.break_glass("orders")
    toy_world.delete()
    toy_world.settle()
    assert len(toy_world.cloud.things) == 3
    assert toy_world.cloud.calls["delete"] == 0


@pytest.mark.rule("O3")
def test_parts_of_what_another_owns_lose_a_reference(toy_world: World) -> None:
    settled(toy_world, entry(), lock())
    toy_world.deploy(queue(QueueName="orders"), entry(), lock(), live_system="guest")
    toy_world.settle()
    toy_world.delete("guest")
    toy_world.settle()
    assert len(toy_world.cloud.things) == 3
    assert toy_world.cloud.calls["delete"] == 0
    assert toy_world.api.get("/livesystems/guest").status_code == 404


@pytest.mark.rule("O10", "S16")
def test_what_blocks_the_parent_stays_if_the_parent_is_taken_over_right_before(toy_world: World) -> None:
    settled(toy_world, lock())

    def break_it(call: str) -> None:
        if call == f"read {toys.QUEUE}":
            toy_world.cloud.break_glass("orders")

    toy_world.cloud.before.append(break_it)
    toy_world.delete()
    toy_world.settle()
    assert len(toy_world.cloud.things) == 2
    assert toy_world.cloud.calls["delete"] == 0


@pytest.mark.rule("O14")
def test_a_preview_says_what_becomes_of_parts(toy_world: World) -> None:
    settled(toy_world, entry(), lock())
    assert _preview(toy_world) == {"jobs": "deleted", "way": "deleted", "lock": "deleted"}
    toy_world.cloud.break_glass("orders")
    toy_world.settle()
    assert _preview(toy_world) == {"jobs": "left", "way": "left", "lock": "left"}


def _preview(world: World, live_system: str = "shop") -> dict[str, str]:
    found = world.api.delete(f"/livesystems/{live_system}", params={"dryRun": "true"}).json()
    return {one["componentId"]: one["ending"] for one in found["preview"]["components"]}


@pytest.mark.rule("G10")
def test_a_part_is_not_pushed_by_itself(toy_world: World) -> None:
    settled(toy_world, entry())
    answer = toy_world.api.post("/livesystems/shop/components/way/force-push", json={})
    assert answer.status_code == 409
    assert "carries no tags of its own" in answer.text


@pytest.mark.rule("S14")
def test_a_part_of_one_of_several_parents_is_not_written(toy_world: World) -> None:
    settled(toy_world, entry())
    tags = {MANAGED_BY: OURS, OWNER: "shop"}
    toy_world.cloud.things["toys-9"] = Thing("toys-9", toys.QUEUE, "orders", tags, {"Delay": 5})
    the_entry(toy_world).actual["Weight"] = 9
    toy_world.cycle(3)
    assert the_entry(toy_world).actual["Weight"] == 9


@pytest.mark.rule("S25", "G12")
def test_the_commands_for_a_part_are_those_of_what_it_is_part_of(toy_world: World) -> None:
    settled(toy_world, entry())
    shown = toy_world.api.get("/livesystems/shop/components/way/glass").json()
    [parent] = of_type(toy_world, toys.QUEUE)
    assert (shown["break"], shown["readopt"]) == ([f"toys untag {parent.id}"], [f"toys tag {parent.id}"])
    assert (shown["componentId"], shown["resourceId"]) == ("way", the_entry(toy_world).id)
    assert "it is a part of 'jobs', whose tags count for it: these are the commands for 'jobs'" in shown["message"]


@pytest.mark.rule("C6")
def test_a_plan_says_that_a_part_of_what_is_to_be_created_is_created_too(toy_world: World) -> None:
    body = {"id": "shop", "components": [queue(QueueName="orders"), entry()]}
    assert _planned(toy_world, body) == {"jobs": "create", "way": "create"}
    settled(toy_world, entry())
    assert _planned(toy_world, body) == {"jobs": "nothing", "way": "nothing"}


def _planned(toy_world: World, body: Declaration) -> dict[str, str]:
    with running(toy_world):
        found = toy_world.api.post("/livesystems/shop/plan", json=body).json()
    return {one["componentId"]: one["action"] for one in found["components"]}
