"""Links between components as their two sides need them: who is at the other end, what it published, and who must
hear of it. A link whose target is imported leads to the owner's component, in another LiveSystem (L12).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.dialect import chunks
from fractal_cloud.control.store.records import ComponentRecord, Json
from fractal_cloud.control.store.schema import components, refers, scopes
from fractal_cloud.model.link import INBOUND_PREFIX, own_outputs
from fractal_cloud.model.status import Stance

_source = components.alias("source")
_target = components.alias("target")


@dataclass(slots=True)
class Links:
    """The links of one component, as ``LinkWork`` spells them."""

    inbound: list[Json] = field(default_factory=list)
    outbound: list[Json] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a link: what the other side may know of it."""

    uid: str
    live_system_id: str
    component_id: str
    type: str
    provider: str
    declaration: Json
    status: str
    stance: str
    owner: str | None
    output_fields: Json
    scope_key: str | None
    identity_key: str | None
    deleting: bool

    @property
    def is_imported(self) -> bool:
        """Whether it is another LiveSystem's, and only read here."""
        return self.stance == Stance.IMPORTED.value


_FIELDS = tuple(_End.__dataclass_fields__)


def _columns(table: Any) -> list[ColumnElement[Any]]:
    return [table.c[name].label(f"{table.name}_{name}") for name in _FIELDS]


def _end(row: Any, name: str) -> _End:
    return _End(**{item: getattr(row, f"{name}_{item}") for item in _FIELDS})


def _pairs() -> Select[Any]:
    """Every declared link: its source and the component of the same LiveSystem that it names."""
    return (
        select(*_columns(_source), *_columns(_target))
        .select_from(refers)
        .join(
            _source,
            and_(_source.c.live_system_id == refers.c.live_system_id, _source.c.component_id == refers.c.source),
        )
        .join(
            _target,
            and_(_target.c.live_system_id == refers.c.live_system_id, _target.c.component_id == refers.c.target),
        )
        .where(refers.c.kind == "link")
    )


def of_scopes(tx: Tx, keys: Iterable[str]) -> dict[str, Links]:
    """The links of all components in these scopes, by uid."""
    found: dict[str, Links] = defaultdict(Links)
    for some in chunks(keys):
        _add(tx, found, _target.c.scope_key.in_(some), _source.c.scope_key.in_(some))
    return found


def of_components(tx: Tx, wanted: Sequence[ComponentRecord]) -> dict[str, Links]:
    """The links of these components, by uid."""
    found: dict[str, Links] = defaultdict(Links)
    for some in chunks([record.uid for record in wanted]):
        _add(tx, found, None, _source.c.uid.in_(some))
    for some in chunks([record.identity_key for record in wanted if record.identity_key is not None]):
        _add(tx, found, _target.c.identity_key.in_(some), None)
    return {record.uid: found[record.uid] for record in wanted if record.uid in found}


def _add(
    tx: Tx, found: dict[str, Links], leads_to: ColumnElement[bool] | None, starts_at: ColumnElement[bool] | None
) -> None:
    """Add what the ends of some links must know of each other: the target's side, the source's, or both."""
    wanted = [condition for condition in (leads_to, starts_at) if condition is not None]
    rows = tx.connection.execute(_pairs().where(or_(*wanted)).order_by(_source.c.live_system_id, _source.c.position))
    pairs = [(_end(row, "source"), _end(row, "target")) for row in rows]
    pairs = [(source, target) for source, target in pairs if not source.deleting]
    owners = _owners(tx, pairs)
    public_keys = _public_keys(tx, pairs)
    for source, target in pairs:
        owner = owners.get((target.identity_key, target.owner)) if target.is_imported else target
        refused = _refusal(source, target, owner)
        if starts_at is not None:
            found[source.uid].outbound.append(_outbound(source, target, owner, refused))
        if leads_to is not None and owner is not None and not owner.is_imported:
            found[owner.uid].inbound.append(_inbound(source, target, owner, refused, public_keys))


def _owners(tx: Tx, pairs: Iterable[tuple[_End, _End]]) -> dict[tuple[str | None, str | None], _End]:
    """The owners' components of targets that are imported, by identity and LiveSystem."""
    identities = {target.identity_key for _, target in pairs if target.is_imported and target.identity_key is not None}
    found: dict[tuple[str | None, str | None], _End] = {}
    for some in chunks(identities):
        query = select(*_columns(_target)).where(_target.c.identity_key.in_(some))
        for row in tx.connection.execute(query):
            end = _end(row, "target")
            found[end.identity_key, end.live_system_id] = end
    return found


def _public_keys(tx: Tx, pairs: Iterable[tuple[_End, _End]]) -> dict[str, str]:
    """The key of the agent that tends each source on another cloud than its target, by scope (L9)."""
    keys = {s.scope_key for s, t in pairs if s.provider != t.provider and s.scope_key is not None}
    found: dict[str, str] = {}
    for some in chunks(keys):
        query = select(scopes.c.key, scopes.c.public_key).where(scopes.c.key.in_(some))
        found.update((row.key, row.public_key) for row in tx.connection.execute(query))
    return found


def _refusal(source: _End, target: _End, owner: _End | None) -> str:
    """Why a link must not be served, or not yet (L12)."""
    if owner is None:
        return f"its owner {target.owner!r} declares no such component here: the owner's agent must provide access"
    if owner.live_system_id == source.live_system_id:
        return ""
    if source.live_system_id in owner.declaration.get("linksFrom", ()):
        return ""
    where = f"{owner.live_system_id}/{owner.component_id}"
    return f"{where} does not allow it: add {source.live_system_id!r} to its linksFrom"


def _settings(source: _End, target: _End) -> Json:
    for link in source.declaration.get("links", ()):
        if link["target"] == target.component_id:
            return dict(link.get("settings", {}))
    return {}


def _source_id(source: _End, owner: _End) -> str:
    if source.live_system_id == owner.live_system_id:
        return source.component_id
    return f"{source.live_system_id}/{source.component_id}"


def _inbound(source: _End, target: _End, owner: _End, refused: str, public_keys: Mapping[str, str]) -> Json:
    return {
        "other": _source_id(source, owner),
        "type": source.type,
        "provider": source.provider,
        "settings": _settings(source, target),
        "status": source.status,
        "outputs": own_outputs(source.output_fields),
        "published": _published_for(source.output_fields, target.component_id),
        "key": public_keys.get(source.scope_key or "", "") if source.provider != owner.provider else "",
        "refused": refused,
    }


def _outbound(source: _End, target: _End, owner: _End | None, refused: str) -> Json:
    far = owner or target
    prefix = f"{INBOUND_PREFIX}.{_source_id(source, far)}."
    published = {
        name.removeprefix(prefix): value for name, value in far.output_fields.items() if name.startswith(prefix)
    }
    return {
        "other": target.component_id,
        "type": target.type,
        "provider": target.provider,
        "settings": _settings(source, target),
        "status": far.status,
        "outputs": own_outputs(far.output_fields),
        "published": published,
        "key": "",
        "refused": refused,
    }


def _published_for(output_fields: Json, target_id: str) -> Json:
    """What the outbound half of a link published, by key: ``{linkType}.{targetId}.{key}``."""
    found = {}
    for name, value in output_fields.items():
        link_type, _, rest = name.partition(".")
        if rest.startswith(f"{target_id}.") and link_type != INBOUND_PREFIX:
            found[rest.removeprefix(f"{target_id}.")] = value
    return found


@dataclass(frozen=True, slots=True)
class Listener:
    """A component that has to hear when another one (``of``, a uid) publishes something new (L11)."""

    uid: str
    scope_key: str
    of: str


def listeners(tx: Tx, speaking: Collection[ComponentRecord]) -> list[Listener]:
    """Who is at the other end of links of these components, wherever it is declared."""
    found: list[Listener] = []
    by_uid = {record.uid: record for record in speaking}
    by_identity: dict[str, list[str]] = defaultdict(list)
    for record in speaking:
        if record.identity_key is not None:
            by_identity[record.identity_key].append(record.uid)
    imported: dict[tuple[str | None, str | None], list[str]] = defaultdict(list)
    for some in chunks(by_uid):
        for row in tx.connection.execute(_pairs().where(_source.c.uid.in_(some))):
            source, target = _end(row, "source"), _end(row, "target")
            found += _listener(target, source.uid)
            if target.is_imported:
                imported[target.identity_key, target.owner].append(source.uid)
    for some in chunks(by_identity):
        for row in tx.connection.execute(_pairs().where(_target.c.identity_key.in_(some))):
            source, target = _end(row, "source"), _end(row, "target")
            for uid in by_identity[str(target.identity_key)]:
                found += _listener(source, uid)
                if by_uid[uid].live_system_id != target.owner and target.uid == uid:
                    imported[target.identity_key, target.owner].append(uid)
    return found + _owners_of(tx, imported)


def _listener(end: _End, of: str) -> list[Listener]:
    return [Listener(end.uid, end.scope_key, of)] if end.scope_key is not None and end.uid != of else []


def _owners_of(tx: Tx, imported: Mapping[tuple[str | None, str | None], list[str]]) -> list[Listener]:
    found: list[Listener] = []
    for some in chunks({identity for identity, _ in imported if identity is not None}):
        query = select(*_columns(_target)).where(_target.c.identity_key.in_(some))
        for row in tx.connection.execute(query):
            end = _end(row, "target")
            for uid in imported.get((end.identity_key, end.live_system_id), ()):
                found += _listener(end, uid)
    return found


def elsewhere(tx: Tx, declared: Sequence[ComponentRecord]) -> dict[str, str]:
    """Components of other LiveSystems (uid to scope) that are at the other end of links, or would be: of a declaration
    that is about to change, or to be written.
    """
    by_id = {record.component_id: record for record in declared}
    wanted: dict[tuple[str | None, str | None], list[str]] = {}
    for record in declared:
        for link in record.declaration.get("links", ()):
            target = by_id.get(link["target"])
            if target is not None and target.stance == Stance.IMPORTED.value:
                wanted[target.identity_key, target.owner] = [""]
    found = {listener.uid: listener.scope_key for listener in _owners_of(tx, wanted)}
    ours = {record.live_system_id for record in declared}
    for some in chunks([record.identity_key for record in declared if record.identity_key is not None]):
        query = _pairs().where(_target.c.identity_key.in_(some), _target.c.live_system_id.not_in(ours))
        for row in tx.connection.execute(query):
            found.update((item.uid, item.scope_key) for item in _listener(_end(row, "source"), ""))
    return found


def listeners_to_key(tx: Tx, scope_keys: Collection[str]) -> dict[str, str]:
    """Targets on other clouds of links from these scopes (uid to scope): their agents seal to a new key (L9)."""
    found: dict[str, str] = {}
    for some in chunks(scope_keys):
        rows = tx.connection.execute(
            _pairs().where(_source.c.scope_key.in_(some), _source.c.provider != _target.c.provider)
        )
        pairs = [(_end(row, "source"), _end(row, "target")) for row in rows]
        owners = _owners(tx, pairs)
        for _, target in pairs:
            owner = owners.get((target.identity_key, target.owner)) if target.is_imported else target
            if owner is not None and owner.scope_key is not None:
                found[owner.uid] = owner.scope_key
    return found
