"""Which realm (account, project, cluster) each name is bound to: the one first reached by it, until a person accepts
another (S26).

A name is what declarations of an environment call a realm of a provider; of a declared cluster, the component itself.
What an agent reaches by it now may be another one: then nothing moves, and all that is affected says so. What follows
when another one is accepted is in ``realms``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, exists, select, update

from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.driver import among, insert_rows, upsert
from fractal_cloud.control.store.schema import agent_reaches, agents, components, reaches
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.host import ANY_HOST, called, host_of
from fractal_cloud.rules.words import Realm

Name = tuple[str, str]
"""A provider, and what declarations call one of the realms in it; empty for the one meant where none is named."""
NOBODYS: Final = ""
"""Whose an event is that concerns no single LiveSystem."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A name and the realm it is bound to since ``first_at``; ``other``: another one that was reached by it last.

    ``alias``: another name of the realm, said by whoever bound this one (A1).
    """

    environment: str
    provider: str
    name: str
    realm: str
    first_at: datetime | None = None
    other: str | None = None
    other_by: str | None = None
    other_at: datetime | None = None
    alias: str = ""

    @property
    def shown(self) -> str:
        """What operators and tokens call it: the name itself, or LiveSystem/component of a declared cluster."""
        return shown(self.name)

    @property
    def title(self) -> str:
        """What people call it."""
        return Realm(self.provider, called(self.name), self.environment).title


def shown(name: str) -> str:
    """A name as operators and tokens write it: of a declared cluster, LiveSystem/component."""
    host = host_of(name)
    return name if host is None else host.shown


def every(tx: Tx, environment: str | None = None) -> list[Bound]:
    """All names that are bound; those that only agents use for declared clusters are left out."""
    query = select(reaches).order_by(reaches.c.environment, reaches.c.provider, reaches.c.name)
    if environment is not None:
        query = query.where(reaches.c.environment == environment)
    return [found for row in tx.connection.execute(query) if not is_agents_own((found := Bound(*row)).name)]


def of_realms(tx: Tx, provider: str, realms: Collection[str]) -> dict[str, list[Bound]]:
    """All names of all environments that are bound to these realms, by realm."""
    query = select(reaches).where(reaches.c.provider == provider, among(reaches.c.realm, realms))
    found: dict[str, list[Bound]] = {realm: [] for realm in realms}
    for row in tx.connection.execute(query):
        if not is_agents_own(row.name):
            found[row.realm].append(Bound(*row))
    return found


def others(tx: Tx) -> dict[tuple[str, str, str], str]:
    """The other realms that are reached by (environment, provider, name), and not accepted."""
    query = select(reaches.c.environment, reaches.c.provider, reaches.c.name, reaches.c.other)
    found = tx.connection.execute(query.where(reaches.c.other.is_not(None)))
    return {(row.environment, row.provider, row.name): row.other for row in found}


def is_agents_own(name: str) -> bool:
    """Whether only agents call a declared cluster so: it is made of what that published, and never bound."""
    return name.startswith(ANY_HOST) and host_of(name) is None


@dataclass(frozen=True, slots=True)
class Contact:
    """An agent of an environment, and the realms it reaches by their names; ``aliases``: another name of each realm.

    ``token``: the name of its token, where that is bound to the realm by its name alone. ``kept``: names that it does
    not move, whoever else is there.
    """

    agent_id: str
    environment: str
    reached: Mapping[Name, str]
    aliases: Mapping[Name, str] = field(default_factory=dict)
    token: Mapping[Name, str] = field(default_factory=dict)
    kept: Collection[Name] = ()


def contact(tx: Tx, made: Contact) -> tuple[dict[Name, str], set[Name]]:
    """An agent reaches realms by their names: bind the names that are new, and note where it is another realm.

    Returns the realm that each name is bound to, and the realms of which that changed. A name that nothing is in, and
    that nobody else reaches, is bound to what is reached now: nothing can be lost or made twice by that.
    """
    agent_id, environment = made.agent_id, made.environment
    known = {(bound.provider, bound.name): bound for bound in every(tx, environment)}
    bound_to: dict[Name, str] = {}
    changed: set[Name] = set()
    news = _News(tx, agent_id, made.token)
    for (provider, name), realm in sorted(made.reached.items()):
        before = known.get((provider, name))
        wanted = Bound(environment, provider, name, realm, tx.now, alias=made.aliases.get((provider, realm), ""))
        bound_to[provider, name] = realm
        if before is None:
            insert_rows(tx.connection, reaches, [_row(wanted)])
            news.add(EventKind.REALM_REACHED, wanted, None, realm)
            changed.add((provider, realm))
        elif before.realm == realm:
            if before.other is not None and before.other_by == agent_id:
                _set_other(tx, before, None, None)
                news.add(EventKind.REALM_REACHED, before, before.other, realm)
        elif (provider, name) not in made.kept and can_move(tx, before, agent_id):
            bind(tx, wanted)
            news.add(EventKind.REALM_REACHED, wanted, before.realm, realm)
            changed |= {(provider, before.realm), (provider, realm)}
        else:
            bound_to[provider, name] = before.realm
            if before.other != realm:
                _set_other(tx, before, realm, agent_id)
                news.add(EventKind.REALM_CHANGED, before, before.realm, realm)
    news.record()
    return bound_to, changed


def can_move(tx: Tx, bound: Bound, agent_id: str) -> bool:
    """Whether a name leads to whatever an agent reaches by it: nothing is in its realm, and nobody else reaches it."""
    return _is_unused(tx, bound) and not is_reached(tx, bound.provider, bound.realm, but=agent_id)


def note_agents_own(tx: Tx, environment: str, reached: Mapping[Name, str]) -> None:
    """Note what agents reach by their own names for declared clusters: whoever publishes anything else has another."""
    rows = [
        {"environment": environment, "provider": provider, "name": name, "realm": realm}
        for (provider, name), realm in reached.items()
    ]
    upsert(tx.connection, reaches, rows)


def bind(tx: Tx, wanted: Bound) -> None:
    """Bind a name to a realm from now on."""
    upsert(tx.connection, reaches, [_row(wanted)])


def is_reached(tx: Tx, provider: str, realm: str, *, but: str | None = None) -> bool:
    """Whether an agent that is alive reaches a realm, by whatever name; ``but``: one that does not count."""
    query = (
        select(agents.c.id)
        .join(agent_reaches, agent_reaches.c.agent_id == agents.c.id)
        .where(agent_reaches.c.provider == provider, agent_reaches.c.realm == realm, agents.c.deadline > tx.now)
    )
    return any(agent != but for agent in tx.connection.execute(query).scalars())


def live_systems_in(tx: Tx, bound: Bound) -> list[str]:
    """The LiveSystems that have components in the realm that a name is bound to."""
    query = select(components.c.live_system_id).where(_in(bound)).distinct().order_by(components.c.live_system_id)
    return list(tx.connection.execute(query).scalars())


def record_event(
    tx: Tx, kind: EventKind, by: str, message: str, change: tuple[str | None, str], live_systems: Iterable[str]
) -> None:
    """Append an event of a realm (before and after), one for everybody and one for each LiveSystem in it."""
    before, after = change
    for live_system_id in (NOBODYS, *live_systems):
        tx.record(PendingEvent(live_system_id, kind, by, None, message, before, after))


class _News:
    """What is new of realms: one event for all names that lead to the same one.

    ``tokens``: the token, by provider and realm, that is bound to a realm by its name, and is fixed to it now (A1).
    """

    def __init__(self, tx: Tx, by: str, tokens: Mapping[Name, str]) -> None:
        self._tx = tx
        self._by = by
        self._tokens = tokens
        self._found: dict[tuple[EventKind, str, str | None, str], list[Bound]] = {}

    def add(self, kind: EventKind, bound: Bound, before: str | None, after: str) -> None:
        """A name led to a realm before, and leads to another one now."""
        self._found.setdefault((kind, bound.provider, before, after), []).append(bound)

    def record(self) -> None:
        """Append one event each, for everybody and for each affected LiveSystem."""
        for (kind, provider, before, after), found in self._found.items():
            names = ", ".join(repr(called(bound.name)) for bound in found if bound.name)
            message = f"{provider} {names}".strip() + f" is {after!r}" + (f", it was {before!r}" if before else "")
            token = self._tokens.get((provider, after))
            if kind is EventKind.REALM_REACHED and token is not None:
                message += f": token {token!r}, which is bound to that name, serves this one and no other by it"
            if kind is EventKind.REALM_CHANGED:
                message += ": nothing is written there until it is accepted"
            affected = live_systems_in(self._tx, found[0]) if before else []
            record_event(self._tx, kind, self._by, message, (before, after), affected)


def _set_other(tx: Tx, bound: Bound, other: str | None, by: str | None) -> None:
    c = reaches.c
    key = and_(c.environment == bound.environment, c.provider == bound.provider, c.name == bound.name)
    values = {"other": other, "other_by": by, "other_at": tx.now if other is not None else None}
    tx.connection.execute(update(reaches).where(key).values(values))


def _in(bound: Bound) -> ColumnElement[bool]:
    """What is in its realm, by whatever name: two names of one realm lead to another one together."""
    c = components.c
    return and_(c.environment == bound.environment, c.provider == bound.provider, c.realm == bound.realm)


def _is_unused(tx: Tx, bound: Bound) -> bool:
    return not tx.connection.execute(select(exists().where(_in(bound)))).scalar()


def _row(bound: Bound) -> dict[str, Any]:
    return {column.name: getattr(bound, column.name) for column in fields(bound)}
