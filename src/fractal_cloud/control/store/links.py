"""Links between components as their two sides need them: who is at the other end, what it published, and who must
hear of it. A link whose target is imported leads to the owner's component, in another LiveSystem (L12).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, select, tuple_

from fractal_cloud.control.store import sealing_keys
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import chunks
from fractal_cloud.control.store.records import ComponentRecord, Json
from fractal_cloud.control.store.schema import components, refers, scopes, types
from fractal_cloud.model.identity import Scope
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
    """One end of a link: where it is, and whose."""

    uid: str
    live_system_id: str
    component_id: str
    type: str
    provider: str
    stance: str
    owner: str | None
    scope_key: str | None
    identity_key: str | None
    deleting: bool
    environment: str

    @property
    def is_imported(self) -> bool:
        """Whether it is another LiveSystem's, and only read here."""
        return self.stance == Stance.IMPORTED.value

    @property
    def realm(self) -> tuple[str, str]:
        """The account (or the like) it is in: inside one, agents can read each other's stores."""
        scope = Scope.from_key(self.scope_key) if self.scope_key is not None else None
        return (self.provider, scope.realm if scope is not None else "")

    @property
    def where(self) -> tuple[str, str, str]:
        """Its environment, and the realm it is in."""
        return (self.environment, *self.realm)


@dataclass(slots=True)
class _EndState:
    """What the other side may know of one end; read once, however many links lead there.

    ``published_for``: what its inbound halves published, by source and key.
    """

    type: str
    declaration: Json
    status: str
    output_fields: Json
    states: Json
    outputs: Json = field(init=False)
    published_for: dict[str, Json] = field(init=False)

    def __post_init__(self) -> None:
        self.outputs = own_outputs(self.output_fields)
        self.published_for = defaultdict(dict)
        for name, value in self.output_fields.items():
            if name.startswith(f"{INBOUND_PREFIX}."):
                source_id, _, key = name.removeprefix(f"{INBOUND_PREFIX}.").rpartition(".")
                self.published_for[source_id][key] = value

    def published_to(self, target_id: str) -> Json:
        """What the outbound half of a link published, by key: ``{linkType}.{targetId}.{key}``."""
        found = {}
        for name, value in self.output_fields.items():
            link_type, _, rest = name.partition(".")
            if rest.startswith(f"{target_id}.") and link_type != INBOUND_PREFIX:
                found[rest.removeprefix(f"{target_id}.")] = value
        return found

    def failure_for(self, source_id: str) -> str:
        """Why its half of a link cannot be carried out as the source declares it (L7)."""
        state = self.states.get("inbound", {}).get(source_id, {})
        return str(state.get("waits", "")) if state.get("failed") else ""


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
        .order_by(_source.c.live_system_id, _source.c.position)
    )


def _found(tx: Tx, column: ColumnElement[Any], values: Iterable[str]) -> Iterator[tuple[_End, _End]]:
    """The links of which one end has one of these values in a column."""
    for some in chunks(dict.fromkeys(values)):
        for row in tx.connection.execute(_pairs().where(column.in_(some))):
            yield _end(row, "source"), _end(row, "target")


def of_scopes(tx: Tx, keys: Iterable[str]) -> dict[str, Links]:
    """The links of all components in these scopes, by uid."""
    keys = list(keys)
    return _links(tx, list(_found(tx, _target.c.scope_key, keys)), list(_found(tx, _source.c.scope_key, keys)))


def of_components(tx: Tx, wanted: Sequence[ComponentRecord]) -> dict[str, Links]:
    """The links of these components, by uid."""
    identities = [record.identity_key for record in wanted if record.identity_key is not None]
    leading = list(_found(tx, _target.c.identity_key, identities))
    found = _links(tx, leading, list(_found(tx, _source.c.uid, [record.uid for record in wanted])))
    return {record.uid: found[record.uid] for record in wanted if record.uid in found}


def _links(tx: Tx, leading: list[tuple[_End, _End]], starting: list[tuple[_End, _End]]) -> dict[str, Links]:
    """What the targets of some links, and the sources of some, must know of their other ends."""
    leading, starting = _living(leading), _living(starting)
    owners = _owners(tx, [*leading, *starting])
    ends = {end.uid for pair in (*leading, *starting) for end in pair}
    states = _end_states(tx, ends | {owner.uid for owner in owners.values()})
    keys = _Keys.read(tx, leading, owners)
    found: dict[str, Links] = defaultdict(Links)
    for source, target in leading:
        owner = _owner_of(target, owners)
        if owner is not None and (owner.uid == target.uid or not owner.is_imported):
            refused = _refusal(source, target, owner, states)
            work = _inbound(source, target, owner, states) | {"refused": refused}
            found[owner.uid].inbound.append(work | keys.of(source, owner))
    for source, target in starting:
        owner = _owner_of(target, owners)
        refused = _refusal(source, target, owner, states)
        found[source.uid].outbound.append(_outbound(source, target, owner, states) | {"refused": refused})
    return found


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys that secrets for sources in other realms are sealed to, and those that were withdrawn (A5)."""

    valid: Mapping[sealing_keys.Place, list[str]]
    withdrawn: Mapping[sealing_keys.Realm, list[str]]

    @classmethod
    def read(cls, tx: Tx, pairs: Iterable[tuple[_End, _End]], owners: Owners) -> _Keys:
        """Read those that the sources of these links need."""
        ends = ((source, _owner_of(target, owners)) for source, target in pairs)
        places = {source.where for source, owner in ends if owner is not None and source.realm != owner.realm}
        realms = {(provider, realm) for _, provider, realm in places}
        return cls(sealing_keys.of_places(tx, places), sealing_keys.withdrawn(tx, realms))

    def of(self, source: _End, owner: _End) -> Json:
        """Those of one link: none inside one realm, where agents can read each other's stores."""
        if source.realm == owner.realm:
            return {"keys": [], "withdrawn": []}
        return {"keys": self.valid[source.where], "withdrawn": self.withdrawn.get(source.realm, [])}


def _living(pairs: Iterable[tuple[_End, _End]]) -> list[tuple[_End, _End]]:
    return [(source, target) for source, target in pairs if not source.deleting]


def _end_states(tx: Tx, uids: Iterable[str]) -> dict[str, _EndState]:
    c = components.c
    found: dict[str, _EndState] = {}
    for some in chunks(uids):
        query = select(c.uid, c.type, c.declaration, c.status, c.output_fields, c.links).where(c.uid.in_(some))
        for row in tx.connection.execute(query):
            found[row.uid] = _EndState(row.type, row.declaration, row.status, row.output_fields, row.links or {})
    return found


Owners = Mapping[str, _End]


def _owner_of(target: _End, owners: Owners) -> _End | None:
    """The component that stands for a target: itself, or the owner's where it is imported."""
    return owners.get(target.uid) if target.is_imported else target


def _owners(tx: Tx, pairs: Iterable[tuple[_End, _End]]) -> dict[str, _End]:
    """By the uid of a target that is imported, the component that stands for it: the owner's.

    What nobody can own stands for itself with everybody who declares it, where its type says so.
    """
    imported = {target.uid: target for _, target in pairs if target.is_imported}
    of_nobody = _wired_by_declarer(tx, {target.type for target in imported.values() if target.owner is None})
    found = {uid: target for uid, target in imported.items() if target.owner is None and target.type in of_nobody}
    left = {uid: imported[uid] for uid in imported.keys() - found.keys()}
    declaring = _declaring(tx, {target.identity_key for target in left.values()})
    for uid, target in left.items():
        owner = declaring.get((target.identity_key, target.owner))
        if owner is not None:
            found[uid] = owner
    return found


def _declaring(tx: Tx, identities: Iterable[str | None]) -> dict[tuple[str | None, str | None], _End]:
    """All components of these identities, by identity and LiveSystem."""
    found: dict[tuple[str | None, str | None], _End] = {}
    for some in chunks(identity for identity in identities if identity is not None):
        query = select(*_columns(_target)).where(_target.c.identity_key.in_(some))
        for row in tx.connection.execute(query):
            end = _end(row, "target")
            found[end.identity_key, end.live_system_id] = end
    return found


def _wired_by_declarer(tx: Tx, names: Collection[str]) -> set[str]:
    """Of these types, those whose declarers each serve their own links, as their agents registered them."""
    if not names:
        return set()
    query = select(types.c.type, types.c.facts).where(types.c.type.in_(sorted(names)))
    return {row.type for row in tx.connection.execute(query) if row.facts.get("wiredByDeclarer")}


def _refusal(source: _End, target: _End, owner: _End | None, states: Mapping[str, _EndState]) -> str:
    """Why a link must not be served, or not yet (L12)."""
    if owner is None and target.owner is None:
        return f"nobody owns {target.component_id!r}: only an owner's agent provides access"
    if owner is None or (owner.is_imported and owner.uid != target.uid):
        return f"its owner {target.owner!r} declares no such component here: the owner's agent must provide access"
    if owner.uid == target.uid and target.is_imported and states[target.uid].declaration.get("importOnly"):
        return f"{target.component_id!r} is importOnly: nothing is made inside it"
    if owner.live_system_id == source.live_system_id:
        return ""
    if source.live_system_id in states[owner.uid].declaration.get("linksFrom", ()):
        return ""
    where = f"{owner.live_system_id}/{owner.component_id}"
    return f"{where} does not allow it: add {source.live_system_id!r} to its linksFrom"


def refusals_if_declared(
    tx: Tx, pairs: Iterable[tuple[ComponentRecord, ComponentRecord]]
) -> dict[tuple[str, str], str]:
    """Why links would wait if they were declared, by the ids of their ends; those that would not are left out.

    The ends are rows as they would be after a deploy; what is not in the database yet may be somebody else's there.
    """
    ends = [(_end_of(source), _end_of(target)) for source, target in pairs]
    of_others = _owned_elsewhere(tx, {target.identity_key for _, target in ends if target.stance == Stance.NONE.value})
    ends = [(source, _as_importer(target, of_others)) for source, target in ends]
    owners = _owners(tx, ends)
    states = _end_states(tx, {end.uid for pair in ends for end in pair} | {owner.uid for owner in owners.values()})
    found: dict[tuple[str, str], str] = {}
    for source, target in ends:
        why = _refusal(source, target, _owner_of(target, owners), states)
        if not why and target.stance == Stance.OVERRIDE.value:
            why = f"{target.component_id!r} is in override, and it waits until that is managed again"
        if why:
            found[source.component_id, target.component_id] = why
    return found


def _end_of(record: ComponentRecord) -> _End:
    return _End(**{name: getattr(record, name) for name in _FIELDS})


def _owned_elsewhere(tx: Tx, identities: Iterable[str | None]) -> dict[str, str]:
    """Who owns each of these resources, where its owner declares it here."""
    found: dict[str, str] = {}
    c = components.c
    for some in chunks({identity for identity in identities if identity is not None}):
        query = select(c.identity_key, c.owner).where(c.identity_key.in_(some), c.owner == c.live_system_id)
        found.update((row.identity_key, row.owner) for row in tx.connection.execute(query))
    return found


def _as_importer(target: _End, owner_of: Mapping[str, str]) -> _End:
    """A target that nobody observed yet, as it will be found: an import, where another LiveSystem owns it."""
    owner = owner_of.get(target.identity_key or "")
    if target.stance != Stance.NONE.value or owner in (None, target.live_system_id):
        return target
    return replace(target, stance=Stance.IMPORTED.value, owner=owner)


def _settings(source: _EndState, target: _End) -> Json:
    for link in source.declaration.get("links", ()):
        if link["target"] == target.component_id:
            return dict(link.get("settings", {}))
    return {}


def _source_id(source: _End, owner: _End) -> str:
    if source.live_system_id == owner.live_system_id:
        return source.component_id
    return f"{source.live_system_id}/{source.component_id}"


def _inbound(source: _End, target: _End, owner: _End, states: Mapping[str, _EndState]) -> Json:
    other = states[source.uid]
    return {
        "other": _source_id(source, owner),
        "type": other.type,
        "provider": source.provider,
        "settings": _settings(other, target),
        "status": other.status,
        "outputs": other.outputs,
        "published": other.published_to(target.component_id),
    }


def _outbound(source: _End, target: _End, owner: _End | None, states: Mapping[str, _EndState]) -> Json:
    far = owner or target
    source_id = _source_id(source, far)
    return {
        "other": target.component_id,
        "type": states[target.uid].type,
        "provider": target.provider,
        "settings": _settings(states[source.uid], target),
        "status": states[far.uid].status,
        "outputs": states[far.uid].outputs,
        "published": states[far.uid].published_for.get(source_id, {}),
        "keys": [],
        "withdrawn": [],
        "failed": states[far.uid].failure_for(source_id),
    }


def elsewhere(tx: Tx, declared: Sequence[ComponentRecord]) -> dict[str, str]:
    """Components of other LiveSystems (uid to scope) that are at the other end of links, or would be: of a declaration
    that is about to change, or to be written.
    """
    by_id = {record.component_id: record for record in declared}
    imported = [
        by_id[link["target"]]
        for record in declared
        for link in record.declaration.get("links", ())
        if link["target"] in by_id and by_id[link["target"]].stance == Stance.IMPORTED.value
    ]
    wanted = {(record.identity_key, record.owner) for record in imported}
    found = _where([end for key, end in _declaring(tx, {r.identity_key for r in imported}).items() if key in wanted])
    ours = {record.live_system_id for record in declared}
    identities = [record.identity_key for record in declared if record.identity_key is not None]
    for source, target in _found(tx, _target.c.identity_key, identities):
        if target.live_system_id not in ours:
            found |= _where([source])
    return found


def _where(ends: Iterable[_End]) -> dict[str, str]:
    """Ends (uid to scope), those that are in one."""
    return {end.uid: end.scope_key for end in ends if end.scope_key is not None}


def listeners_to_keys(tx: Tx, realms: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Targets elsewhere of links from sources in these realms (uid to scope): their agents seal to its keys (A5)."""
    where = tuple_(scopes.c.provider, scopes.c.realm).in_([pair for pair in realms if pair[1]])
    keys = tx.connection.execute(select(scopes.c.key).where(where)).scalars().all()
    pairs = list(_found(tx, _source.c.scope_key, keys))
    owners = _owners(tx, pairs)
    found: dict[str, str] = {}
    for source, target in pairs:
        owner = _owner_of(target, owners)
        if owner is not None and owner.scope_key is not None and owner.realm != source.realm:
            found[owner.uid] = owner.scope_key
    return found
