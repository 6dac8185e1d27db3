"""A target in override keeps its keys; new access and revoking wait until it is managed again (L13)."""

from __future__ import annotations

import pytest

from tests.links.world import World, database, link, workload

APP = workload("app", link("db", database="orders"))
WEB = workload("web", link("db", database="orders"))


@pytest.mark.rule("L13")
def test_in_override_keys_stay_and_new_access_waits_until_it_is_handed_back(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    before = links.fields("ls-a", "db")
    links.east.break_glass("db")
    links.settle()
    links.deploy("ls-a", database(), APP, WEB)
    links.settle()
    assert links.status("ls-a", "db") == "ManualOverride"
    assert links.fields("ls-a", "db") == before
    assert links.east.roles("db") == ["app@orders"]
    assert "link from 'web': 'db' is in override" in links.message("ls-a", "db")
    links.east.hand_back("db")
    links.settle()
    assert links.east.roles("db") == ["app@orders", "web@orders"]
    assert "link" not in links.message("ls-a", "db")


@pytest.mark.rule("L13")
def test_in_override_revoking_waits_until_it_is_handed_back(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    links.east.break_glass("db")
    links.settle()
    links.deploy("ls-a", database(), workload("app"))
    links.settle()
    assert links.east.roles("db") == ["app@orders"]
    assert "linkedCredentials.app.user" in links.fields("ls-a", "db")
    assert "it is to be taken back: 'db' is in override" in links.message("ls-a", "db")
    links.east.hand_back("db")
    links.settle()
    assert not links.east.roles("db")
    assert not links.fields("ls-a", "db")


@pytest.mark.rule("L13")
def test_in_override_nothing_is_repaired_and_a_source_goes_on(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    links.east.break_glass("db")
    links.east.named("db").roles.clear()
    links.settle()
    assert not links.east.roles("db")
    links.east.hand_back("db")
    links.settle()
    assert links.east.roles("db") == ["app@orders"]
    (secret, _) = links.west.secrets["toy-west:ls-a/app>db"]
    assert links.east.named("db").roles["app@orders"].password == secret


@pytest.mark.rule("L13")
def test_a_source_in_override_keeps_its_keys_and_is_not_touched(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    links.west.break_glass("app")
    links.settle()
    before = (links.fields("ls-a", "app"), dict(links.west.named("app").actual))
    links.deploy("ls-a", database(parameters={"size": 7}), APP)
    links.settle()
    assert (links.fields("ls-a", "app"), dict(links.west.named("app").actual)) == before
    links.west.hand_back("app")
    links.settle()
    assert links.west.named("app").actual["environment"]["databaseLink.db.endpoint"] == "db.toy:5007"


@pytest.mark.rule("L13", "O10")
def test_a_deleted_target_in_override_is_left_with_all_that_is_in_it(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    links.east.break_glass("db")
    links.settle()
    links.delete("ls-a")
    links.settle()
    assert links.east.roles("db") == ["app@orders"]
    assert not links.west.things
