"""What a link made is checked in every cycle as the thing it is, in bulk (L14), and is nobody's drift (L17)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.errors import Unreadable
from fractal_cloud.offers.registry import Registry
from tests.links import east, west
from tests.links.world import World, database, gateway, link, workload
from tests.links.world import world as make_world

APP = workload("app", link("db", database="orders"), link("edge", prefix="/a"))


def _deployed(links: World) -> None:
    links.deploy("ls-a", database(), gateway(parameters={"routes": ["/own"]}), APP)
    links.settle()
    links.cycle()


@pytest.mark.rule("L14")
def test_a_role_dropped_by_hand_comes_back_and_the_source_gets_its_password(links: World) -> None:
    _deployed(links)
    links.east.named("db").roles.clear()
    links.settle()
    (secret, _) = links.west.secrets["toy-west:ls-a/app>db"]
    assert links.east.named("db").roles["app@orders"].password == secret
    assert links.fields("ls-a", "app")["databaseLink.db.received"] == 2


@pytest.mark.rule("L14")
def test_a_route_or_a_secret_deleted_by_hand_comes_back(links: World) -> None:
    _deployed(links)
    links.east.named("edge").routes.clear()
    links.west.secrets.clear()
    links.settle()
    assert list(links.east.named("edge").routes.values()) == ["/a:80"]
    (secret, _) = links.west.secrets["toy-west:ls-a/app>db"]
    assert links.east.named("db").roles["app@orders"].password == secret


@pytest.mark.rule("L14")
def test_only_what_is_damaged_is_repaired_and_it_is_journalled(links: World) -> None:
    many = [workload(f"app-{n}", link("db", database="x")) for n in range(6)]
    links.deploy("ls-a", database(), *many)
    links.settle()
    links.cycle()
    links.east.handler_runs.clear()
    before = len(links.journal("ls-a", "db"))
    del links.east.named("db").roles["app-3@x"]
    links.cycle("east")
    assert links.east.handler_runs["grant"] == 1
    entries = links.journal("ls-a", "db")
    assert len(entries) == before + 1
    assert entries[0]["outcome"] == "done"


@pytest.mark.rule("L14", "S0")
def test_what_cannot_be_checked_is_not_taken_for_gone(links: World) -> None:
    _deployed(links)
    links.east.handler_runs.clear()
    links.east.failing["list roles"] = Unreadable("no answer")
    results = links.cycle("east")
    assert links.east.handler_runs["grant"] == 0
    assert not any(result.writes for result in results)


@pytest.mark.rule("L14")
@pytest.mark.parametrize("fault", ["raises", "says all is damaged"])
def test_a_check_that_is_at_fault_neither_ends_the_cycle_nor_makes_it_race(tmp_path: Path, fault: str) -> None:
    def broken(links: Any) -> list[Any]:
        if fault == "raises":
            raise KeyError("user")
        return []

    registry = Registry([east, west])
    handler = registry.handlers.find("inbound", "Toy.WestWorkload", "Toy.EastGateway")
    assert handler is not None
    intact: Callable[..., Any] | None = handler.verify
    handler.verify = broken
    try:
        with make_world(tmp_path, registry) as world:
            world.deploy("ls-a", gateway(), workload("app", link("edge", prefix="/a")))
            for _ in range(6):
                world.cycle()
            results = world.cycle()
            assert world.status("ls-a", "edge") == "Active"
            assert world.fields("ls-a", "app") == {"routeLink.edge.url": "https://edge/a"}
            assert all(result.again_in == world.agents["east"].settings.cycle_seconds for result in results)
    finally:
        handler.verify = intact


@pytest.mark.rule("L17")
def test_what_a_link_makes_in_a_resource_bears_a_mark_and_is_no_drift_of_it(links: World) -> None:
    _deployed(links)
    assert links.east.named("edge").routes == {"ls-a/edge<ls-a/app": "/a:80"}
    assert links.component("ls-a", "edge")["outputFields"].get("drift") is None
    links.east.named("edge").actual["routes"] = ["/own", "/by-hand"]
    links.settle()
    assert links.east.named("edge").actual["routes"] == ["/own"], "its own routes are brought back"
    assert links.east.named("edge").routes == {"ls-a/edge<ls-a/app": "/a:80"}, "and the link's are left alone"


@pytest.mark.rule("L14")
def test_a_target_that_was_made_again_is_wired_again(links: World) -> None:
    _deployed(links)
    old = links.east.named("db").id
    del links.east.things[old]
    links.settle(at_most=25)
    assert links.east.named("db").id != old
    (secret, _) = links.west.secrets["toy-west:ls-a/app>db"]
    assert links.east.named("db").roles["app@orders"].password == secret
