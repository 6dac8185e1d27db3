"""Ownership moved by an operator, as the store keeps it: who may ask, what is remembered, and what comes to nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from fractal_cloud.control.store import transfers
from fractal_cloud.control.store.errors import Refused
from fractal_cloud.control.store.housekeeping import expire_requests
from fractal_cloud.control.store.requests import Asked
from fractal_cloud.control.store.schema import live_systems
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import JournalEntry, KnownResource, RequestKind
from tests.store.playing import CATALOG, Player, World, component, net

Json = dict[str, Any]


def _shared(world: World) -> Player:
    """A net that ls-a owns and ls-b imports, in another environment."""
    world.deploy("ls-a", net(), environment="prod")
    world.deploy("ls-b", net(), environment="stage")
    world.agent("a2", environment="stage")  # the same account is reached from both
    agent = world.agent(environment="prod")
    agent.claim()
    identity = _identity(agent)
    known = [KnownResource(identity=identity, owner="ls-a", resource_id="id-net")]
    imported = {"stance": Stance.IMPORTED, "status": Status.EXTERNALLY_MANAGED, "owner": "ls-a"}
    agent.report(agent.says("ls-a", "net"), agent.says("ls-b", "net", **imported), resources=known)
    return agent


def _identity(agent: Player) -> str:
    return f"Test.Net:{agent.scope_of[agent.uid('ls-a', 'net')]}:net"


def _ask(world: World, to: str = "ls-b", sees: frozenset[str] | None = None) -> Json:
    with world.store.write() as tx:
        asked = Asked(RequestKind.TRANSFER, "ann", "reorganised", to=to)
        return transfers.ask(tx, "ls-a", "net", asked, CATALOG, sees)


def _begin(world: World, agent: Player) -> JournalEntry:
    """The agent publishes the intent, which uses the request up."""
    agent.claim()
    uid = agent.uid("ls-a", "net")
    request = agent.work[uid].request
    assert request is not None
    assert (request.kind, request.to, request.by) == (RequestKind.TRANSFER, "ls-b", "ann")
    entry = JournalEntry(id="e1", uid=uid, generation=1, verb="tag", reason="transfer", resource_id="id-net")
    agent.report(agent.says("ls-a", "net", used_request=request.id), journal=[entry])
    assert world.component("ls-a", "net")["request"] is None
    return entry


def _moved(agent: Player, *live_systems_: str, owner: str = "ls-b", **more: Any) -> None:
    said = {"stance": Stance.IMPORTED, "status": Status.EXTERNALLY_MANAGED, "owner": owner}
    agent.report(*(agent.says(name, "net", **said) for name in live_systems_), **more)


def _owners(world: World, live_system: str) -> list[tuple[str, str, str]]:
    found = [event for event in world.events(live_system) if event["kind"] == "OwnerChanged"]
    return [(event["before"], event["after"], event["by"]) for event in found]


@pytest.mark.rule("O8", "C4")
def test_both_sides_hear_who_moved_it_whenever_they_see_it(world: World) -> None:
    agent = _shared(world)
    _ask(world)
    entry = _begin(world, agent)
    _moved(agent, "ls-a", journal=[entry.model_copy(update={"outcome": "done"})])
    assert _owners(world, "ls-a") == [("ls-a", "ls-b", "ann")]
    world.clock.advance(5)
    _moved(agent, "ls-b")
    assert _owners(world, "ls-b") == [("ls-a", "ls-b", "ann")]


@pytest.mark.rule("O8", "C4")
@pytest.mark.parametrize("outcome", ["failed", "abandoned"])
def test_a_transfer_that_came_to_nothing_explains_no_later_move(world: World, outcome: Any) -> None:
    agent = _shared(world)
    _ask(world)
    entry = _begin(world, agent)
    agent.report(journal=[entry.model_copy(update={"outcome": outcome})])
    refused = [event for event in world.events("ls-a") if event["kind"] == "TransferRefused"]
    assert len(refused) == 1
    assert "ask once more" in refused[0]["message"]
    agent.report(journal=[entry.model_copy(update={"outcome": outcome})])
    assert world.kinds("ls-a").count("TransferRefused") == 1, "reported twice, it is recorded once"
    _moved(agent, "ls-a", "ls-b")
    assert _owners(world, "ls-a") == _owners(world, "ls-b") == [("ls-a", "ls-b", "unknown")]


@pytest.mark.rule("O8", "A3", "C4")
def test_an_agent_cannot_put_a_move_in_an_operators_name(world: World) -> None:
    agent = _shared(world)
    entry = JournalEntry(id="e1", uid=agent.uid("ls-a", "net"), generation=1, verb="tag", reason="transfer")
    agent.report(agent.says("ls-a", "net", message="x"), journal=[entry])
    _moved(agent, "ls-a")
    assert _owners(world, "ls-a") == [("ls-a", "ls-b", "unknown")]


@pytest.mark.rule("O8")
def test_whoever_may_not_see_the_other_livesystem_may_not_give_it_anything(world: World) -> None:
    _shared(world)
    with pytest.raises(Refused, match="there is no LiveSystem 'ls-b'"):
        _ask(world, sees=frozenset({"prod"}))
    assert _ask(world, sees=frozenset({"prod", "stage"}))["to"] == "ls-b"


@pytest.mark.rule("O8", "C9")
@pytest.mark.parametrize("waiting", ["ls-a", "ls-b"])
def test_nothing_is_moved_to_or_from_what_is_in_recovery(world: World, waiting: str) -> None:
    _shared(world)
    with world.store.write() as tx:
        tx.connection.execute(update(live_systems).where(live_systems.c.id == waiting).values(in_recovery=True))
    with pytest.raises(Refused, match=waiting):
        _ask(world)


@pytest.mark.rule("O8", "T4")
def test_what_cannot_carry_tags_has_no_owner_to_move(world: World) -> None:
    for name in ("ls-a", "ls-b"):
        world.deploy(name, component("net", "Test.Mute", {"region": "north"}))
    with pytest.raises(Refused, match="cannot carry tags"):
        _ask(world)


@pytest.mark.rule("O8", "G10")
def test_a_transfer_that_no_agent_carried_out_is_given_up_after_two_cycles(world: World) -> None:
    _shared(world)
    _ask(world)
    world.clock.advance(10_000)
    expire_requests(world.store.database, timedelta(seconds=60))
    assert world.component("ls-a", "net")["request"] is None
    event = world.events("ls-a")[-1]
    assert (event["kind"], event["message"]) == (
        "TransferRefused",
        "it was not carried out within two cycles: ask once more",
    )
