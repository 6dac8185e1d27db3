"""Scopes and their leases: who is the only writer of a scope, and how news of its work is counted.

What the work of a scope is stands in ``work``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    tuple_,
    update,
)

from fractal_cloud.control.store.balancing import Pool, Realm
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import (
    CHUNK,
    PreparedStatement,
    among,
    chunks,
    insert_missing,
    pair_among,
    update_rows,
)
from fractal_cloud.control.store.schema import agents, components, departures, scopes
from fractal_cloud.control.store.signals import reach_topic
from fractal_cloud.model.identity import Scope

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope as it stands: its holder, the token of the holder's lease, and the version of its work.

    ``public_key``: the one that values for its agent are sealed to. ``holder_token_id``: the token of access with which
    its holder registered; ``deadline``: until when it counts as alive.
    """

    key: str
    provider: str
    realm: str
    holder: str | None
    token: int
    version: int
    public_key: str
    holder_token_id: str | None
    deadline: datetime | None

    def is_leased(self, token: int, to: tuple[str, str], now: datetime) -> bool:
        """Whether this lease is the current one, and its holder (agent and access token) the caller."""
        is_same = (self.holder, self.holder_token_id) == to and self.token == token
        return is_same and self.deadline is not None and self.deadline > now


_COLUMNS = (
    *(scopes.c.key, scopes.c.provider, scopes.c.realm, scopes.c.holder),
    *(scopes.c.token, scopes.c.version, scopes.c.public_key),
    *(agents.c.token_id.label("holder_token_id"), agents.c.deadline),
)
_ROWS = select(*_COLUMNS).outerjoin_from(scopes, agents, agents.c.id == scopes.c.holder)


def lock(tx: Tx, keys: Iterable[str]) -> dict[str, ScopeRow]:
    """Lock the scopes of these keys until the transaction ends, always in one order; missing ones are created."""
    wanted = set(keys)
    create_missing(tx, wanted)
    return lock_existing(tx, wanted)


def create_missing(tx: Tx, keys: Iterable[str]) -> None:
    """Create the scopes of these keys that do not exist yet."""
    known = [Scope.from_key(key) for key in sorted(keys)]
    insert_missing(
        tx.connection,
        scopes,
        [{"key": scope.key, "provider": scope.provider, "realm": scope.realm, "place": scope.place} for scope in known],
    )


def lock_existing(tx: Tx, keys: Iterable[str]) -> dict[str, ScopeRow]:
    """Lock scopes that exist: those that have or had components, or a holder."""
    return {row.key: ScopeRow(*row) for row in _LOCK.rows(tx.connection, {"keys": set(keys)})}


_LOCK = PreparedStatement(_ROWS.where(among(scopes.c.key, "keys")).order_by(scopes.c.key).with_for_update(of=scopes))


def renew_work(tx: Tx, keys: Iterable[str]) -> dict[str, int]:
    """Give each scope's work a new version and wake its agents; the versions to put on the rows that changed."""
    return _renew(tx, lock(tx, keys))


def _renew(tx: Tx, held: Collection[str]) -> dict[str, int]:
    if not held:
        return {}
    rows = _RENEW.rows(tx.connection, {"keys": held})
    tx.wake(reach_topic(row.provider, row.realm) for row in rows)
    return {row.key: row.version for row in rows}


_RENEW = PreparedStatement(
    update(scopes)
    .where(among(scopes.c.key, "keys"))
    .values(version=scopes.c.version + 1, wake_seq=scopes.c.wake_seq + 1)
    .returning(scopes.c.key, scopes.c.provider, scopes.c.realm, scopes.c.version)
)


def renew_held(tx: Tx, keys: Collection[str]) -> None:
    """As ``renew_work``, of scopes that the caller has locked."""
    _renew(tx, keys)


def announce(tx: Tx, scope_of: Mapping[str, str]) -> None:
    """Let agents read components (uid to scope) again, for which something beside their declaration changed."""
    if scope_of:
        mark_news(tx, scope_of, renew_work(tx, set(scope_of.values())))


def announce_in_held(tx: Tx, scope_of: Mapping[str, str]) -> None:
    """As ``announce``, where the caller has locked all of the scopes."""
    if scope_of:
        mark_news(tx, scope_of, _renew(tx, set(scope_of.values())))


def mark_news(tx: Tx, scope_of: Mapping[str, str], versions: Mapping[str, int]) -> None:
    """Put the new version of their scope's work on components (uid to scope) for which there is news."""
    rows = [{"uid": uid, "work_version": versions[key]} for uid, key in scope_of.items()]
    update_rows(tx.connection, components, rows)


def with_another_key(tx: Tx, agent_id: str, public_key: str) -> set[str]:
    """The scopes an agent holds for whose agent values are still sealed to another key."""
    query = select(scopes.c.key).where(scopes.c.holder == agent_id, scopes.c.public_key != public_key)
    return set(tx.connection.execute(query).scalars())


def set_public_key(tx: Tx, keys: Iterable[str], public_key: str) -> None:
    """Store the key to which values for the agent of these scopes are sealed from now on."""
    for some in chunks(keys):
        tx.connection.execute(update(scopes).where(scopes.c.key.in_(some)).values(public_key=public_key))


def wake(tx: Tx, keys: Iterable[str]) -> None:
    """Wake the agents that reach these scopes, though the work is the same (a plan waits, a lease is free)."""
    rows = lock(tx, keys)
    for some in chunks(rows):
        tx.connection.execute(update(scopes).where(scopes.c.key.in_(some)).values(wake_seq=scopes.c.wake_seq + 1))
    tx.wake(reach_topic(row.provider, row.realm) for row in rows.values())


def wake_number(tx: Tx, reaches: Iterable[tuple[str, str]]) -> int:
    """A number that grows with every wake of a scope in these (provider, realm) pairs.

    It is a sum, not a maximum: two transactions that commit in either order both change it.
    """
    pairs = list(reaches)
    if not pairs:
        return 0
    return int(_WAKE_NUMBER.rows(tx.connection, {"realms": pairs})[0].sum)


_IN_REALMS = pair_among(scopes.c.provider, scopes.c.realm, "realms")
_WAKE_NUMBER = PreparedStatement(select(func.coalesce(func.sum(scopes.c.wake_seq), 0).label("sum")).where(_IN_REALMS))


def depart(tx: Tx, left: Iterable[tuple[str, str]], versions: Mapping[str, int]) -> None:
    """Store that components (scope key, uid) left their scopes, so that the holders learn of it."""
    rows = [{"scope_key": key, "uid": uid, "version": versions[key]} for key, uid in left]
    insert_missing(tx.connection, departures, rows)


def held_by(tx: Tx, agent_id: str) -> dict[str, ScopeRow]:
    """The scopes an agent holds."""
    return {row.key: ScopeRow(*row) for row in _HELD_BY.rows(tx.connection, {"agent": agent_id})}


_HELD_BY = PreparedStatement(_ROWS.where(scopes.c.holder == bindparam("agent")).order_by(scopes.c.key))


def _is_free(now: datetime) -> ColumnElement[bool]:
    alive = exists().where(agents.c.id == scopes.c.holder, agents.c.deadline > now)
    return or_(scopes.c.holder.is_(None), ~alive)


def has_components() -> ColumnElement[bool]:
    """Whether there is work in a scope."""
    return exists().where(components.c.scope_key == scopes.c.key)


@lru_cache(4_096)
def reached(text: str) -> frozenset[Realm]:
    """What agents reach, from the text in their rows: the same few texts are read at every claim."""
    return frozenset((item["provider"], item["realm"]) for item in json.loads(text))


def _free(tx: Tx, agent_id: str, realms: Iterable[Realm]) -> Select[tuple[str, str | None]]:
    return (
        select(scopes.c.key, scopes.c.holder)
        .where(
            tuple_(scopes.c.provider, scopes.c.realm).in_(list(realms)),
            or_(scopes.c.holder.is_(None), scopes.c.holder != agent_id),
            _is_free(tx.now),
            has_components(),
        )
        .order_by(scopes.c.key)
    )


def lease_free(tx: Tx, agent_id: str, of: Iterable[Pool], limit: int) -> set[str]:
    """Lease free scopes to an agent, as many as its share and the limit allow; each lease has a token of its own.

    Scopes that somebody else is just leasing are skipped, not waited for.
    """
    leased: set[str] = set()
    for pool in of:
        wanted = min(pool.capacity_for(agent_id), limit - len(leased))
        while wanted > 0:
            batch = min(wanted, CHUNK)
            query = _free(tx, agent_id, pool.realms).limit(batch).with_for_update(skip_locked=True, of=scopes)
            found = {row.key: row.holder for row in tx.connection.execute(query)}
            got = _with_dead_holders(tx, found)
            tx.connection.execute(
                update(scopes).where(scopes.c.key.in_(got)).values(holder=agent_id, token=scopes.c.token + 1)
            )
            tx.connection.execute(delete(departures).where(departures.c.scope_key.in_(got)))
            leased.update(got)
            wanted = wanted - len(got) if len(got) == batch else 0
    return leased


def _with_dead_holders(tx: Tx, holders: Mapping[str, str | None]) -> list[str]:
    """Those of the scopes (key to holder) whose holder is surely dead, and stays so until this is committed.

    The holders' rows are locked meanwhile: a heartbeat that comes now waits, and then finds its leases lost. One that
    came first is seen here, because its row is read only now, or skipped, because it is being written.
    """
    names = {holder for holder in holders.values() if holder is not None}
    if not names:
        return list(holders)
    known = set(tx.connection.execute(select(agents.c.id).where(agents.c.id.in_(names))).scalars())
    query = select(agents.c.id).where(agents.c.id.in_(names), agents.c.deadline <= tx.now)
    dead = set(tx.connection.execute(query.with_for_update(skip_locked=True)).scalars())
    return [key for key, holder in holders.items() if holder is None or holder in dead or holder not in known]


def drop_empty(tx: Tx, agent_id: str) -> None:
    """Take back the leases of scopes that have no work any more."""
    tx.connection.execute(update(scopes).where(scopes.c.holder == agent_id, ~has_components()).values(holder=None))


def release(tx: Tx, agent_id: str, keys: Iterable[str] | None = None) -> None:
    """Give back what an agent holds, all of it or these scopes, and wake those who could lease it."""
    held = held_by(tx, agent_id)
    given = sorted(held if keys is None else held.keys() & set(keys))
    if given:
        wake(tx, given)
        for some in chunks(given):
            tx.connection.execute(
                update(scopes).where(scopes.c.key.in_(some), scopes.c.holder == agent_id).values(holder=None)
            )


def forget_departures(tx: Tx, heard: Mapping[str, int]) -> None:
    """Delete the departures that the holder, who has these versions of the work, already knows."""
    rows = [{"_key": key, "_version": version} for key, version in heard.items()]
    if rows:
        gone = delete(departures).where(
            departures.c.scope_key == bindparam("_key"), departures.c.version <= bindparam("_version")
        )
        tx.connection.execute(gone, rows)


def list_page(tx: Tx, limit: int, after: str | None) -> list[Json]:
    """Scopes with components by key, those after the given one; with their holder and when it last read them."""
    query = (
        select(scopes, agents.c.read_at, agents.c.deadline)
        .outerjoin(agents, agents.c.id == scopes.c.holder)
        .where(has_components())
        .order_by(scopes.c.key)
        .limit(limit)
    )
    if after is not None:
        query = query.where(scopes.c.key > after)
    found = tx.connection.execute(query).all()
    # Counted for this page alone: counting all components would take a second of every page of a million.
    counted = (
        select(components.c.scope_key, func.count().label("many"))
        .where(among(components.c.scope_key, [row.key for row in found]))
        .group_by(components.c.scope_key)
    )
    many = {row.scope_key: row.many for row in tx.connection.execute(counted)}
    return [
        {
            "key": row.key,
            "provider": row.provider,
            "realm": row.realm,
            "place": row.place,
            "holder": row.holder if row.deadline is not None and row.deadline > tx.now else None,
            "version": row.version,
            "components": many.get(row.key, 0),
            "lastRead": (row.read_at or {}).get(row.key),
        }
        for row in found
    ]
