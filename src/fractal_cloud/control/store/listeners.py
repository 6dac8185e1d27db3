"""Who has to hear of what a report says of components: those who refer to them, and the other ends of their links.

Asked in one statement for all of them. What a listener then receives is in ``work`` and ``links``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Select, and_, literal, or_, select, union_all

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import PreparedStatement, among
from fractal_cloud.control.store.hosts import host_scope_key
from fractal_cloud.control.store.records import ComponentRecord
from fractal_cloud.control.store.schema import components, refers
from fractal_cloud.model.host import host_of

_source = components.alias("source")
_target = components.alias("target")
_LINK: Final = "link"
_FROM, _TO = "from", "to"


@dataclass(frozen=True, slots=True)
class Listener:
    """A component that has to hear when another one (``of``, a uid) publishes something new (L11), or is gone (O10)."""

    uid: str
    scope_key: str
    of: str


@dataclass(slots=True)
class Heard:
    """The listeners of some components. ``is_sure``: only LiveSystems that the caller holds have a part in it.

    ``host_scopes``: the scopes on which changes of hosts are counted, each with the uid of the host.
    """

    listeners: list[Listener] = field(default_factory=list)
    is_sure: bool = True
    host_scopes: set[tuple[str, str]] = field(default_factory=set)

    @property
    def scope_keys(self) -> set[str]:
        """The scopes in which somebody listens."""
        return {listener.scope_key for listener in self.listeners}

    @property
    def host_scope_keys(self) -> set[str]:
        """The scopes on which changes of hosts are counted."""
        return {key for key, _ in self.host_scopes}

    def add(self, uid: str, scope_key: str | None, of: str) -> None:
        """Add a listener that is in a scope and is not the speaker itself."""
        if scope_key is not None and uid != of:
            self.listeners.append(Listener(uid, scope_key, of))


@dataclass(frozen=True, slots=True)
class Speaking:
    """Components that are reported on, by uid.

    ``owners``: who owns each by what is just being reported, so that an owner hears of links that now lead to it; by
    what was reported before, the owner until now hears too. ``finished``: uids of those whose deletion has ended.
    """

    records: Mapping[str, ComponentRecord]
    owners: Mapping[str, str | None]
    finished: Collection[str] = ()

    def owners_elsewhere(self, uid: str, known: str | None, live_system_id: str) -> set[str]:
        """The other LiveSystems that own an end of a link, by what was reported before or is now."""
        return {owner for owner in (known, self.owners.get(uid)) if owner is not None} - {live_system_id}


def _references(side: str) -> Select[Any]:
    """Every reference with its two ends; ``side`` says where those who are asked about stand."""
    return (
        select(
            literal(side).label("side"),
            refers.c.kind,
            refers.c.live_system_id,
            _source.c.uid.label("source"),
            _source.c.scope_key.label("source_scope"),
            _source.c.environment,
            _source.c.provider,
            _source.c.realm_name,
            _source.c.declared_realm_name,
            _target.c.component_id.label("target_id"),
            _target.c.uid.label("target"),
            _target.c.scope_key.label("target_scope"),
            _target.c.identity_key.label("identity"),
            _target.c.owner,
        )
        .select_from(refers)
        .join(
            _source,
            and_(_source.c.live_system_id == refers.c.live_system_id, _source.c.component_id == refers.c.source),
        )
        .join(
            _target,
            and_(_target.c.live_system_id == refers.c.live_system_id, _target.c.component_id == refers.c.target),
        )
    )


# Inside one scope a component need not hear of what it depends on; what others depend on hears only of their end.
_is_link = refers.c.kind == _LINK
_AROUND: Final = PreparedStatement(
    union_all(
        _references(_FROM).where(among(_source.c.uid, "uids")).where(or_(_is_link, among(_source.c.uid, "finished"))),
        _references(_TO)
        .where(among(_target.c.identity_key, "identities"))
        .where(or_(_is_link, _source.c.scope_key.is_distinct_from(_target.c.scope_key))),
    )
)
_DECLARING: Final = select(
    components.c.uid, components.c.scope_key, components.c.identity_key, components.c.live_system_id
).where(among(components.c.identity_key, "identities"))


def listeners(tx: Tx, speaking: Speaking) -> Heard:
    """Those who refer to these components, those a finished one depended on, and all at other ends of their links."""
    found = Heard()
    held = {record.live_system_id for record in speaking.records.values()}
    by_identity: dict[str, list[ComponentRecord]] = defaultdict(list)
    for record in speaking.records.values():
        if record.identity_key is not None:
            by_identity[record.identity_key].append(record)
    imported: dict[tuple[str | None, str], list[str]] = defaultdict(list)
    asked = {"uids": speaking.records, "finished": speaking.finished, "identities": by_identity}
    for row in _AROUND.rows(tx.connection, asked):
        if row.live_system_id not in held:
            found.is_sure = False
        _neighbour(row, speaking, found)
        if row.kind == _LINK and row.side == _FROM:
            _linked_from(row, speaking, found, imported)
        elif row.kind == _LINK:
            for record in by_identity[row.identity]:
                _linked_to(row, record, speaking, found, imported)
    if imported:
        found.is_sure = False
        _owners(tx, imported, found)
    return found


def _neighbour(row: Any, speaking: Speaking, found: Heard) -> None:
    """Who refers to a component hears of it in another scope; what depended on it may go on when it is gone (O10)."""
    if row.source_scope == row.target_scope:
        return
    if row.side == _TO and row.target in speaking.records:
        for name in (row.realm_name, row.declared_realm_name):
            host = host_of(name)
            if host is not None and host.component_id == row.target_id:
                found.host_scopes.add((host_scope_key(row.provider, row.environment), row.target))
        found.add(row.source, row.source_scope, row.target)
    elif row.side == _FROM and row.source in speaking.finished:
        found.add(row.target, row.target_scope, row.source)


def _linked_from(row: Any, speaking: Speaking, found: Heard, imported: dict[tuple[str | None, str], list[str]]) -> None:
    found.add(row.target, row.target_scope, row.source)
    for owner in speaking.owners_elsewhere(row.target, row.owner, row.live_system_id):
        imported[row.identity, owner].append(row.source)


def _linked_to(
    row: Any,
    record: ComponentRecord,
    speaking: Speaking,
    found: Heard,
    imported: dict[tuple[str | None, str], list[str]],
) -> None:
    """``record`` stands for the resource a link leads to; the link may name another LiveSystem's component of it."""
    found.add(row.source, row.source_scope, record.uid)
    if row.target != record.uid:
        return
    if speaking.owners.get(record.uid, row.owner) != row.owner and row.target_scope is not None:
        # Whether links lead to it or to its owner's component is another answer now: it has to hear of itself.
        found.listeners.append(Listener(row.target, row.target_scope, row.target))
    for owner in speaking.owners_elsewhere(record.uid, row.owner, row.live_system_id):
        imported[row.identity, owner].append(record.uid)


def _owners(tx: Tx, imported: Mapping[tuple[str | None, str], list[str]], found: Heard) -> None:
    """The owners' own components of what is imported."""
    asked = {"identities": {identity for identity, _ in imported if identity is not None}}
    for row in tx.connection.execute(_DECLARING, asked):
        for uid in imported.get((row.identity_key, row.live_system_id), ()):
            found.add(row.uid, row.scope_key, uid)
