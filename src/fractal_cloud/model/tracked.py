"""One component as the agent of its scope knows it: compact, because an agent holds very many of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, get_type_hints

from fractal_cloud.model.generated import is_generated
from fractal_cloud.model.identity import Identity, Scope
from fractal_cloud.model.link import NO_LINKS, LinkStates, LinkWork
from fractal_cloud.model.observed import Observed, to_report
from fractal_cloud.model.reference import FindReference, find_references, needs_filling, placed, references
from fractal_cloud.model.wire import (
    Bound,
    ComponentChange,
    JournalEntry,
    KnownResource,
    OperatorRequest,
    WorkComponent,
)

AT_PUBLICATION: Final = datetime.max.replace(tzinfo=UTC)
"""Stands for a time that the control plane will stamp when it is published."""

_NOTHING: Final[frozenset[str]] = frozenset()
_NO_TAGS: Final[Mapping[str, str]] = {}


class Interner:
    """Copies plain data out of one parsed message, equal texts only once.

    A message is many times bigger than what is kept of it, and a text of it that stayed in use would keep the memory
    around it from being given back: so none does.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._moments: dict[datetime, datetime] = {}
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}

    def text(self, text: str) -> str:
        """A text of our own; the same one for equal texts."""
        copy = self._texts.get(text)
        if copy is None:
            copy = self._texts[text] = text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass")
        return copy

    def optional(self, text: str | None) -> str | None:
        """A text of our own, where there is one."""
        return None if text is None else self.text(text)

    def moment(self, at: datetime) -> datetime:
        """A time of our own; the same one for equal times."""
        return self._moments.setdefault(at, at.astimezone(UTC))

    def texts(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Texts of our own."""
        return tuple(map(self.text, texts))

    def pair(self, one: str, other: str) -> tuple[str, str]:
        """Two texts of our own; the same pair for equal ones."""
        pair = (self.text(one), self.text(other))
        return self._pairs.setdefault(pair, pair)

    def plain(self, value: Any) -> Any:
        """JSON data of our own; keys are the very objects that the code spells them with."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {sys.intern(self.text(key)): self.plain(item) for key, item in value.items()}
        return [self.plain(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of a resource under its natural identity; see ``KnownResource``."""

    owner: str | None = None
    resource_id: str | None = None
    left_by: str | None = None
    overridden: bool = False

    @classmethod
    def from_wire(cls, sent: KnownResource, interner: Interner) -> Known:
        """The compact form of what the control plane sent."""
        own = interner.optional
        return cls(own(sent.owner), own(sent.resource_id), own(sent.left_by), sent.overridden)

    def to_wire(self, identity: str) -> KnownResource:
        """The form in which it is published."""
        return KnownResource(
            identity=identity,
            owner=self.owner,
            resource_id=self.resource_id,
            left_by=self.left_by,
            overridden=self.overridden,
        )


NOTHING_KNOWN: Final = Known()


_OWN: Final[Mapping[object, Callable[[Interner, Any], Any]]] = {
    str: Interner.text,
    str | None: Interner.optional,
    tuple[str, ...]: Interner.texts,
    Mapping[str, Any]: Interner.plain,
    Mapping[str, str]: Interner.plain,
    LinkStates: lambda _, links: links if links.inbound or links.outbound else NO_LINKS,
}
"""How a value is copied out of a message, by its type; of other types, parsing made the copy."""
_COPIED: Final = {name: _OWN[kind] for name, kind in get_type_hints(Observed).items() if kind in _OWN}


def interned(memory: Observed, interner: Interner) -> Observed:
    """Return the observed half of a message in texts of our own."""
    return replace(memory, **{name: own(interner, getattr(memory, name)) for name, own in _COPIED.items()})


@dataclass(slots=True)
class Tracked:
    """The desired half of a component, as the control plane sent it, and what is remembered of it.

    ``realm_names``: what the account (or the like) is called under which it is looked for, and in the declaration.
    ``secrets``: the names of the secrets that its parameters refer to (A8). ``fills``: the parameters in which
    something is filled in; ``finds``: what they look for (C12).
    ``tags``: the user's own, those of its LiveSystem among them.
    """

    uid: str
    live_system_id: str
    component_id: str
    type: str
    parameters: Mapping[str, Any]
    dependencies: tuple[str, ...]
    ignore_drift: frozenset[str]
    import_only: bool
    readoption_by_tag: bool
    deployed_at: datetime
    generation: int
    identity: Identity
    declared_identity: Identity
    deleting: bool
    request: OperatorRequest | None
    memory: Observed
    bound: Bound | None = None
    left_dependents: tuple[str, ...] = ()
    open_writes: tuple[JournalEntry, ...] = ()
    links_in: tuple[LinkWork, ...] = ()
    links_out: tuple[LinkWork, ...] = ()
    realm_names: tuple[str, str] = ("", "")
    in_recovery: bool = False
    secrets: frozenset[str] = _NOTHING
    create_once: bool = False
    fills: tuple[str, ...] = ()
    finds: tuple[FindReference, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, work: WorkComponent, scope: Scope, interner: Interner) -> Tracked:
        """The compact form of one component of a scope's work."""
        declaration, own = work.declaration, interner.text
        # Which realm another name stands for is not known here; that it is another one is all that counts.
        here, there = names = interner.pair(work.realm_name, work.declared_realm_name)
        declared_scope = Scope(scope.provider, scope.realm if here == there else there, own(work.declared_place))
        identity = Identity(sys.intern(own(declaration.type)), scope, own(work.name), own(work.parent))
        declared = Identity(identity.type, declared_scope, own(work.declared_name), own(work.declared_parent))
        secrets = frozenset(own(one.name) for _, one in references(declaration.parameters)) or _NOTHING
        parameters = interner.plain(declaration.parameters)
        if any(map(is_generated, secrets)):
            parameters = placed(parameters, own(declaration.id))
            secrets = frozenset(one.name for _, one in references(parameters))
        return cls(
            uid=own(work.uid),
            live_system_id=own(work.live_system_id),
            component_id=own(declaration.id),
            type=identity.type,
            parameters=parameters,
            dependencies=tuple(map(own, declaration.dependencies)),
            ignore_drift=frozenset(map(own, declaration.ignore_drift)) if declaration.ignore_drift else _NOTHING,
            import_only=declaration.import_only,
            create_once=declaration.create_once,
            readoption_by_tag=work.readoption == "tag",
            deployed_at=interner.moment(work.deployed_at),
            generation=work.generation,
            identity=identity,
            declared_identity=identity if declared == identity else declared,
            realm_names=names,
            deleting=work.deleting,
            request=work.request,
            memory=interned(work.memory, interner),
            bound=work.bound,
            left_dependents=tuple(map(own, work.left_dependents)),
            open_writes=tuple(work.open_writes),
            links_in=tuple(work.links_in),
            links_out=tuple(work.links_out),
            in_recovery=work.in_recovery,
            secrets=secrets,
            fills=tuple(own(name) for name, value in declaration.parameters.items() if needs_filling(value)),
            finds=tuple(lookup for _, lookup in find_references(declaration.parameters)),
            tags=interner.plain(declaration.tags) if declaration.tags else _NO_TAGS,
        )

    @property
    def given_up(self) -> tuple[JournalEntry, ...]:
        """Writes that did not return in time, and whose effect has not shown yet (S24)."""
        return tuple(entry for entry in self.open_writes if entry.is_given_up) if self.open_writes else ()

    @property
    def is_wired(self) -> bool:
        """Whether links lead here or start here, or something of one is left."""
        return bool(self.links_in or self.links_out) or self.memory.links is not NO_LINKS

    @property
    def ignored(self) -> frozenset[str]:
        """Parameters that are not compared: none while the creation is under way, which sets them (G15)."""
        return self.ignore_drift if self.memory.intent is None else _NOTHING

    @property
    def is_redeployed(self) -> bool:
        """Whether the LiveSystem was deployed after the absence that still stands had been published."""
        absent_since = self.memory.absent_since
        return absent_since is not None and self.deployed_at > absent_since


def to_change(
    uid: str, memory: Observed, *, used_request: str | None = None, finished: bool = False, left: bool = False
) -> ComponentChange:
    """What is remembered from now on, in the form in which it is published."""
    return ComponentChange(uid=uid, used_request=used_request, finished=finished, left=left, **to_report(memory))
