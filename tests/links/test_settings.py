"""A link's settings are a contract (L1, L7): refused at deploy where it is known, else the source is Failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fractal_cloud.model.errors import LinkSettingsError
from fractal_cloud.model.link import LinkSettings, LinkSettingsValidator
from fractal_cloud.offers.link import InboundLink, OutboundLink, Published, inbound, outbound
from fractal_cloud.offers.registry import Registry
from tests.links import east, link_handlers, west
from tests.links.world import World, database, gateway, link, workload
from tests.links.world import world as make_world


def _errors(response: Any) -> dict[str, str]:
    assert response.status_code == 422, response.text
    return {error["path"]: error["message"] for error in response.json()["errors"]}


@pytest.mark.rule("L7")
def test_a_missing_required_setting_is_refused_with_path_source_target_and_key(links: World) -> None:
    found = _errors(links.put("ls-a", database(), workload("app", link("db"))))
    assert found == {
        "components[app].links[0].settings.database": "is missing: the link from 'app' to 'db' needs it",
    }
    assert links.api.get("/livesystems/ls-a").status_code == 404, "nothing of it is stored"


@pytest.mark.rule("L1", "L7")
@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"database": 3}, "database"),
        ({"database": "x", "acess": "read"}, "acess"),
        ({"database": "x", "access": "all"}, "access"),
        ({"database": ["x"]}, "database"),
        ({"database": {"name": "x"}}, "database"),
    ],
    ids=["wrong type", "unknown key", "wrong value", "a list", "a map"],
)
def test_settings_are_a_flat_map_of_what_the_contract_knows(links: World, settings: dict[str, Any], path: str) -> None:
    found = _errors(links.put("ls-a", database(), workload("app", {"target": "db", "settings": settings})))
    assert list(found) == [f"components[app].links[0].settings.{path}"]


@pytest.mark.rule("L7")
def test_a_link_without_any_settings_accepts_none(links: World) -> None:
    found = _errors(links.put("ls-a", workload("one"), workload("app", link("one", port=3))))
    assert list(found) == ["components[app].links[0].settings.port"]


@pytest.mark.rule("L7")
def test_optional_settings_have_defaults(links: World) -> None:
    links.deploy("ls-a", gateway(), workload("app", link("edge", prefix="/a")))
    links.settle()
    assert list(links.east.named("edge").routes.values()) == ["/a:80"]


@pytest.mark.rule("L7")
def test_the_plain_form_names_source_target_and_every_missing_key() -> None:
    given = {"database": "orders", "access": ""}
    assert LinkSettingsValidator.validate(given, ["database"], "app", "db") is given
    with pytest.raises(LinkSettingsError, match="the link from 'app' to 'db' lacks access, port: "):
        LinkSettingsValidator.validate(given, ["database", "access", "port"], "app", "db")


@pytest.mark.rule("L7")
def test_every_contract_can_be_read_at_the_control_plane(links: World) -> None:
    offers = links.api.get("/offers").json()
    items = offers["items"] if isinstance(offers, dict) else offers
    found = next(item for item in items if item["type"] == "Toy.EastDatabase")
    (contract,) = found["links"]
    assert (contract["half"], contract["source"], contract["linkType"]) == ("inbound", "*", "databaseLink")
    assert contract["required"] == ["database"]
    assert contract["settingsSchema"]["properties"]["access"]["default"] == "write"


class Size(LinkSettings):
    """What only the source's half asks for."""

    size: int


def _module(*handlers: object, name: str = "more") -> ModuleType:
    module = ModuleType(name)
    for number, handler in enumerate(handlers):
        setattr(module, f"handler_{number}", handler)
    return module


def sized(link: OutboundLink[Size]) -> Published | None:
    """Use a gateway of some size."""
    return {"size": link.settings.size} if "url" in link.published else None


@pytest.fixture
def sized_links(tmp_path: Path) -> Iterator[World]:
    """A world in which the two halves of one link ask for different settings."""
    registry = Registry([east, west])
    handler = outbound(source=west.WestWorkload, target=east.EastGateway, link_type="sizedLink", settings=Size)(sized)
    registry.handlers._by_claim["outbound", "Toy.WestWorkload", "Toy.EastGateway"] = handler
    with make_world(tmp_path, registry) as made:
        yield made


@pytest.mark.rule("L7")
def test_each_half_has_its_own_settings_and_leaves_the_others_alone(sized_links: World) -> None:
    world = sized_links
    found = _errors(world.put("ls-a", gateway(), workload("app", link("edge", prefix="/a"))))
    assert list(found) == ["components[app].links[0].settings.size"]
    world.deploy("ls-a", gateway(), workload("app", link("edge", prefix="/a", size=3)))
    world.settle()
    assert world.fields("ls-a", "app") == {"sizedLink.edge.size": 3}


def _without_contracts(world: World) -> None:
    """Make the control plane forget every contract, as if only the agents knew it."""
    world.registry.catalog = lambda: {  # type: ignore[method-assign]
        name: facts.model_copy(update={"links": []}) for name, facts in Registry.catalog(world.registry).items()
    }
    for provider in world.agents:
        world.restart_agent(provider)


@pytest.mark.rule("L7")
@pytest.mark.parametrize("side", ["outbound", "inbound"])
def test_where_only_the_agent_knows_the_contract_the_source_is_failed(tmp_path: Path, side: str) -> None:
    with make_world(tmp_path, Registry([east, west])) as world:
        if side == "inbound":
            world.registry.handlers._by_claim.pop(("outbound", "Toy.WestWorkload", "Toy.EastDatabase"))
        _without_contracts(world)
        world.deploy("ls-a", database(), workload("app", link("db")))
        world.settle()
        assert world.status("ls-a", "app") == "Failed"
        message = world.message("ls-a", "app")
        assert "the link from 'app' to 'db'" in message
        assert "database" in message
        assert world.status("ls-a", "db") == "Active"
        world.deploy("ls-a", database(), workload("app", link("db", database="orders")))
        world.settle()
        assert world.status("ls-a", "app") == "Active"
        world.deploy("ls-a", database(), workload("app"))
        world.settle()
        assert not world.east.marks() | world.west.marks()


@pytest.mark.rule("L7")
def test_a_handler_says_whether_a_target_that_published_nothing_means_failure(tmp_path: Path) -> None:
    registry = Registry([east, west])
    eager = outbound(
        source=west.WestWorkload,
        target=east.EastDatabase,
        link_type="databaseLink",
        settings=link_handlers.DatabaseLink,
        if_missing="fail",
    )(link_handlers.use)
    eager.revokes(link_handlers.stop_using)
    eager.verifies(link_handlers.used)
    registry.handlers._by_claim["outbound", "Toy.WestWorkload", "Toy.EastDatabase"] = eager
    assert eager.contract().if_missing == "fail"
    with make_world(tmp_path, registry) as world:
        world.deploy("ls-a", database(), workload("app", link("db", database="x")))
        world.cycle("west")
        world.cycle("west")
        assert world.status("ls-a", "app") == "Failed"
        assert "'db' has published nothing for it yet" in world.message("ls-a", "app")
        world.settle()
        assert world.status("ls-a", "app") == "Active"


@pytest.mark.rule("L10")
def test_changed_settings_revoke_what_the_old_ones_made(links: World) -> None:
    links.deploy("ls-a", database(), workload("app", link("db", database="orders")))
    links.settle()
    links.deploy("ls-a", database(), workload("app", link("db", database="users")))
    links.settle()
    assert links.east.roles("db") == ["app@users"]
    assert links.fields("ls-a", "app")["databaseLink.db.user"] == "app@users"


@pytest.mark.rule("L1")
def test_a_parameter_that_links_set_is_not_declared(links: World) -> None:
    found = _errors(links.put("ls-a", workload("app", parameters={"environment": {"a": "b"}})))
    assert found == {"components[app].parameters.environment": "is set by links alone: take it out, and declare a link"}


def _grant(link: InboundLink[Size]) -> Published:
    return {}


@pytest.mark.rule("L7")
def test_a_link_without_a_handler_is_warned_about_at_deploy(links: World) -> None:
    response = links.put("ls-a", database("one"), database("two", links=[link("one", database="x")]))
    assert response.status_code == 202
    assert not [text for text in response.json()["warnings"] if "nobody here wires" in text]
    response = links.put("ls-b", workload("app"), database("three", links=[link("app")]))
    assert [text for text in response.json()["warnings"] if "nobody here wires" in text]
    assert inbound(source="*", target="X", link_type="xLink", settings=Size)(_grant).contract().required == ["size"]
