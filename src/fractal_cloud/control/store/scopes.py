"""Scopes and their leases: who is the only writer of a scope, and how news of its work is counted.

What the work of a scope is stands in ``work``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Select,
    Subquery,
    Text,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)

from fractal_cloud.control.store import staleness, unread_scopes
from fractal_cloud.control.store.balancing import Place, Pool, Realm
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import (
    CHUNK,
    PreparedStatement,
    among,
    binary,
    chunks,
    contains,
    insert_missing,
    pair_among,
    update_rows,
)
from fractal_cloud.control.store.listing import Page
from fractal_cloud.control.store.listing import Place as Window
from fractal_cloud.control.store.schema import agents, components, departures, live_system_scopes, scopes
from fractal_cloud.control.store.signals import reach_topic
from fractal_cloud.control.store.visibility import Environments, is_visible
from fractal_cloud.model.identity import Scope
from fractal_cloud.rules.grants import missing

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope as it stands: its holder, the token of the holder's lease, and the version of its work.

    ``holder_token_id``: the token of access with which its holder registered; ``deadline``: until when it counts as
    alive. ``label``: see ``label()``; ``environments``: the patterns of those that the holder's token is bound to.
    """

    key: str
    provider: str
    realm: str
    holder: str | None
    token: int
    version: int
    holder_token_id: str | None
    deadline: datetime | None
    label: str | None
    environments: Sequence[str] | None

    def is_leased(self, token: int, to: tuple[str, str], now: datetime) -> bool:
        """Whether this lease is the current one, and its holder (agent and access token) the caller."""
        is_same = (self.holder, self.holder_token_id) == to and self.token == token
        return is_same and self.deadline is not None and self.deadline > now


_SHARED = "\n"
"""What the label of a scope begins with that several environments share; no environment's name does."""


def label() -> ColumnElement[Any]:
    """The environment of all that is in a scope; where there are several, a text of that scope alone; NULL if empty.

    The least and the greatest are one step each in the index, however much is in the scope.
    """
    first, other = components.alias(), components.alias()
    last = select(func.max(other.c.environment)).where(other.c.scope_key == first.c.scope_key).correlate(first)
    shared = literal_column(f"'{_SHARED}'", Text) + scopes.c.key
    return (
        select(case((first.c.environment == last.scalar_subquery(), first.c.environment), else_=shared))
        .where(first.c.scope_key == scopes.c.key)
        .order_by(first.c.environment)
        .limit(literal_column("1"))
        .correlate(scopes)
        .scalar_subquery()
    )


_COLUMNS = (
    *(scopes.c.key, scopes.c.provider, scopes.c.realm, scopes.c.holder),
    *(scopes.c.token, scopes.c.version),
    *(agents.c.token_id.label("holder_token_id"), agents.c.deadline, label().label("label"), agents.c.environments),
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


def environments_in(tx: Tx, keys: Collection[str]) -> dict[str, frozenset[str]]:
    """The environments of the components in each of these scopes."""
    found: dict[str, set[str]] = {key: set() for key in keys}
    for row in _ENVIRONMENTS.rows(tx.connection, {"keys": keys}):
        found[row.scope_key].add(row.environment)
    return {key: frozenset(names) for key, names in found.items()}


_ENVIRONMENTS = PreparedStatement(
    select(components.c.scope_key, components.c.environment).where(among(components.c.scope_key, "keys")).distinct()
)


def shared(tx: Tx) -> dict[Scope, frozenset[str]]:
    """The scopes that several environments share, with those environments."""
    c = components.c
    several = select(c.scope_key).where(c.scope_key.is_not(None)).group_by(c.scope_key)
    several = several.having(func.min(c.environment) != func.max(c.environment))
    keys = list(tx.connection.execute(several).scalars())
    return {Scope.from_key(key): names for key, names in environments_in(tx, keys).items()} if keys else {}


def kinds_in(tx: Tx, key: str) -> list[tuple[str, str, str]]:
    """Environment, name of the realm and type of the components in a scope."""
    c = components.c
    query = select(c.environment, c.realm_name, c.type).where(c.scope_key == key).distinct()
    return [(row.environment, row.realm_name, row.type) for row in tx.connection.execute(query)]


def environments_of(tx: Tx, labels: Collection[str | None]) -> dict[str | None, frozenset[str]]:
    """The environments that each label stands for: one, none, or all of a scope that is shared."""
    shared = {one: one.removeprefix(_SHARED) for one in labels if one is not None and one.startswith(_SHARED)}
    inside = environments_in(tx, shared.values()) if shared else {}
    found = {one: frozenset() if one is None else frozenset({one}) for one in labels}
    return {**found, **{one: inside[key] for one, key in shared.items()}}


def beyond(tx: Tx, held: Mapping[str, ScopeRow]) -> set[str]:
    """The scopes, of those held, in which there are environments that their holder's token is not bound to (A1)."""
    inside = environments_of(tx, {row.label for row in held.values()})
    return {key for key, row in held.items() if missing(frozenset(row.environments or ()), inside[row.label])}


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


def _free(tx: Tx, agent_id: str, places: Collection[Place]) -> Select[tuple[str, str | None]]:
    realms = {(place.provider, place.realm) for place in places}
    return (
        select(scopes.c.key, scopes.c.holder)
        .where(
            tuple_(scopes.c.provider, scopes.c.realm).in_(list(realms)),
            tuple_(scopes.c.provider, scopes.c.realm, label()).in_(list(places)),
            or_(scopes.c.holder.is_(None), scopes.c.holder != agent_id),
            _is_free(tx.now),
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
            query = _free(tx, agent_id, pool.places).limit(batch).with_for_update(skip_locked=True, of=scopes)
            found = {row.key: row.holder for row in tx.connection.execute(query)}
            got = _with_dead_holders(tx, found)
            unread_scopes.keep_reads(tx, [key for key in got if found[key] is not None])
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
    """Take back the leases of scopes that have no work any more; what comes there next was never read."""
    is_empty = and_(scopes.c.holder == agent_id, ~has_components())
    unread_scopes.forget_reads(tx, select(scopes.c.key).where(is_empty))
    tx.connection.execute(update(scopes).where(is_empty).values(holder=None))


def release(tx: Tx, agent_id: str, keys: Iterable[str] | None = None) -> None:
    """Give back what an agent holds, all of it or these scopes, and wake those who could lease it."""
    held = held_by(tx, agent_id)
    given = sorted(held if keys is None else held.keys() & set(keys))
    if given:
        wake(tx, given)
        unread_scopes.keep_reads(tx, given)
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


@dataclass(frozen=True, slots=True)
class ScopeFilters:
    """Which scopes are listed: those that are stale or not, and those of one holder, living or dead.

    ``search``: part of a provider, account, place or holder.
    """

    stale: bool | None = None
    holder: str | None = None
    search: str = ""


NO_FILTERS: Final = ScopeFilters()


def list_page(
    tx: Tx, limit: int, after: str | None, filters: ScopeFilters = NO_FILTERS, sees: Environments = None
) -> list[Json]:
    """Scopes with components that somebody may see: the stale ones first, then by key; those after a given ``order``.

    Each with its holder, its last read (C11) and how the holder's last cycle of it went, as far as that is known.
    """
    query = _listed(tx, filters, sees).limit(limit)
    if after is not None:
        query = query.where(_order() > after)
    return _all_described(tx, tx.connection.execute(query).all(), sees)


def find(tx: Tx, place: Window, filters: ScopeFilters = NO_FILTERS, sees: Environments = None) -> Page:
    """The same as a page that is counted from the start, with how many there are in all."""
    query = _listed(tx, filters, sees)
    total = tx.connection.execute(select(func.count()).select_from(query.order_by(None).subquery())).scalar_one()
    rows = tx.connection.execute(query.offset(place.offset).limit(place.limit + 1)).all()
    items = _all_described(tx, rows[: place.limit], sees)
    return Page(items, items[-1]["order"] if len(rows) > place.limit else None, total)


def _order() -> ColumnElement[str]:
    """The stale ones first, then by key."""
    return binary(case((staleness.scope_is_stale(scopes.c.key), "0 "), else_="1 ") + scopes.c.key)


def _listed(tx: Tx, filters: ScopeFilters, sees: Environments) -> Select[Any]:
    """Scopes with components that somebody may see, in their order."""
    c = scopes.c
    query = (
        select(c.key, c.provider, c.realm, c.place, c.holder, c.version, _order().label("order"))
        .where(c.key.in_(select(_visible(tx, sees).c.scope_key)))
        .order_by(_order())
    )
    if filters.stale is not None:
        is_stale = staleness.scope_is_stale(c.key)
        query = query.where(is_stale if filters.stale else ~is_stale)
    if filters.holder is not None:
        query = query.where(c.holder == filters.holder)
    if filters.search:
        query = query.where(or_(contains(c.key, filters.search), contains(c.holder, filters.search)))
    return query


def _all_described(tx: Tx, rows: Sequence[Any], sees: Environments) -> list[Json]:
    visible = _visible(tx, sees)
    counted = select(visible.c.scope_key, func.sum(visible.c.components).label("many")).group_by(visible.c.scope_key)
    counted = counted.where(among(visible.c.scope_key, [row.key for row in rows]))
    many = {row.scope_key: int(row.many) for row in tx.connection.execute(counted)}
    read = staleness.reads(tx, [row.key for row in rows])
    said = staleness.said_by(tx, {row.holder for row in rows if row.holder is not None})
    return [_described(row, many[row.key], read[row.key], said.get(row.holder or ""), tx.now) for row in rows]


def _visible(tx: Tx, sees: Environments) -> Subquery:
    """How many components of each LiveSystem that somebody may see are in each scope."""
    query = select(live_system_scopes.c.scope_key, live_system_scopes.c.components)
    if sees is not None:
        query = query.where(is_visible(tx, sees, live_system_scopes.c.live_system_id))
    return query.subquery()


def _described(
    row: Any, components_in_it: int, read: staleness.ScopeRead, said: staleness.Said | None, now: datetime
) -> Json:
    is_alive = said is not None and said.deadline > now
    cycle = None if said is None else said.cycles.get(row.key)
    named = said.unread(row.key) if said is not None else {}
    return {
        "key": row.key,
        "provider": row.provider,
        "realm": row.realm,
        "place": row.place,
        "holder": row.holder if is_alive else None,
        "lastHolder": row.holder,
        "version": row.version,
        "components": components_in_it,
        "lastRead": read.last_read,
        "stale": read.is_stale,
        "cycleSeconds": None if said is None else said.cycle_seconds,
        "lastCycle": None if cycle is None else {name: cycle[name] for name in LAST_CYCLE},
        "unread": sorted(named),
        "order": row.order,
    }


LAST_CYCLE: Final = ("seconds", "calls", "throttles", "errors")
