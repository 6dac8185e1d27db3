"""Withdrawing sealing keys, and who hears of keys (A5).

Nothing is sealed to a withdrawn key any more, and what was sealed to it is revoked and provided anew by the agents of
the targets. A key that is only gone changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import and_, select, update

from fractal_cloud.control.store import links, scopes, sealing_keys
from fractal_cloud.control.store.approvals import named
from fractal_cloud.control.store.database import Database, PendingEvent, Tx
from fractal_cloud.control.store.driver import insert_rows
from fractal_cloud.control.store.errors import NotFound
from fractal_cloud.control.store.realm_bindings import NOBODYS
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.schema import agents, withdrawn_keys
from fractal_cloud.control.store.sealing_keys import Realm
from fractal_cloud.control.store.visibility import Environments, refuse_environment
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.sealing import fingerprint


def announce(database: Database, agent_id: str, public_key: str, realms: Iterable[Realm]) -> None:
    """Have the agents of targets hear of an agent's key: what its sources have not received yet is sealed to it, too.

    Not in the transaction in which it registers, so that all affected scopes are locked at once and in one order.
    """
    with database.write() as tx:
        scopes.announce(tx, links.listeners_to_keys(tx, realms))
        is_same = and_(agents.c.id == agent_id, agents.c.public_key == public_key)
        tx.connection.execute(update(agents).where(is_same).values(key_is_news=False))


# --- withdrawing


@dataclass(frozen=True, slots=True)
class Asked:
    """Who withdraws a key, why, and the environments that their token is bound to."""

    by: str
    reason: str
    bound_to: Environments = None


def withdraw(tx: Tx, key: str, asked: Asked) -> Json:
    """Withdraw a key, given by its fingerprint: nothing is sealed to it, and what was is revoked and provided anew."""
    public_key = sealing_keys.find(tx, key)
    if public_key is None:
        raise NotFound(f"there is no sealing key {key!r}: GET /sealing-keys lists them")
    rows = sealing_keys.of_key(tx, public_key)
    for row in rows:
        refuse_environment(asked.bound_to, row["environment"])
    if not sealing_keys.is_withdrawn(tx, public_key):
        gone = {"fingerprint": key, "public_key": public_key, "at": tx.now, "by": asked.by, "reason": asked.reason}
        insert_rows(tx.connection, withdrawn_keys, [gone])
        _notify(tx, public_key, {(row["provider"], row["realm"]) for row in rows})
        _record(tx, key, rows, asked)
    return {"fingerprint": key, "realms": sealing_keys.of_key(tx, public_key)}


def withdraw_of_agent(tx: Tx, agent_id: str, asked: Asked) -> Json:
    """Withdraw the key with which an agent last registered; it makes a new one when it hears of it."""
    key = tx.connection.execute(select(agents.c.public_key).where(agents.c.id == agent_id)).scalar()
    if key is None:
        raise NotFound(f"there is no agent {agent_id!r}: GET /agents lists them")
    if not key:
        raise NotFound(f"agent {agent_id!r} registered without a key: nothing was ever sealed to it")
    return withdraw(tx, fingerprint(key), asked)


def _notify(tx: Tx, public_key: str, realms: Iterable[Realm]) -> None:
    """Have the agents of all targets hear of it, and the agents whose key it is."""
    tx.connection.execute(update(agents).where(agents.c.public_key == public_key).values(key_withdrawn=True))
    holders = tx.connection.execute(select(agents.c.id).where(agents.c.public_key == public_key)).scalars().all()
    affected = links.listeners_to_keys(tx, realms)
    held = {scope for holder in holders for scope in scopes.held_by(tx, holder)}
    scopes.lock(tx, held | set(affected.values()))  # all of them at once, in one order
    scopes.announce(tx, affected)
    scopes.wake(tx, held)


def _record(tx: Tx, key: str, rows: Sequence[Json], asked: Asked) -> None:
    """One event for everybody; what follows for each secret is an event of its target."""
    where = named(sorted({(row["provider"], row["realm"]) for row in rows}))
    agents_of = ", ".join(sorted({repr(row["agentId"]) for row in rows}))
    text = f"sealing key {key} of agent {agents_of} at {where} withdrawn: {asked.reason}"
    tx.record(PendingEvent(NOBODYS, EventKind.KEY_WITHDRAWN, asked.by, message=text, after=key))
