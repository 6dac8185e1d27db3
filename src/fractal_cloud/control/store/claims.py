"""Handing out work: which scopes an agent holds, and what is new in each."""

from __future__ import annotations

from fractal_cloud.control.store import agents, plans, scopes, work
from fractal_cloud.control.store.database import Database, Tx
from fractal_cloud.control.store.records import Json
from fractal_cloud.model.wire import Claim


def claim(database: Database, wanted: Claim, token_id: str) -> Json:
    """All leases an agent holds, some new ones, and work where it changed; as ``Claimed`` spells it.

    Nothing is written where nothing is new. An agent whose deadline has passed gets nothing: it must be heard first.
    """
    with database.read() as tx:
        agent = agents.get(tx, wanted.agent_id, token_id)
        if not _is_anything_to_take(tx, agent, wanted):
            return _answer(tx, agent, wanted, taken=set())
    with database.write() as tx:
        agent = agents.get(tx, wanted.agent_id, token_id)
        scopes.drop_empty(tx, agent.id)
        taken: set[str] = set()
        if agent.deadline > tx.now:
            taken = scopes.take(tx, agent.id, scopes.free_within(tx, agent.id, agent.reaches, wanted.limit))
        answer = _answer(tx, agent, wanted, taken)
        handed = {lease["scope"]: lease["work"]["version"] for lease in answer["leases"] if lease["work"] is not None}
        heard = {key: version for key, version in wanted.held.items() if key in handed and key not in taken}
        scopes.note_handed(tx, handed, heard)
        answer["plans"] = plans.hand_out(tx, agent.reaches)
        return answer


def _is_anything_to_take(tx: Tx, agent: agents.Agent, wanted: Claim) -> bool:
    if agent.deadline > tx.now and scopes.free_within(tx, agent.id, agent.reaches, min(wanted.limit, 1)):
        return True
    held = scopes.held_by(tx, agent.id)
    if any(wanted.held.get(key) != row.version for key, row in held.items()) or scopes.has_empty(tx, agent.id):
        return True
    return plans.is_any_waiting(tx, agent.reaches)


def _answer(tx: Tx, agent: agents.Agent, wanted: Claim, taken: set[str]) -> Json:
    answer: Json = {
        "now": tx.now,
        "wake": scopes.wake_number(tx, agent.reaches),
        "leases": [],
        "plans": [],
    }
    if agent.deadline <= tx.now:
        return answer
    held = scopes.held_by(tx, agent.id)
    whole = {key: row.version for key, row in held.items() if key in taken or wanted.held.get(key, -1) < 0}
    full = work.full_work(tx, whole)
    for key, row in held.items():
        news: Json | None = None
        if key in whole:
            news = full[key]
        elif wanted.held[key] != row.version:
            news = work.changed_work(tx, key, row.version, wanted.held[key])
        answer["leases"].append({"scope": key, "token": row.token, "work": news})
    return answer
