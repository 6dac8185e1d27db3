"""Claims of agents: which scopes an agent holds, and what is new in each."""

from __future__ import annotations

from collections.abc import Mapping

from fractal_cloud.control.store import agents, hosted_components, hosts, links, plan_tasks, scopes, work
from fractal_cloud.control.store.balancing import asked_back
from fractal_cloud.control.store.claim_snapshot import ClaimSnapshot, read_snapshot
from fractal_cloud.control.store.database import Database, Tx
from fractal_cloud.control.store.failures import again
from fractal_cloud.control.store.records import Json
from fractal_cloud.model.wire import Claim

MOST_AT_ONCE = 10_000
Held = Mapping[str, scopes.ScopeRow]


def claim(database: Database, wanted: Claim, token_id: str) -> Json:
    """All leases an agent holds, some new ones, and work where it changed; as ``Claimed`` spells it.

    Nothing is written where nothing is new; only then is an agent asked to give back what is beyond its share. An agent
    whose deadline has passed gets nothing: it must be heard first.
    """
    with database.read() as tx:
        seen = read_snapshot(tx, wanted.agent_id, wanted.last_seen, token_id)
        if not _is_anything_to_write(tx, seen, wanted):
            realms = {key: (row.provider, row.realm) for key, row in seen.held.items()}
            answer = _answer(tx, seen, wanted, seen.held, leased=set())
            return {**answer, "askedBack": asked_back(seen.agent.id, seen.pools, realms)}
    agent = seen.agent
    answer = _claim_more(database, agent, wanted)
    if answer["hosts"] is not None:
        again(lambda: hosted_components.place(database, agent))
    if wanted.unreached:
        again(lambda: hosted_components.report_unreached(database, agent, wanted.unreached))
    again(lambda: _announce_key(database, agent))  # by itself: plans were sent out, and are not sent twice
    return answer


def _claim_more(database: Database, agent: agents.Agent, wanted: Claim) -> Json:
    with database.write() as tx:
        scopes.drop_empty(tx, agent.id)
        seen = read_snapshot(tx, agent.id, wanted.last_seen, agent.token_id)
        if not seen.is_noted:  # registered by a server that did not note it yet
            agents.note_reaches(tx, agent.id, seen.agent.reaches)
            seen = read_snapshot(tx, agent.id, wanted.last_seen, agent.token_id)
        leased = scopes.lease_free(tx, agent.id, seen.pools, min(wanted.limit, MOST_AT_ONCE))
        held = scopes.held_by(tx, agent.id)
        answer = _answer(tx, seen, wanted, held, leased)
        scopes.forget_departures(tx, _heard(held, wanted))
        answer["plans"] = plan_tasks.hand_out(tx, seen.agent.reaches)
        return answer


def _announce_key(database: Database, agent: agents.Agent) -> None:
    """Announce the new holder's key to whoever seals values for sources in scopes that were just leased (L9).

    Not in the transaction that leases them, so that all affected scopes are locked at once and in one order.
    """
    with database.write() as tx:
        keys = scopes.with_another_key(tx, agent.id, agent.public_key)
        affected = links.listeners_to_key(tx, keys)
        scopes.lock(tx, keys | set(affected.values()))
        scopes.set_public_key(tx, keys, agent.public_key)
        scopes.announce(tx, affected)


def _is_anything_to_write(tx: Tx, seen: ClaimSnapshot, wanted: Claim) -> bool:
    agent, held, pools = seen.agent, seen.held, seen.pools
    is_alive = agent.deadline > tx.now
    with_work = sum(pool.held[agent.id] for pool in pools)
    return (
        not seen.is_noted
        or (wanted.limit > 0 and any(pool.free and pool.capacity_for(agent.id) for pool in pools))
        or (is_alive and with_work < len(held))
        or any(row.public_key != agent.public_key for row in held.values())
        or seen.has_heard(_heard(held, wanted))
        or seen.is_plan_waiting
        or seen.hosts != wanted.hosts
        or (bool(wanted.unreached) and hosted_components.has_unreached_news(tx, agent, wanted.unreached))
    )


def _heard(held: Held, wanted: Claim) -> dict[str, int]:
    """The versions of the work an agent has, of scopes that are really its own."""
    return {key: version for key, version in wanted.held.items() if key in held and version <= held[key].version}


def _answer(tx: Tx, seen: ClaimSnapshot, wanted: Claim, held: Held, leased: set[str]) -> Json:
    agent = seen.agent
    answer: Json = {
        "now": tx.now,
        "wake": seen.wake,
        "lastSeen": seen.last_seen,
        "leases": [],
        "plans": [],
        "askedBack": [],
        "hosts": None,
    }
    if seen.hosts != wanted.hosts:
        answer["hosts"] = hosts.for_agents(tx, agent.environment, agent.hosted).to_json()
    if agent.deadline <= tx.now:
        return answer
    whole = {
        key: row.version
        for key, row in held.items()
        if key in leased or not 0 <= wanted.held.get(key, -1) <= row.version
    }
    full = work.full_work(tx, whole)
    for key, row in held.items():
        news: Json | None = None
        if key in whole:
            news = full[key]
        elif wanted.held[key] != row.version:
            news = work.changed_work(tx, key, row.version, wanted.held[key])
        answer["leases"].append({"scope": key, "token": row.token, "work": news})
    return answer
