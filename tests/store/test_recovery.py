"""Incarnations and recoveries in the store, on every database there is (C9)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, update

from fractal_cloud.control.store import incarnations, recovery, requests, tokens
from fractal_cloud.control.store.errors import Forbidden, LeaseLost, Refused
from fractal_cloud.control.store.requests import Asked
from fractal_cloud.control.store.schema import components, events
from fractal_cloud.control.store.tokens import NewToken
from fractal_cloud.model.observed import Intent
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import JournalEntry, LastSeen, RequestKind
from fractal_cloud.rules.grants import EVERYTHING
from tests.last_seen import last_seen, proven
from tests.store.playing import CATALOG, Player, World, net

SAYS: dict[str, Callable[[Player], object]] = {
    "claims": lambda agent: agent.claim(),
    "beats": lambda agent: agent.beat(),
    "reports": lambda agent: agent.report(agent.says("ls-a", "net", message="more")),
}


@pytest.fixture
def agent(world: World) -> Player:
    """An agent that has created what is declared, and remembers it."""
    world.deploy("ls-a", net())
    made = world.agent()
    made.claim()
    made.report(made.says("ls-a", "net"))
    made.remembers = last_seen(world.store)
    world.clock.advance(1)
    return made


def _begin(world: World) -> Any:
    with world.store.write() as tx:
        return recovery.begin(tx, "ann")


def _is_restored(world: World, seen: LastSeen) -> bool:
    with world.store.read() as tx:
        return recovery.is_restored(tx, seen)


def _status(world: World) -> Any:
    with world.store.read() as tx:
        return recovery.status(tx)


def _other(seen: LastSeen, **more: Any) -> LastSeen:
    return seen.model_copy(update=more)


# --- incarnations


@pytest.mark.rule("C9")
def test_a_database_draws_its_incarnation_once(world: World) -> None:
    first = last_seen(world.store)
    world.deploy("ls-a", net())
    second = last_seen(world.store)
    assert first.incarnation == second.incarnation
    assert len(first.incarnation) == 32
    assert second.event > first.event
    assert second.event_id


@pytest.mark.rule("C9")
@pytest.mark.parametrize("how", SAYS)
@pytest.mark.parametrize("lost", ["another incarnation", "an event that is not here", "another event of that number"])
def test_an_agent_that_knows_another_database_is_refused(world: World, agent: Player, lost: str, how: str) -> None:
    SAYS[how](agent)
    seen = last_seen(world.store)
    agent.remembers = {
        "another incarnation": _other(seen, incarnation="0" * 32),
        "an event that is not here": _other(seen, event=seen.event + 1, event_id="ab"),
        "another event of that number": _other(seen, event_id="ab"),
    }[lost]
    with pytest.raises(LeaseLost, match="register again"):
        SAYS[how](agent)


@pytest.mark.rule("C9")
def test_an_event_that_is_kept_no_longer_was_here(world: World, agent: Player) -> None:
    seen = last_seen(world.store)
    world.deploy("ls-b", net("other"))
    with world.store.write() as tx:
        tx.connection.execute(delete(events).where(events.c.seq <= seen.event))
    agent.remembers = seen
    agent.claim()
    assert not _is_restored(world, seen)


@pytest.mark.rule("C9")
@pytest.mark.parametrize("lost", ["another incarnation", "an event that is not here", "another event of that number"])
def test_what_an_agent_has_seen_and_the_database_has_not_begins_a_recovery(
    world: World, agent: Player, lost: str
) -> None:
    seen = last_seen(world.store)
    known = {
        "another incarnation": _other(seen, incarnation="0" * 32),
        "an event that is not here": _other(seen, event=seen.event + 50, event_id="ab"),
        "another event of that number": _other(seen, event_id="ab"),
    }[lost]
    with world.store.write() as tx:
        assert recovery.begin_if_restored(tx, proven(world.store, known), "a2", "token of a2")
    found = _status(world)
    assert [one["id"] for one in found["liveSystems"]] == ["ls-a"]
    assert (found["inRecovery"], found["by"]) == (True, "token of a2")
    assert found["incarnation"] not in (seen.incarnation, known.incarnation)
    assert last_seen(world.store).event > known.event, "no event bears a number that somebody has seen"
    assert world.kinds("ls-a")[-1] == "RecoveryBegan"
    with world.store.write() as tx:
        assert not recovery.begin_if_restored(tx, seen, "a3", "token of a3"), "of a former incarnation: nothing new"
    for says in SAYS.values():
        with pytest.raises(LeaseLost):
            says(agent)
    agent.remembers = None
    agent.register()
    agent.claim()
    assert agent.work[agent.uid("ls-a", "net")].in_recovery


@pytest.mark.rule("C9")
def test_an_agent_that_has_seen_nothing_more_starts_no_recovery(world: World, agent: Player) -> None:
    seen = last_seen(world.store)
    assert not _is_restored(world, seen)
    assert not _is_restored(world, _other(seen, event=1, event_id=""))
    assert not _status(world)["inRecovery"]


@pytest.mark.rule("C9", "A3")
@pytest.mark.parametrize("forged", ["incarnation", "event", "eventId", "at", "proof"])
def test_what_this_database_never_said_begins_no_recovery(world: World, agent: Player, forged: str) -> None:
    """A recovery stops all writing: nobody begins one by a lie, nor by another control plane's memory."""
    seen = last_seen(world.store)
    known = _other(seen, event=seen.event + 50, event_id="ab")
    assert _is_restored(world, proven(world.store, known))
    lies = {
        "incarnation": _other(known, incarnation="0" * 32),
        "event": known,
        "eventId": _other(seen, event_id="ab"),
        "at": _other(proven(world.store, known), at=world.clock.now - timedelta(days=1)),
        "proof": _other(known, proof="ÿ" * 64),
    }
    assert not _is_restored(world, lies[forged])
    with world.store.write() as tx:
        assert not recovery.begin_if_restored(tx, lies[forged], "a2", "token of a2")
    assert not _status(world)["inRecovery"]


@pytest.mark.rule("C9", "C2")
def test_what_was_deployed_after_the_restore_was_deployed_again(world: World, agent: Player) -> None:
    """An empty database in the place of a lost one has nothing that an agent of before could hold back."""
    seen = proven(world.store, LastSeen(incarnation="0" * 32, event=90, event_id="ab", at=world.clock.now))
    world.clock.advance(60)
    world.deploy("ls-b", net("other"))
    with world.store.write() as tx:
        tokens.create(tx, NewToken("new", "agent", EVERYTHING))
        assert recovery.begin_if_restored(tx, seen, "a2", "token of a2")
    found = _status(world)
    assert [one["id"] for one in found["liveSystems"]] == ["ls-a"]
    assert found["tokens"] == []


@pytest.mark.rule("C9")
@pytest.mark.parametrize("remembered", ["before the recovery", "after it"])
def test_a_recovery_covers_what_agents_saw_before_it_began_and_nothing_later(
    world: World, agent: Player, remembered: str
) -> None:
    """One backup restored twice: agents remember an incarnation that it does not know, and are confirmed once."""
    del agent
    if remembered == "after it":
        _begin(world)
    lost = proven(world.store, LastSeen(incarnation="0" * 32, event=90, event_id="ab", at=world.clock.now))
    if remembered == "before the recovery":
        world.clock.advance(1)
        _begin(world)
    world.clock.advance(1)
    assert _is_restored(world, lost) is (remembered == "after it")


# --- in a recovery


def _held(world: World, agent: Player) -> None:
    _begin(world)
    agent.remembers = None
    agent.register()
    agent.claim()


@pytest.mark.rule("C9")
def test_intents_and_endings_are_refused_for_a_live_system_in_recovery(world: World, agent: Player) -> None:
    _held(world, agent)
    with world.store.write() as tx:
        tx.connection.execute(update(components).values(deleting=True))
    uid = agent.uid("ls-a", "net")
    entry = JournalEntry(id="w1", uid=uid, generation=1, verb="update", reason="drift")
    refused: list[Callable[[], object]] = [
        lambda: agent.report(journal=[entry]),
        lambda: agent.report(agent.says("ls-a", "net", intent=Intent(id="i", at=world.clock.now))),
        lambda: agent.report(agent.says("ls-a", "net", status=Status.DELETED, finished=True)),
    ]
    for report in refused:
        with pytest.raises(LeaseLost, match="in recovery"):
            report()
    agent.report(agent.says("ls-a", "net", message="read", stuck=True, restored=True))
    assert world.component("ls-a", "net")["message"] == "read"


@pytest.mark.rule("C9", "C8")
def test_components_say_what_to_do_before_any_agent_comes_by(world: World, agent: Player) -> None:
    mutation_id = world.live_system("ls-a")["mutationId"]
    world.deploy("ls-a", net())
    mutation_id = world.live_system("ls-a")["mutationId"]
    assert world.mutation("ls-a", mutation_id)["status"] == "InProgress"
    _begin(world)
    message = world.component("ls-a", "net")["message"]
    assert "restored from a backup" in message
    assert "`fractal restored confirm ls-a`" in message
    assert world.mutation("ls-a", mutation_id)["status"] == "Failed", "it waits for what only a person can resolve"


@pytest.mark.rule("C9", "G10", "G13")
@pytest.mark.parametrize("kind", list(RequestKind))
def test_open_requests_of_a_backup_are_void_and_new_ones_are_refused(
    world: World, agent: Player, kind: RequestKind
) -> None:
    with world.store.write() as tx:
        requests.ask(tx, "ls-a", "net", Asked(kind, "ann"), CATALOG)
    _held(world, agent)
    assert agent.work[agent.uid("ls-a", "net")].request is None
    voided = [event for event in world.events("ls-a") if event["kind"] == "RequestVoided"]
    assert [event["componentId"] for event in voided] == ["net"]
    assert kind.value in voided[0]["message"]
    with world.store.write() as tx, pytest.raises(Refused, match="restored from a backup"):
        requests.ask(tx, "ls-a", "net", Asked(kind, "ann"), CATALOG)


@pytest.mark.rule("C9", "S17")
@pytest.mark.parametrize(("tagging", "kept"), [("", ""), ("owed", "begun"), ("begun", "begun")])
def test_open_intents_of_a_backup_only_recognise(world: World, agent: Player, tagging: Any, kept: str) -> None:
    intent = Intent(id="i", at=world.clock.now, tagging=tagging)
    agent.report(agent.says("ls-a", "net", intent=intent))
    _held(world, agent)
    found = agent.work[agent.uid("ls-a", "net")].memory
    assert found.restored
    assert found.intent is not None
    assert (found.intent.id, found.intent.restored, found.intent.tagging) == ("i", True, kept)


@pytest.mark.rule("C9", "S12a")
def test_what_a_backup_says_was_shown_is_shown_again(world: World, agent: Player) -> None:
    agent.report(agent.says("ls-a", "net", noticed=True))
    _held(world, agent)
    memory = agent.work[agent.uid("ls-a", "net")].memory
    assert (memory.noticed_since, memory.restored, memory.stance) == (None, True, Stance.MANAGED)


@pytest.mark.rule("C9")
def test_what_was_handed_back_by_memory_in_a_backup_is_not_handed_back(world: World, agent: Player) -> None:
    agent.report(agent.says("ls-a", "net", stance=Stance.OVERRIDE, overridden=True))
    with world.store.write() as tx:
        since = {"since": tx.now.isoformat(), "by": "ann", "reason": None, "until": None, "readoptedBy": "bob"}
        tx.connection.execute(update(components).values(override=since))
    _held(world, agent)
    override = agent.work[agent.uid("ls-a", "net")].memory.override
    assert override is not None
    assert (override.by, override.readopted_by) == ("ann", None)


# --- its end


PLAN: dict[str, Any] = {
    "components": [
        {"componentId": "net", "type": "Test.Net", "action": "change", "changes": {}, "resourceId": "id-net"}
    ]
}


def _show(world: World, plan: dict[str, Any] = PLAN) -> str | None:
    with world.store.write() as tx:
        fingerprint: str | None = recovery.show(tx, "ls-a", plan)["fingerprint"]
        return fingerprint


def _confirm(world: World, fingerprint: str) -> None:
    with world.store.write() as tx:
        recovery.confirm(tx, "ls-a", fingerprint, "bob")


@pytest.mark.rule("C9", "S12a")
def test_only_what_was_shown_can_be_confirmed(world: World, agent: Player) -> None:
    _held(world, agent)
    with pytest.raises(Refused, match="have it shown again"):
        _confirm(world, "0" * 64)
    unknown = {"components": [{**PLAN["components"][0], "action": "unknown"}]}
    assert _show(world, unknown) is None
    old = _show(world)
    assert old is not None
    new = _show(world, {"components": [{**PLAN["components"][0], "action": "delete"}]})
    assert new is not None
    with pytest.raises(Refused, match="have it shown again"):
        _confirm(world, old)
    world.clock.advance(timedelta(hours=1, seconds=1).total_seconds())
    with pytest.raises(Refused, match="have it shown again"):
        _confirm(world, new)
    fresh = _show(world)
    assert fresh is not None
    _confirm(world, fresh)
    assert not _status(world)["inRecovery"]
    assert world.kinds("ls-a")[-1] == "RecoveryConfirmed"
    agent.register()
    agent.claim()
    part = agent.work[agent.uid("ls-a", "net")]
    assert (part.in_recovery, part.memory.restored, part.memory.stuck) == (False, True, False)
    with pytest.raises(Refused, match="does not wait"):
        _confirm(world, fresh)


@pytest.mark.rule("C9")
def test_what_was_judged_before_it_was_confirmed_is_not_written(world: World, agent: Player) -> None:
    """A lease, and work of before, are of no use: neither when the recovery begins nor when it ends."""
    _held(world, agent)
    uid = agent.uid("ls-a", "net")
    fingerprint = _show(world)
    assert fingerprint is not None
    _confirm(world, fingerprint)
    entry = JournalEntry(id="w1", uid=uid, generation=1, verb="update", reason="drift")
    with pytest.raises(LeaseLost, match="claim again"):
        agent.report(journal=[entry])


@pytest.mark.rule("C9")
def test_a_deploy_is_as_good_as_confirming(world: World, agent: Player) -> None:
    _held(world, agent)
    world.deploy("ls-a", net())
    assert not world.live_system("ls-a")["inRecovery"]
    agent.claim()
    part = agent.work[agent.uid("ls-a", "net")]
    assert (part.in_recovery, part.memory.restored, part.memory.stuck) == (False, True, False)
    assert "not reconciled yet" in part.memory.message


@pytest.mark.rule("C9", "O10")
def test_what_was_being_deleted_in_the_backup_can_be_deployed_again(world: World, agent: Player) -> None:
    world.delete("ls-a")
    with pytest.raises(Refused, match="being deleted"):
        world.deploy("ls-a", net())
    _held(world, agent)
    world.deploy("ls-a", net())
    assert not world.live_system("ls-a")["deleting"]
    agent.claim()
    part = agent.work[agent.uid("ls-a", "net")]
    assert (part.deleting, part.bound, part.in_recovery) == (False, None, False)


@pytest.mark.rule("C9")
def test_agents_tokens_wait_until_an_admin_confirmed_the_list(world: World) -> None:
    with world.store.write() as tx:
        for name, role in (("west", "agent"), ("east", "agent"), ("ann", "operator")):
            tokens.create(tx, NewToken(name, role, EVERYTHING))
    _begin(world)
    waiting = {token["name"]: token["id"] for token in _status(world)["tokens"]}
    assert sorted(waiting) == ["east", "west"], "nobody else's token waits"
    with pytest.raises(Forbidden, match="confirm-tokens"):
        world.agent(token=waiting["west"])
    with world.store.write() as tx, pytest.raises(Refused):
        recovery.confirm_tokens(tx, [waiting["west"], "00"], "admin")
    with world.store.write() as tx:
        assert recovery.confirm_tokens(tx, [waiting["west"]], "admin") == ["west"]
    world.agent(token=waiting["west"])
    with pytest.raises(Forbidden):
        world.agent("a2", token=waiting["east"])
    assert "TokensConfirmed" in [event["kind"] for event in world.events()]


@pytest.mark.rule("C9")
def test_time_is_the_databases_and_the_newest_event_comes_with_it(world: World, agent: Player) -> None:
    with world.store.read() as tx:
        found = incarnations.newest(tx)
    assert found.at == world.clock.now
    assert found == agent.claim().last_seen
