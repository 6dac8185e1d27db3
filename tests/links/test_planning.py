"""A plan says what would become of links, and why one would wait; no agent has to answer for that (C6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.links.world import World, database, link, workload


def plan(links: World, live_system: str, *components: dict[str, Any]) -> dict[str, Any]:
    body = {"id": live_system, "components": list(components)}
    answer = links.api.post(f"/livesystems/{live_system}/plan?timeout=0", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def planned(links: World, live_system: str, *components: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    made = plan(links, live_system, *components)
    return {one["componentId"]: one["links"] for one in made["components"] if one["links"]}


def said(action: str, waits: str = "", **changes: Any) -> dict[str, Any]:
    both = {name: dict(zip(("declared", "actual"), pair, strict=True)) for name, pair in changes.items()}
    return {"target": "db", "action": action, "changes": both, "waits": waits}


@pytest.mark.rule("C6", "L1")
def test_a_plan_distinguishes_links_that_are_added_changed_kept_and_removed(links: World) -> None:
    links.deploy("ls-a", database(), workload("app", link("db", database="x")), workload("idle"))
    links.settle()
    same = [database(), workload("app", link("db", database="x")), workload("idle")]
    assert planned(links, "ls-a", *same) == {"app": [said("nothing")]}
    assert not plan(links, "ls-a", *same)["hasChanges"]
    changed = planned(links, "ls-a", database(), workload("app", link("db", database="y")), workload("idle"))
    assert changed == {"app": [said("change", database=("y", "x"))]}
    moved = planned(links, "ls-a", database(), workload("app"), workload("idle", link("db", database="x")))
    assert moved == {"app": [said("remove", database=(None, "x"))], "idle": [said("add", database=("x", None))]}
    assert plan(links, "ls-a", database(), workload("app"), workload("idle"))["hasChanges"]
    gone = planned(links, "ls-a", database(), workload("idle"))
    assert gone == {"app": [said("remove", database=(None, "x"))]}
    assert links.east.roles("db") == ["app@x"], "a plan changes nothing"


@pytest.mark.rule("C6", "L12")
def test_a_link_that_needs_the_owners_consent_says_so_before_it_is_deployed(links: World) -> None:
    links.deploy("ls-data", database())
    links.settle()
    wanted = [database(), workload("app", link("db", database="x"))]
    why = "ls-data/db does not allow it: add 'ls-web' to its linksFrom"
    assert planned(links, "ls-web", *wanted) == {"app": [said("add", why, database=("x", None))]}
    links.deploy("ls-web", *wanted)
    links.settle()
    assert planned(links, "ls-web", *wanted) == {"app": [said("nothing", why)]}
    links.deploy("ls-data", database(linksFrom=["ls-web"]))
    links.settle()
    assert planned(links, "ls-web", *wanted) == {"app": [said("nothing")]}


@pytest.mark.rule("C6", "L13")
def test_a_link_to_what_is_in_override_waits(links: World) -> None:
    links.deploy("ls-a", database(), workload("app"))
    links.settle()
    links.east.break_glass("db")
    links.settle()
    (found,) = planned(links, "ls-a", database(), workload("app", link("db", database="x")))["app"]
    assert found["action"] == "add"
    assert "'db' is in override" in found["waits"]


@pytest.mark.rule("C6", "L7")
def test_a_link_that_nobody_carries_out_says_so(links: World) -> None:
    (found,) = planned(links, "ls-a", database(links=[{"target": "app"}]), workload("app"))["db"]
    assert found["waits"].startswith("nobody here wires Toy.EastDatabase to Toy.WestWorkload")
