"""New agents and keys make events, and wait where their environment requires approval (A2)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from fractal_cloud.control.store import agents, approvals, sealing_keys
from fractal_cloud.control.store.access import Access, revoke_token
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import insert_missing
from fractal_cloud.control.store.errors import AgentRefused, LeaseLost, NotFound, Refused
from fractal_cloud.control.store.housekeeping import keep_house
from fractal_cloud.control.store.key_withdrawals import Asked, withdraw
from fractal_cloud.control.store.schema import agents as agent_table
from fractal_cloud.control.store.schema import approvals as approval_table
from fractal_cloud.control.store.schema import tokens, types, withdrawn_keys
from fractal_cloud.model.sealing import fingerprint
from fractal_cloud.model.wire import Reach, Registered, Registration
from fractal_cloud.rules.grants import EVERYTHING
from tests.store.playing import CATALOG, EVERYWHERE, Player, World, net

REACH = ("test", "acct")


def _register(
    world: World, agent_id: str, key: str, *, realm: str = "acct", token: str = "token-a", environment: str = "default"
) -> Registered:
    reaches = [Reach(provider="test", realm=realm)]
    wanted = Registration(
        agent_id=agent_id,
        environment=environment,
        reaches=reaches,
        types=list(CATALOG.values()),
        cycle_seconds=5.0,
        public_key=key,
    )
    with world.store.write() as tx:
        _make_token(tx, token)
        return agents.register(tx, wanted, Access(token, token, EVERYTHING))


def _make_token(tx: Tx, token: str) -> None:
    """A token of that id and name, bound to everything, if it is not there."""
    every = {name: ["*"] for name in ("providers", "environments", "realms")}
    row = {"id": token, "hash": token, "name": token, "role": "agent", "created_at": tx.now, "created_by": "admin"}
    insert_missing(tx.connection, tokens, [{**row, **every}])


def _require(world: World, *, approval: bool = True, environment: str = "default") -> list[dict[str, Any]]:
    with world.store.write() as tx:
        let_in = approvals.require(tx, environment, approval=approval, by="olga")
        agents.admit(tx, let_in)
    return let_in


def _approve(world: World, wanted: str) -> None:
    with world.store.write() as tx:
        agents.admit(tx, approvals.approve(tx, wanted, "olga"))


def _keys(world: World, environment: str = "default") -> list[str]:
    where = (environment, *REACH)
    with world.store.read() as tx:
        return sealing_keys.of_places(tx, {where})[where]


def _new(world: World) -> list[tuple[str, str]]:
    return [(e["kind"], e["message"]) for e in world.events("") if e["kind"] in ("NewAgent", "NewKey")]


def _player(world: World, agent_id: str) -> Player:
    return Player(world, agent_id)


@pytest.mark.rule("A2")
def test_a_new_agent_makes_an_event_that_names_its_token(world: World) -> None:
    _register(world, "a1", "key-1")
    [(kind, message)] = _new(world)
    assert kind == "NewAgent"
    assert "'a1' with token 'token-a' is new at test 'acct' in environment 'default'" in message
    assert fingerprint("key-1") in message


@pytest.mark.rule("A2")
def test_the_same_key_of_the_same_token_is_not_new_whatever_the_agent_is_called(world: World) -> None:
    _register(world, "a1", "key-1")
    _register(world, "a2", "key-1")
    _register(world, "a1", "key-1")
    assert len(_new(world)) == 1


@pytest.mark.rule("A2")
def test_another_key_of_a_token_is_new_and_so_is_another_token(world: World) -> None:
    _register(world, "a1", "key-1")
    _register(world, "a1", "key-2")
    _register(world, "b1", "key-1", token="token-b")
    assert [kind for kind, _ in _new(world)] == ["NewAgent", "NewKey", "NewAgent"]
    assert "brings a new sealing key" in _new(world)[1][1]


@pytest.mark.rule("A2")
def test_an_agent_that_reaches_a_further_realm_is_new_there(world: World) -> None:
    _register(world, "a1", "key-1")
    _register(world, "a1", "key-1", realm="second")
    assert [kind for kind, _ in _new(world)] == ["NewAgent", "NewAgent"]


@pytest.mark.rule("A2")
def test_nothing_is_leased_or_sealed_to_who_waits(world: World) -> None:
    world.deploy("ls-a", net())
    _require(world)
    registered = _register(world, "a1", "key-1", token=EVERYWHERE.token_id)
    assert [(reach.provider, reach.realm) for reach in registered.waiting] == [REACH]
    player = _player(world, "a1")
    claimed = player.claim()
    assert (claimed.leases, claimed.plans, claimed.hosts) == ([], [], None)
    assert _keys(world) == []
    assert "it waits until somebody approves it: fractal agent approve a1" in _new(world)[0][1]


@pytest.mark.rule("A2")
def test_who_waits_binds_no_realm_and_brings_no_type(world: World) -> None:
    world.deploy("ls-a", net())
    _require(world)
    _register(world, "a1", "key-1")
    with world.store.read() as tx:
        assert agents.realms(tx) == {}
        assert tx.connection.execute(types.select()).all() == []


@pytest.mark.rule("A2")
@pytest.mark.parametrize("by", ["a1", "key-1", fingerprint("key-1")])
def test_an_approved_agent_registers_again_and_is_let_in(world: World, by: str) -> None:
    world.deploy("ls-a", net())
    _require(world)
    _register(world, "a1", "key-1", token=EVERYWHERE.token_id)
    player = _player(world, "a1")
    assert not player.claim().register_again
    _approve(world, by)
    assert player.claim().register_again
    registered = _register(world, "a1", "key-1", token=EVERYWHERE.token_id)
    assert registered.waiting == []
    claimed = player.claim()
    assert [lease.scope for lease in claimed.leases] == ["test/acct/north"]
    assert not claimed.register_again
    assert _keys(world) == ["key-1"]
    assert world.kinds("")[-2:] == ["AgentApproved", "RealmReached"]


@pytest.mark.rule("A2")
def test_an_approved_agent_that_comes_with_another_key_waits_again(world: World) -> None:
    _require(world)
    _register(world, "a1", "key-1")
    _approve(world, "a1")
    assert _register(world, "a1", "key-1").waiting == []
    assert len(_register(world, "a1", "key-2").waiting) == 1
    assert len(_register(world, "a1", "key-1", realm="second").waiting) == 1
    assert _register(world, "a9", "key-1").waiting == [], "the same token and key, whatever it is called"


@pytest.mark.rule("A2")
def test_who_was_there_before_approval_was_required_is_not_new(world: World) -> None:
    _register(world, "a1", "key-1")
    _require(world)
    assert _register(world, "a1", "key-1").waiting == []
    assert _keys(world) == ["key-1"]


@pytest.mark.rule("A2")
def test_all_who_wait_are_let_in_when_approval_is_no_longer_required(world: World) -> None:
    _require(world)
    _register(world, "a1", "key-1", token=EVERYWHERE.token_id)
    [let_in] = _require(world, approval=False)
    assert (let_in["agentId"], let_in["token"], let_in["key"]) == ("a1", EVERYWHERE.token, fingerprint("key-1"))
    assert _player(world, "a1").claim().register_again
    assert world.kinds("") == ["ApprovalChanged", "NewAgent", "ApprovalChanged", "AgentApproved"]


@pytest.mark.rule("A2")
def test_a_key_that_another_environment_let_in_is_not_approved_in_this_one(world: World) -> None:
    _require(world, environment="prod")
    _register(world, "a1", "key-1", environment="lab")
    assert _keys(world, "lab") == ["key-1"]
    assert _keys(world, "prod") == []


@pytest.mark.rule("A2")
def test_who_comes_by_another_environment_to_a_realm_that_requires_approval_waits_too(world: World) -> None:
    _register(world, "a1", "key-1", environment="prod")
    _require(world, environment="prod")
    assert len(_register(world, "a2", "key-2", token="token-b", environment="lab").waiting) == 1
    assert _register(world, "a2", "key-2", token="token-b", environment="lab", realm="lab's own").waiting == []


@pytest.mark.rule("A2")
def test_only_who_waits_can_be_approved(world: World) -> None:
    _register(world, "a1", "key-1")
    with pytest.raises(NotFound, match="no agent 'a1' waits for approval"):
        _approve(world, "a1")


@pytest.mark.rule("A2", "C8")
def test_components_that_only_an_unapproved_agent_serves_say_so_and_fail_the_mutation(world: World) -> None:
    _require(world)
    mutation = world.deploy("ls-a", net())
    for _ in range(2):
        _register(world, "a1", "key-1")
        world.clock.advance(5)
    _beat(world)
    keep_house(world.store.database, 5.0)
    component = world.component("ls-a", "net")
    assert component["message"] == (
        "nobody approved the agent that reaches 'test' in environment 'default' ('a1'): "
        "approve it with `fractal agent approve a1`, or revoke its token"
    )
    assert component["status"] == "Failed"
    assert world.mutation("ls-a", mutation)["status"] == "Failed"


def _beat(world: World) -> None:
    """It is alive all the time, and registered long ago."""
    with world.store.write() as tx:
        later = tx.now.replace(year=tx.now.year + 1)
        tx.connection.execute(update(agent_table).values(deadline=later, registered_at=tx.now.replace(year=2000)))


@pytest.mark.rule("A2")
def test_an_approval_and_its_end_are_distinguished_by_realm(world: World) -> None:
    _require(world)
    _register(world, "a1", "key-1")
    _approve(world, "a1")
    _register(world, "a1", "key-1", realm="second")
    with world.store.read() as tx:
        assert [(row.provider, row.realm) for row in approvals.waiting(tx)] == [("test", "second")]


# --- an approval that does not last


def _withdraw(world: World, wanted: str) -> list[dict[str, Any]]:
    with world.store.write() as tx:
        withdrawn = approvals.withdraw(tx, wanted, "olga", "its disk was stolen")
        agents.hold_back(tx, withdrawn)
    return withdrawn


def _approved_player(world: World) -> Player:
    """An agent that an operator approved, and that has a lease."""
    world.deploy("ls-a", net())
    _require(world)
    _register(world, "a1", "key-1", token=EVERYWHERE.token_id)
    _approve(world, "a1")
    _register(world, "a1", "key-1", token=EVERYWHERE.token_id)
    player = _player(world, "a1")
    assert [lease.scope for lease in player.claim().leases] == ["test/acct/north"]
    return player


@pytest.mark.rule("A2")
@pytest.mark.parametrize("by", ["a1", "key-1", fingerprint("key-1")])
def test_who_is_approved_no_longer_loses_its_leases_at_once_and_nothing_is_sealed_to_it(world: World, by: str) -> None:
    player = _approved_player(world)
    assert _keys(world) == ["key-1"]
    change = player.says("ls-a", "net")
    assert [one["realm"] for one in _withdraw(world, by)] == ["acct"]
    with pytest.raises(LeaseLost):
        player.report(change)
    claimed = player.claim()
    assert claimed.leases == []
    assert claimed.register_again, "so that it hears that it waits"
    assert _keys(world) == []
    registered = _register(world, "a1", "key-1", token=EVERYWHERE.token_id)
    assert [(reach.provider, reach.realm) for reach in registered.waiting] == [REACH]
    assert player.claim().leases == []
    [message] = [e["message"] for e in world.events("") if e["kind"] == "ApprovalWithdrawn"]
    assert "agent 'a1'" in message
    assert message.endswith("its disk was stolen")
    _approve(world, "a1")
    assert _register(world, "a1", "key-1", token=EVERYWHERE.token_id).waiting == []


@pytest.mark.rule("A2")
def test_an_approval_is_withdrawn_from_every_agent_with_that_token_and_key(world: World) -> None:
    _approved_player(world)
    _register(world, "a2", "key-1", token=EVERYWHERE.token_id)
    _withdraw(world, "a2")
    with world.store.read() as tx:
        assert {agent.id: len(agent.realms) for agent in agents.all_agents(tx)} == {"a1": 0, "a2": 0}


@pytest.mark.rule("A2")
def test_where_nobody_has_to_be_approved_no_approval_can_be_withdrawn(world: World) -> None:
    _register(world, "a1", "key-1")
    with pytest.raises(Refused, match=r"'default' does not require approval.*fractal token revoke"):
        _withdraw(world, "a1")
    with pytest.raises(NotFound, match="no agent 'nobody' is approved"):
        _withdraw(world, "nobody")


@pytest.mark.rule("A2")
def test_who_was_there_before_waits_once_an_environment_that_requires_approval_comes_to_its_realm(world: World) -> None:
    _require(world, environment="prod")
    early = world.agent("early", environment="lab")
    world.deploy("ls-lab", net("lab-net"), environment="lab")
    assert [lease.scope for lease in early.claim().leases] == ["test/acct/north"]
    _register(world, "a1", "key-1", environment="prod")
    _approve(world, "a1")
    _register(world, "a1", "key-1", environment="prod")
    world.deploy("ls-prod", net(), environment="prod")
    assert early.claim().leases == [], "nobody approved it for what is in production"
    with world.store.read() as tx:
        assert [row.agent_id for row in approvals.waiting(tx)] == ["early"]
    _approve(world, "early")
    early.register(environment="lab")
    assert [lease.scope for lease in early.claim().leases] == ["test/acct/north"]


@pytest.mark.rule("A2")
def test_who_may_not_serve_that_environment_anyway_goes_on_where_it_was(world: World) -> None:
    _require(world, environment="prod")
    early = world.agent("early", environment="lab", access=world.token("lab's", environments="lab"))
    _register(world, "a1", "key-1", environment="prod")
    _approve(world, "a1")
    _register(world, "a1", "key-1", environment="prod")
    world.deploy("ls-lab", net("lab-net"), environment="lab")
    assert [lease.scope for lease in early.claim().leases] == ["test/acct/north"]


# --- a token that comes with a new key each time


@pytest.mark.rule("A9")
def test_only_so_many_keys_of_a_token_wait_and_those_of_others_do(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "MOST_WAITING", 3)
    _require(world)
    for number in range(3):
        _register(world, f"a{number}", f"key-{number}")
    with pytest.raises(AgentRefused, match="3 keys of token 'token-a' wait for approval already"):
        _register(world, "a3", "key-3")
    assert len(_register(world, "a1", "key-1").waiting) == 1, "who waits already is not one more"
    assert len(_register(world, "b1", "key-b", token="token-b").waiting) == 1
    _approve(world, "a0")
    assert len(_register(world, "a3", "key-3").waiting) == 1


@pytest.mark.rule("A9")
def test_keys_that_nobody_asked_about_are_forgotten_by_number_but_for_those_in_use(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "MOST_KNOWN", 5)
    _register(world, "in-use", "key-in-use")
    for number in range(20):
        _register(world, "restarts", f"key-{number}")
        world.clock.advance(1)
        _beat_one(world, "in-use")
    with world.store.read() as tx:
        known = set(tx.connection.execute(select(approval_table.c.public_key)).scalars())
    assert len(known) <= 5
    assert {"key-in-use", "key-19"} <= known


@pytest.mark.rule("A9")
def test_what_an_operator_approved_is_not_forgotten_for_a_flood_of_keys(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "MOST_KNOWN", 3)
    _require(world)
    _register(world, "a1", "key-1")
    _approve(world, "a1")
    _require(world, approval=False)
    for number in range(10):
        _register(world, "flood", f"key-of-flood-{number}")
    _require(world)
    assert _register(world, "a1", "key-1").waiting == []


@pytest.mark.rule("A9")
def test_a_token_has_only_so_many_agents(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "MOST_OF_A_TOKEN", 3)
    for number in range(3):
        _register(world, f"a{number}", "key")
    with pytest.raises(AgentRefused, match="3 agents of token 'token-a' are alive"):
        _register(world, "a3", "key")
    _register(world, "a1", "key")
    _register(world, "b1", "key", token="token-b")
    world.clock.advance(600)
    _register(world, "a3", "key")
    with world.store.read() as tx:
        assert [agent.id for agent in agents.all_agents(tx)] == ["a3", "b1"], "the dead make way, those of others stay"


@pytest.mark.rule("A2", "A9")
def test_what_waited_with_a_token_waits_no_longer_when_it_is_revoked(world: World) -> None:
    _require(world)
    access = world.token("stolen")
    for number in range(3):
        _register(world, f"a{number}", f"key-{number}", token=access.token_id)
    with world.store.write() as tx:
        tx.connection.execute(update(approval_table).values(token_name="stolen"))
        revoke_token(tx, "stolen", "olga")
        assert approvals.waiting(tx) == []


@pytest.mark.rule("A9")
def test_withdrawn_keys_and_what_is_known_of_revoked_tokens_is_kept_as_long_as_history(world: World) -> None:
    _register(world, "a1", "key-1")
    _register(world, "a1", "key-2")
    with world.store.write() as tx:
        withdraw(tx, fingerprint("key-1"), Asked("olga", "rotated"))
    _register(world, "b1", "key-b", token="token-b")
    with world.store.write() as tx:
        tx.connection.execute(delete(tokens).where(tokens.c.name == "token-b"))

    def known() -> set[str]:
        with world.store.read() as tx:
            kept = set(tx.connection.execute(select(approval_table.c.public_key)).scalars())
            return kept | {
                f"withdrawn {key}" for key in tx.connection.execute(select(withdrawn_keys.c.public_key)).scalars()
            }

    keep = timedelta(days=30)
    keep_house(world.store.database, 5.0, keep=keep)
    assert known() == {"key-1", "key-2", "key-b", "withdrawn key-1"}
    world.clock.advance(timedelta(days=31).total_seconds())
    keep_house(world.store.database, 5.0, keep=keep)
    assert known() == {"key-2"}, "its token is there, and may come with it again"


def _beat_one(world: World, agent_id: str) -> None:
    with world.store.write() as tx:
        later = tx.now + timedelta(seconds=60)
        tx.connection.execute(update(agent_table).where(agent_table.c.id == agent_id).values(deadline=later))
