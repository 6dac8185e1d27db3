"""A link taken away is revoked: nothing is left of it, and its keys disappear on both sides (L10)."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import Denied
from tests.links.world import World, database, gateway, link, workload

APP = workload("app", link("db", database="orders"), link("edge", prefix="/a"))


def _deployed(links: World) -> None:
    links.deploy("ls-a", database(), gateway(), APP)
    links.settle()
    assert links.east.marks() == {"ls-a/db<ls-a/app", "ls-a/edge<ls-a/app"}
    assert links.west.marks() == {"ls-a/app>db"}


@pytest.mark.rule("L10")
def test_a_link_taken_away_leaves_nothing_in_either_cloud_and_no_key(links: World) -> None:
    _deployed(links)
    links.deploy("ls-a", database(), gateway(), workload("app", link("edge", prefix="/a")))
    links.settle()
    assert links.east.marks() == {"ls-a/edge<ls-a/app"}
    assert not links.west.marks()
    assert not links.fields("ls-a", "db")
    assert set(links.fields("ls-a", "app")) == {"routeLink.edge.url"}
    assert set(links.west.named("app").actual["environment"]) == {"routeLink.edge.url"}
    assert (links.east.handler_runs["withdraw"], links.west.handler_runs["stop_using"]) == (1, 1)


@pytest.mark.rule("L10")
def test_a_source_that_is_deleted_loses_its_access(links: World) -> None:
    _deployed(links)
    links.deploy("ls-a", database(), gateway())
    links.settle()
    assert not links.west.has("app")
    assert not links.east.marks() | links.west.marks()
    assert not links.fields("ls-a", "db")


@pytest.mark.rule("L10")
def test_what_links_made_is_taken_back_before_the_target_is_deleted(links: World) -> None:
    _deployed(links)
    order: list[str] = []
    links.east.before.append(order.append)
    links.deploy("ls-a", gateway(), workload("app", link("edge", prefix="/a")))
    links.settle()
    assert order.index("drop_role") < order.index("delete")
    assert not links.east.has("db")
    assert not links.west.marks()


@pytest.mark.rule("L10")
def test_a_deleted_live_system_leaves_nothing_of_its_links(links: World) -> None:
    _deployed(links)
    links.delete("ls-a")
    links.settle()
    assert not links.east.things
    assert not links.west.things
    assert not links.east.marks() | links.west.marks()
    assert links.api.get("/livesystems/ls-a").status_code == 404


@pytest.mark.rule("L10", "S21")
def test_a_revoke_that_is_denied_holds_the_deletion_and_is_not_hammered(links: World) -> None:
    _deployed(links)
    links.east.failing["drop_role"] = Denied("you may not drop roles")
    links.delete("ls-a")
    for _ in range(12):
        links.cycle()
    assert links.east.has("db")
    assert links.status("ls-a", "db") == "Deleting"
    assert "link from 'app': you may not drop roles" in links.message("ls-a", "db")
    assert links.east.calls["drop_role"] < 12, "later and later, not in every cycle"
    links.east.failing.clear()
    links.settle(at_most=40)
    assert not links.east.things


@pytest.mark.rule("L10", "O16")
def test_a_target_or_source_with_a_new_id_keeps_its_access_under_new_marks_alone(links: World) -> None:
    links.deploy("ls-a", database(), workload("app", link("db", database="orders")))
    links.settle()
    renamed = database("store", parameters={"name": "db"})
    links.deploy("ls-a", renamed, workload("app", link("store", database="orders")))
    links.settle()
    assert links.east.marks() == {"ls-a/store<ls-a/app"}
    assert links.west.marks() == {"ls-a/app>store"}
    links.deploy("ls-a", renamed, workload("web", link("store", database="orders"), parameters={"name": "app"}))
    links.settle()
    assert links.east.marks() == {"ls-a/store<ls-a/web"}
    assert links.west.marks() == {"ls-a/web>store"}
    assert links.east.roles("db") == ["web@orders"]


@pytest.mark.rule("L10")
def test_a_link_that_comes_back_at_once_is_provided_again(links: World) -> None:
    _deployed(links)
    links.deploy("ls-a", database(), gateway(), workload("app"))
    links.deploy("ls-a", database(), gateway(), APP)
    links.settle()
    assert links.east.marks() == {"ls-a/db<ls-a/app", "ls-a/edge<ls-a/app"}
    (secret, _) = links.west.secrets["toy-west:ls-a/app>db"]
    assert links.east.named("db").roles["app@orders"].password == secret


@pytest.mark.rule("L10")
def test_a_target_deleted_by_hand_leaves_nothing_in_the_store_beside_it(links: World) -> None:
    links.deploy("ls-a", database(), workload("app", link("db", database="orders"), at="east"))
    links.settle()
    assert links.east.secrets
    del links.east.things[links.east.named("db").id]
    links.delete("ls-a")
    links.settle()
    assert not links.east.secrets
    assert links.api.get("/livesystems/ls-a").status_code == 404
