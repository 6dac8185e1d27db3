"""Links to a target that another LiveSystem owns (L12): served where it is owned, and only if its owner allows it."""

from __future__ import annotations

import pytest

from tests.links.world import World, database, link, workload

OWNER = database("db", parameters={"name": "shared"})
ALLOWED = {**OWNER, "linksFrom": ["ls-b"]}
IMPORTED = database("their-db", parameters={"name": "shared"})
APP = workload("app", link("their-db", database="orders"))


def _deployed(links: World, owner: dict[str, object]) -> None:
    links.deploy("ls-a", owner)
    links.settle()
    links.deploy("ls-b", IMPORTED, APP)
    links.settle()


@pytest.mark.rule("L12")
def test_until_its_owner_allows_it_a_link_waits_and_both_sides_say_so(links: World) -> None:
    _deployed(links, OWNER)
    why = "ls-a/db does not allow it: add 'ls-b' to its linksFrom"
    assert why in links.message("ls-b", "app")
    assert f"link from 'ls-b/app': {why}" in links.message("ls-a", "db")
    assert not links.east.marks()
    assert not links.fields("ls-b", "app")


@pytest.mark.rule("L12")
def test_an_allowed_link_is_served_by_the_owners_half_and_never_at_the_importer(links: World) -> None:
    _deployed(links, ALLOWED)
    assert links.fields("ls-a", "db")["linkedCredentials.ls-b/app.user"] == "ls-b/app@orders"
    assert not links.fields("ls-b", "their-db"), "the importer's component publishes nothing"
    assert not links.message("ls-b", "their-db").count("link")
    assert links.fields("ls-b", "app")["databaseLink.their-db.user"] == "ls-b/app@orders"
    assert links.east.marks() == {"ls-a/db<ls-b/app"}
    assert {act.live_system_id for act in links.east.acts if act.reason == "link"} == {"ls-a"}


@pytest.mark.rule("L12")
def test_access_comes_and_goes_with_the_owners_word(links: World) -> None:
    _deployed(links, OWNER)
    links.deploy("ls-a", ALLOWED)
    links.settle()
    assert links.east.roles("shared") == ["ls-b/app@orders"]
    assert "link" not in links.message("ls-b", "app")
    links.deploy("ls-a", OWNER)
    links.settle()
    assert not links.east.roles("shared")
    assert not links.west.marks()
    assert not links.fields("ls-b", "app")
    assert "does not allow it" in links.message("ls-b", "app")
    links.deploy("ls-a", ALLOWED)
    links.settle()
    (secret, _) = links.west.secrets["toy-west:ls-b/app>their-db"]
    assert links.east.named("shared").roles["ls-b/app@orders"].password == secret


@pytest.mark.rule("L12", "L10")
def test_when_an_importer_is_deleted_its_access_is_revoked(links: World) -> None:
    _deployed(links, ALLOWED)
    links.delete("ls-b")
    links.settle()
    assert links.east.has("shared")
    assert not links.east.marks() | links.west.marks()
    assert not links.fields("ls-a", "db")


@pytest.mark.rule("L12")
def test_when_the_owner_is_gone_the_link_says_so(links: World) -> None:
    _deployed(links, ALLOWED)
    links.delete("ls-a")
    links.settle()
    assert not links.east.has("shared")
    assert not links.west.marks()
    assert "its owner 'ls-a' declares no such component here" in links.message("ls-b", "app")
    assert not links.fields("ls-b", "app")


@pytest.mark.rule("L12", "O8")
def test_when_ownership_moves_the_new_owner_serves_the_link(links: World) -> None:
    _deployed(links, ALLOWED)
    links.east.give_to("shared", "ls-b")
    links.settle(at_most=25)
    assert links.fields("ls-b", "their-db")["linkedCredentials.app.user"] == "app@orders"
    assert not links.fields("ls-a", "db"), "who owns it no more publishes nothing for it"
    assert "what was made for it is still there" in links.message("ls-a", "db")
    links.east.give_to("shared", "ls-a")
    links.settle(at_most=25)
    assert links.fields("ls-a", "db")["linkedCredentials.ls-b/app.user"] == "ls-b/app@orders"
    assert not links.fields("ls-b", "their-db")


@pytest.mark.rule("L12", "O12")
def test_a_target_that_nobody_owns_is_wired_by_nobody(links: World) -> None:
    _deployed(links, ALLOWED)
    links.deploy(
        "ls-c",
        {**database("own", parameters={"name": "lonely"}), "importOnly": True},
        workload("web", link("own", database="x")),
    )
    links.settle()
    assert "nobody owns 'own'" in links.message("ls-c", "web")


@pytest.mark.rule("L12")
def test_two_importers_have_a_role_each(links: World) -> None:
    both = {**OWNER, "linksFrom": ["ls-b", "ls-c"]}
    _deployed(links, both)
    links.deploy("ls-c", IMPORTED, {**APP, "parameters": {"name": "other-app"}})
    links.settle()
    assert links.east.roles("shared") == ["ls-b/app@orders", "ls-c/app@orders"]
    links.deploy("ls-a", {**OWNER, "linksFrom": ["ls-c"]})
    links.settle()
    assert links.east.roles("shared") == ["ls-c/app@orders"]
