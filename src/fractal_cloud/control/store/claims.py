"""Claims of agents: which scopes an agent holds, and what is new in each."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fractal_cloud.control.store import (
    access,
    agents,
    hosted_components,
    hosts,
    key_withdrawals,
    plan_tasks,
    scopes,
    work,
)
from fractal_cloud.control.store.access import Access
from fractal_cloud.control.store.balancing import Place, asked_back
from fractal_cloud.control.store.claim_snapshot import ClaimSnapshot, read_snapshot
from fractal_cloud.control.store.database import Database, Tx
from fractal_cloud.control.store.failures import again
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.report_words import check_texts
from fractal_cloud.model.wire import Claim
from fractal_cloud.rules.grants import Grants

MOST_AT_ONCE = 10_000
Held = Mapping[str, scopes.ScopeRow]


def claim(database: Database, wanted: Claim, speaker: Access) -> Json:
    """All leases an agent holds, some new ones, and work where it changed; as ``Claimed`` spells it.

    Nothing is written where nothing is new; only then is an agent asked to give back what is beyond its share. An agent
    whose deadline has passed gets nothing: it must be heard first.
    """
    check_texts(f"the claim of agent {wanted.agent_id!r}", wanted.unreached.keys(), wanted.unreached.values())
    with database.read() as tx:
        seen = read_snapshot(tx, wanted.agent_id, wanted.last_seen, speaker)
        if not _is_anything_to_write(tx, seen, wanted, speaker.grants):
            places = {key: Place(row.provider, row.realm, str(row.label)) for key, row in seen.held.items()}
            answer = _answer(tx, seen, wanted, seen.held, set(), speaker.grants)
            return {**answer, "askedBack": asked_back(seen.agent.id, seen.pools, places)}
    agent = seen.agent
    answer = _claim_more(database, agent, wanted, speaker)
    if answer["hosts"] is not None:
        again(lambda: hosted_components.place(database, agent, speaker))
    if wanted.unreached:
        again(lambda: hosted_components.report_unreached(database, agent, speaker.grants, wanted.unreached))
    if agent.key_is_news:  # by itself: plans were sent out, and are not sent twice
        again(lambda: key_withdrawals.announce(database, agent.id, agent.public_key, agent.reaches))
    return answer


def _claim_more(database: Database, agent: agents.Agent, wanted: Claim, speaker: Access) -> Json:
    with database.write() as tx:
        scopes.drop_empty(tx, agent.id)
        seen = read_snapshot(tx, agent.id, wanted.last_seen, speaker)
        if not seen.is_noted:  # registered by a server that did not note it yet
            access.note_reaches(tx, agent.id, seen.agent.reaches)
            seen = read_snapshot(tx, agent.id, wanted.last_seen, speaker)
        leased = scopes.lease_free(tx, agent.id, seen.pools, min(wanted.limit, MOST_AT_ONCE))
        held = scopes.held_by(tx, agent.id)
        beyond = scopes.beyond(tx, held)
        scopes.release(tx, agent.id, beyond)
        held = {key: row for key, row in held.items() if key not in beyond}
        answer = _answer(tx, seen, wanted, held, leased, speaker.grants)
        scopes.forget_departures(tx, _heard(held, wanted))
        answer["plans"] = plan_tasks.hand_out(tx, seen.agent)
        return answer


def _is_anything_to_write(tx: Tx, seen: ClaimSnapshot, wanted: Claim, grants: Grants) -> bool:
    agent, held, pools = seen.agent, seen.held, seen.pools
    is_alive = agent.deadline > tx.now
    with_work = sum(pool.held[agent.id] for pool in pools)
    return (
        not seen.is_noted
        or bool(seen.beyond)
        or (wanted.limit > 0 and any(pool.free and pool.capacity_for(agent.id) for pool in pools))
        or (is_alive and with_work < len(held))
        or agent.key_is_news
        or seen.has_heard(_heard(held, wanted))
        or seen.is_plan_waiting
        or seen.hosts != wanted.hosts
        or (bool(wanted.unreached) and hosted_components.has_unreached_news(tx, agent, grants, wanted.unreached))
    )


def _heard(held: Held, wanted: Claim) -> dict[str, int]:
    """The versions of the work an agent has, of scopes that are really its own."""
    return {key: version for key, version in wanted.held.items() if key in held and version <= held[key].version}


def _answer(tx: Tx, seen: ClaimSnapshot, wanted: Claim, held: Held, leased: Collection[str], grants: Grants) -> Json:
    agent = seen.agent
    answer: Json = {
        "now": tx.now,
        "wake": seen.wake,
        "lastSeen": seen.last_seen,
        "leases": [],
        "plans": [],
        "askedBack": [],
        "hosts": None,
        "registerAgain": agent.has_news,
        "keyWithdrawn": agent.key_withdrawn,
    }
    if seen.hosts != wanted.hosts:
        answer["hosts"] = hosts.for_agents(tx, agent.environment, agent.hosted, grants).to_json()
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
