"""What exists already is looked for when a generation is first reconciled, and kept until the next deploy (C12)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.errors import Unreadable
from tests.families import toys
from tests.families.world import World, queue, running, world
from tests.links.clouds import Thing


@pytest.fixture
def toy_world(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def _exists(made: World, thing_id: str, *, place: str = "north", **tags: str) -> None:
    made.cloud.things[thing_id] = Thing(thing_id, toys.ALARM, thing_id, tags, {"Threshold": 1}, place=place)


def _find(**more: Any) -> dict[str, Any]:
    return {"$find": {"type": toys.ALARM, "tags": {"tier": "private"}, **more}}


def _all(made: World) -> Any:
    return made.cloud.named("jobs").actual["All"]


pytestmark = pytest.mark.rule("C12")


def test_all_that_have_the_tags_are_found_in_one_order(toy_world: World) -> None:
    for name in ("b", "c", "a"):
        _exists(toy_world, name, tier="private")
    _exists(toy_world, "other", tier="public")
    toy_world.deploy(queue(All=_find()))
    toy_world.settle()
    assert _all(toy_world) == ["a", "b", "c"]
    assert toy_world.status("shop", "jobs") == "Active"


def test_outputs_and_values_are_asked_for_by_name(toy_world: World) -> None:
    _exists(toy_world, "a", tier="private")
    _exists(toy_world, "b", tier="private")
    toy_world.cloud.things["b"].actual["Threshold"] = 2
    toy_world.deploy(queue(All=_find(where={"Threshold": 2}, output="AlarmId")))
    toy_world.settle()
    assert _all(toy_world) == ["alarm:b"]


def test_conditions_may_be_values_of_another_component(toy_world: World) -> None:
    _exists(toy_world, "a", tier="private")
    _exists(toy_world, "b", tier="private")
    toy_world.cloud.things["b"].actual["Threshold"] = 7
    toy_world.deploy(queue("dead", Delay=7), queue(All=_find(where={"Threshold": "${dead.Delay}"})))
    toy_world.settle()
    assert _all(toy_world) == ["b"]


def test_another_answer_later_is_said_and_changes_nothing_until_the_next_deploy(toy_world: World) -> None:
    _exists(toy_world, "a", tier="private")
    toy_world.deploy(queue(All=_find()))
    toy_world.settle()
    _exists(toy_world, "b", tier="private")
    toy_world.settle()
    assert _all(toy_world) == ["a"]
    said = toy_world.message("jobs")
    assert said == f"as declared; {toys.ALARM} with tier=private finds a, b by now: deploy again to use that"
    assert toy_world.status("shop", "jobs") == "Active"
    toy_world.restart_agent()
    toy_world.settle()
    assert _all(toy_world) == ["a"], "whoever takes over keeps the answer"
    assert toy_world.message("jobs") == said
    toy_world.deploy(queue(All=_find()))
    toy_world.settle()
    assert _all(toy_world) == ["a", "b"]
    assert toy_world.message("jobs") == "as declared"


def test_it_waits_while_nothing_is_found_and_says_so(toy_world: World) -> None:
    toy_world.deploy(queue(All=_find()))
    toy_world.cycle(3)
    assert toy_world.message("jobs") == f"waits for {toys.ALARM} with tier=private: there is none"
    assert toy_world.status("shop", "jobs") == "Instantiating"
    assert not toy_world.cloud.has("jobs")
    _exists(toy_world, "a", tier="private")
    toy_world.settle()
    assert _all(toy_world) == ["a"]


def test_what_cannot_be_read_is_not_nothing(toy_world: World) -> None:
    _exists(toy_world, "a", tier="private")
    toy_world.cloud.failing[f"list {toys.ALARM}"] = Unreadable("it does not answer")
    toy_world.deploy(queue(All=_find()))
    toy_world.cycle(3)
    assert "cannot be read: it does not answer" in toy_world.message("jobs")
    assert not toy_world.cloud.has("jobs")
    toy_world.cloud.failing.clear()
    toy_world.settle()
    assert _all(toy_world) == ["a"]
    toy_world.cloud.failing[f"list {toys.ALARM}"] = Unreadable("it does not answer")
    toy_world.cycle(3)
    assert toy_world.status("shop", "jobs") == "Active", "what was found before counts"
    assert _all(toy_world) == ["a"]


def test_another_region_is_read_there(toy_world: World) -> None:
    _exists(toy_world, "a", tier="private", place="south")
    toy_world.deploy(queue(All=_find(region="south")))
    toy_world.settle()
    assert _all(toy_world) == ["a"]
    _exists(toy_world, "b", tier="private", place="south")
    toy_world.settle()
    assert "finds a, b by now" in toy_world.message("jobs")


def test_a_type_is_listed_once_however_many_lookups_name_it(toy_world: World) -> None:
    _exists(toy_world, "a", tier="private")
    toy_world.deploy(*(queue(f"jobs-{number}", All=_find()) for number in range(5)))
    toy_world.settle()
    before = toy_world.cloud.calls[f"list {toys.ALARM}"]
    toy_world.cycle()
    assert toy_world.cloud.calls[f"list {toys.ALARM}"] == before + 1


def test_a_crash_after_finding_keeps_the_answer(toy_world: World) -> None:
    _exists(toy_world, "a", tier="private")

    def die(operation: str) -> None:
        if operation == "create":
            _exists(toy_world, "b", tier="private")
            raise KeyboardInterrupt

    toy_world.deploy(queue(All=_find()))
    toy_world.cloud.before.append(die)
    with pytest.raises(KeyboardInterrupt):
        toy_world.cycle()
    toy_world.cloud.before.clear()
    toy_world.restart_agent()
    toy_world.settle()
    assert _all(toy_world) == ["a"]
    assert "finds a, b by now" in toy_world.message("jobs")


@pytest.mark.rule("A8")
def test_a_lookup_never_returns_what_may_be_a_secret(toy_world: World) -> None:
    toy_world.deploy(queue("dead", Password="hunter2-hunter2"))
    toy_world.settle()
    lookup = {"$find": {"type": toys.QUEUE, "where": {"Delay": 5}, "output": "Password"}}
    toy_world.deploy(queue("dead", Password="hunter2-hunter2"), queue(All=lookup))
    toy_world.cycle(3)
    assert "Password may be a secret" in toy_world.message("jobs")
    assert not toy_world.cloud.has("jobs")


@pytest.mark.rule("C6", "S20")
def test_a_plan_shows_what_is_found_and_keeps_nothing(toy_world: World) -> None:
    _exists(toy_world, "a", tier="private")
    body = {"id": "shop", "components": [queue(All=_find())]}
    with running(toy_world):
        planned = toy_world.api.post("/livesystems/shop/plan", json=body).json()
    (component,) = planned["components"]
    assert (component["action"], component["found"]) == ("create", {"All": ["a"]})
    _exists(toy_world, "b", tier="private")
    toy_world.deploy(queue(All=_find()))
    toy_world.settle()
    assert _all(toy_world) == ["a", "b"]
