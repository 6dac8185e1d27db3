"""One component as the agent of its scope knows it: compact, because an agent holds very many of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from fractal_cloud.model.identity import Identity, Scope
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import (
    ComponentChange,
    Intent,
    JournalEntry,
    Memory,
    OperatorRequest,
    Override,
    WorkComponent,
)

AT_PUBLICATION: Final = datetime.max.replace(tzinfo=UTC)
"""Stands for a time that the control plane will stamp when it is published."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """The observed half of a component; see ``Memory`` for what each field means."""

    stance: Stance = Stance.NONE
    status: Status = Status.INSTANTIATING
    message: str = ""
    owner: str | None = None
    resource_id: str | None = None
    output_fields: Mapping[str, Any] = field(default_factory=dict)
    observed_generation: int = 0
    established: bool = False
    absent_since: datetime | None = None
    noticed_since: datetime | None = None
    intent: Intent | None = None
    override: Override | None = None
    waits_for: tuple[str, ...] = ()

    @classmethod
    def from_wire(cls, memory: Memory) -> Remembered:
        """The compact form of what the control plane told."""
        values = {name: getattr(memory, name) for name in Memory.model_fields}
        return cls(**{**values, "waits_for": tuple(memory.waits_for)})


@dataclass(slots=True)
class Tracked:
    """The desired half of a component, as the control plane told it, and what is remembered of it."""

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
    memory: Remembered
    open_writes: tuple[JournalEntry, ...] = ()

    @classmethod
    def from_wire(cls, work: WorkComponent, scope: Scope) -> Tracked:
        """The compact form of one component of a scope's work."""
        declaration = work.declaration
        declared_scope = Scope(scope.provider, scope.realm, work.declared_place)
        identity = Identity(declaration.type, scope, work.name, work.parent)
        declared = Identity(declaration.type, declared_scope, work.declared_name, work.declared_parent)
        return cls(
            uid=work.uid,
            live_system_id=work.live_system_id,
            component_id=declaration.id,
            type=identity.type,
            parameters=declaration.parameters,
            dependencies=tuple(declaration.dependencies),
            ignore_drift=_frozen(declaration.ignore_drift),
            import_only=declaration.import_only,
            readoption_by_tag=work.readoption == "tag",
            deployed_at=work.deployed_at,
            generation=work.generation,
            identity=identity,
            declared_identity=identity if declared == identity else declared,
            deleting=work.deleting,
            request=work.request,
            memory=Remembered.from_wire(work.memory),
            open_writes=tuple(work.open_writes),
        )

    @property
    def ignored(self) -> frozenset[str]:
        """Parameters that are not compared: none while the creation is under way, which sets them (G15)."""
        return self.ignore_drift if self.memory.intent is None else _NOTHING

    @property
    def is_redeployed(self) -> bool:
        """Whether the LiveSystem was deployed after the absence that still stands had been published."""
        absent_since = self.memory.absent_since
        return absent_since is not None and self.deployed_at > absent_since


_NOTHING: Final[frozenset[str]] = frozenset()


def _frozen(names: list[str]) -> frozenset[str]:
    return frozenset(names) if names else _NOTHING


def to_change(
    uid: str, memory: Remembered, *, used_request: str | None = None, finished: bool = False
) -> ComponentChange:
    """What is remembered from now on, in the form in which it is published."""
    override = memory.override
    return ComponentChange(
        uid=uid,
        stance=memory.stance,
        status=memory.status,
        message=memory.message,
        owner=memory.owner,
        resource_id=memory.resource_id,
        output_fields=dict(memory.output_fields),
        observed_generation=memory.observed_generation,
        established=memory.established,
        absent=memory.absent_since is not None,
        noticed=memory.noticed_since is not None,
        intent=memory.intent,
        overridden=override is not None,
        override_by=override.by if override else None,
        override_reason=override.reason if override else None,
        override_until=override.until if override else None,
        used_request=used_request,
        finished=finished,
        waits_for=list(memory.waits_for),
    )
