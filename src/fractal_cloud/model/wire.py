"""What agents and the control plane say to each other. Outbound from the agent only; HTTP and JSON.

    register ──▶ claim (leases, work) ──▶ [cycle: report intents, write, report outcomes] ──▶ wait (long poll) ──▶ …

The control plane owns the *desired* half of a component (declaration, generation, requests, deleting); the agent that
holds the scope's lease owns the *observed* half (`Observed`). Each sends the other only what changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import ComponentDeclaration, Readoption, Wire
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.link import LinkWork
from fractal_cloud.model.observed import Observed, ObservedReport
from fractal_cloud.model.status import Stance, Status


class Bound(Wire):
    """The one resource that a deletion may delete: the one published when the deletion was requested (O19).

    ``incarnation``: see ``Sighting``; empty where the id itself never returns.
    """

    resource_id: str
    incarnation: str = ""


class RequestKind(StrEnum):
    """What an operator asked for through the product."""

    FORCE_PUSH = "force-push"
    BREAK = "break"
    TRANSFER = "transfer"


def refused_event(kind: RequestKind) -> EventKind:
    """The event that says that a request of this kind is used up, and was not carried out."""
    return EventKind.TRANSFER_REFUSED if kind is RequestKind.TRANSFER else EventKind.FORCE_PUSH_REFUSED


class OperatorRequest(Wire):
    """An operator's Force Push (G10), broken glass (G13) or transfer (O8), until the agent used it up or refused it.

    ``resource_id``: what the component was known as when it was asked for. A Force Push and a transfer are used up by
    publishing their intent; a BREAK is used up only when ``managed-by`` is off, and finished after a crash. ``to``: the
    LiveSystem that a transfer makes the owner.
    """

    id: str
    kind: RequestKind
    by: str
    at: datetime
    generation: int
    resource_id: str | None = None
    stance: Stance = Stance.NONE
    reason: str | None = None
    until: datetime | None = None
    to: str | None = None


class JournalEntry(Wire):
    """One write to a cloud: its intent (outcome None), later its outcome (C7).

    An open intent with an error was given up: it counts as sent, and holds the next write back (S24).
    ``repeats``: the entry of an equal refusal of the same step before it, in which this one is counted (S21).
    """

    id: str
    uid: str
    generation: int
    verb: Literal["create", "update", "delete", "tag"]
    reason: str
    resource_id: str | None = None
    before: dict[str, Any] = Field(default_factory=dict)
    after: dict[str, Any] = Field(default_factory=dict)
    tags: dict[str, str] = Field(default_factory=dict)
    request_ids: list[str] = Field(default_factory=list)
    outcome: Literal["done", "failed", "unknown", "abandoned"] | None = None
    error: str = ""
    repeats: str = ""

    @property
    def is_given_up(self) -> bool:
        """Whether the call did not return in time: it may take effect at any moment (S24)."""
        return self.outcome is None and bool(self.error)


class WorkComponent(Wire):
    """One component as the agent of its scope needs it. ``uid`` is stable for the life of the component's row.

    ``place`` and ``name`` (and ``parent``) are the identity under which it is looked for; where the declaration now
    says another one, ``declared_place``, ``declared_name`` and ``declared_parent`` differ from them (S18); so do
    ``realm_name`` and ``declared_realm_name``, by which declarations call the account (or the like).
    ``held_by``: components in other scopes that depend on this one and are not gone yet: it is not deleted before them.
    ``hosted``: those of them that live in it. ``left_inside``: what this LiveSystem left in it in override (O10).
    ``bound``: of a component that is being deleted, the resource that may be deleted (O19). ``left_dependents``:
    components of its LiveSystem, in whatever scope, that depended on it and were left in the cloud (O10).
    ``open_writes``: journalled intents without a reported outcome (the agent died): the next reading closes them (C7).
    ``links_in``: links that lead here, where this component is the owner's; ``links_out``: links that start here.
    ``in_recovery``: the control plane was restored from a backup, and nobody has confirmed this LiveSystem yet: it is
    only read (C9).
    """

    uid: str
    live_system_id: str
    environment: str
    in_recovery: bool = False
    readoption: Readoption = "handshake"
    deployed_at: datetime
    generation: int
    declaration: ComponentDeclaration
    name: str
    place: str
    parent: str = ""
    realm_name: str = ""
    declared_name: str
    declared_place: str
    declared_parent: str = ""
    declared_realm_name: str = ""
    deleting: bool = False
    bound: Bound | None = None
    left_dependents: list[str] = Field(default_factory=list)
    request: OperatorRequest | None = None
    held_by: list[str] = Field(default_factory=list)
    hosted: list[str] = Field(default_factory=list, alias="lodgers")
    left_inside: list[str] = Field(default_factory=list)
    open_writes: list[JournalEntry] = Field(default_factory=list)
    links_in: list[LinkWork] = Field(default_factory=list)
    links_out: list[LinkWork] = Field(default_factory=list)
    memory: Observed = Field(default_factory=Observed)


class KnownResource(Wire):
    """What is remembered of a resource under its natural identity, whoever declares it.

    ``owner``: last seen on the tag, or written in a create intent (the heir, if it still declares it).
    ``left_by``: the LiveSystem that left it in the cloud when it was deleted (O10); ``overridden``: in override, and
    not only because something that was left depends on it.
    """

    identity: str
    owner: str | None = None
    resource_id: str | None = None
    left_by: str | None = None
    overridden: bool = False


class Outside(Wire):
    """The published state of a component in another scope that some component here refers to.

    ``never_created``: no resource was ever published for it, and no creation is open.
    ``moved``: its declaration says another place than it stands in, and it cannot go there (S18).
    """

    live_system_id: str
    component_id: str
    status: Status
    output_fields: dict[str, Any] = Field(default_factory=dict)
    never_created: bool = False
    moved: bool = False


class ScopeWork(Wire):
    """The work of one scope: everything, or what changed since the version the agent said it has.

    ``gone`` lists uids of components that are no longer this scope's business.
    """

    scope: str
    version: int
    full: bool = True
    components: list[WorkComponent] = Field(default_factory=list)
    gone: list[str] = Field(default_factory=list)
    resources: list[KnownResource] = Field(default_factory=list)
    outside: list[Outside] = Field(default_factory=list)


class Lease(Wire):
    """The right to be the only writer of a scope until the holder's deadline, and the token that proves it."""

    scope: str
    token: int
    work: ScopeWork | None = None


class Reach(Wire):
    """A provider an agent serves, and an account (or the like) it really reaches there.

    ``name``: what declarations call it, where a provider has several (a cluster); empty for the one that is meant where
    none is named; of a host, what the control plane called it. ``ANY_HOST`` with an empty realm says that this agent
    accepts hosts.
    """

    provider: str
    realm: str
    name: str = ""


class Host(Wire):
    """A declared component in which others live (a cluster), by its natural identity: where it answers is asked of the
    vendor by the agent that enters it (A6).

    ``provider``: of those who live in it; ``vendor``: of the cluster itself. ``name``: by which an agent that reaches
    it registers it. ``resource``: its own name, in a place of a realm of the vendor.
    """

    provider: str
    name: str
    type: str
    vendor: str
    realm: str
    place: str
    resource: str


class Hosts(Wire):
    """All hosts an agent is to reach; ``number`` changes with every news of them."""

    number: int
    hosts: list[Host] = Field(default_factory=list)


class LastSeen(Wire):
    """The newest event that an agent knows of, and the incarnation of the database that it is in (C9).

    ``event_id``: empty where that event is kept no longer. ``at``: the control plane's time of that news. ``proof``: by
    which the control plane knows later that it said so itself; whatever has none begins no recovery.
    """

    incarnation: str
    event: int
    event_id: str = ""
    at: datetime
    proof: str = ""


class Registration(Wire):
    """An agent introduces itself. ``public_key``: what is sealed to it, only this agent can open (L9).

    ``families``: the families of types that it serves, by name; it makes an offer of theirs when one is used.
    ``last_seen``: what it remembers of this control plane; None for one that was never here.
    """

    agent_id: str
    environment: str
    reaches: list[Reach]
    types: list[TypeFacts] = Field(default_factory=list)
    families: list[str] = Field(default_factory=list)
    cycle_seconds: float
    version: str = ""
    public_key: str = ""
    last_seen: LastSeen | None = None


class Registered(Wire):
    """The control plane's answer to a registration; ``others``: what it reaches that is not the realm first reached.

    ``waiting``: what it reaches and is not let in at before an operator has approved it (A2).
    """

    now: datetime
    lease_seconds: float
    last_seen: LastSeen
    others: list[Reach] = Field(default_factory=list)
    waiting: list[Reach] = Field(default_factory=list)


class Claim(Wire):
    """An agent asks for scopes: those it holds (with the version of the work it has), and up to ``limit`` new ones.

    ``hosts``: the number of the hosts it knows. ``unreached``: those it cannot reach, by name, each with the reason.
    """

    agent_id: str
    last_seen: LastSeen
    held: dict[str, int] = Field(default_factory=dict)
    limit: int = 1000
    hosts: int = 0
    unreached: dict[str, str] = Field(default_factory=dict)


class Claimed(Wire):
    """All leases the agent holds now, with work where it changed; and plans somebody waits for.

    ``asked_back``: scopes beyond the agent's share, to be given back when no cycle of theirs runs. ``hosts``: where
    there is news of them, all of them. ``register_again``: what the agent waited for was approved (A2).
    ``key_withdrawn``: its sealing key was withdrawn, and it is to make a new one (A5).
    """

    now: datetime
    wake: int
    last_seen: LastSeen
    leases: list[Lease] = Field(default_factory=list)
    asked_back: list[str] = Field(default_factory=list)
    plans: list[PlanTask] = Field(default_factory=list)
    hosts: Hosts | None = None
    register_again: bool = False
    key_withdrawn: bool = False


class Wait(Wire):
    """A long poll: returns as soon as anything after ``wake`` concerns this agent, or after ``seconds``."""

    agent_id: str
    wake: int
    seconds: float = 20.0


class Woken(Wire):
    """The end of a long poll."""

    wake: int
    woken: bool


class Unread(Wire):
    """A part of a scope that the last read of it did not show: ``since`` when, and when it was last read, if ever."""

    since: AwareDatetime
    last_read: AwareDatetime | None = None


PartName = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")]
MOST_UNREAD: Final = 5_000
"""The most parts of a scope that are named one by one as unread."""
_Count = Annotated[int, Field(ge=0, le=2**53)]


class ScopeCycle(Wire):
    """How the last cycle of a scope went: how long it took, and the calls to its cloud that it made (C11).

    ``throttles`` and ``errors``: calls that the cloud wanted fewer of, and those that failed otherwise.
    ``is_writing``: what was read is still being reconciled. ``unread``: by type, or by uid of a single component, what
    could not be read (S0).
    """

    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    calls: _Count = 0
    throttles: _Count = 0
    errors: _Count = 0
    is_writing: bool = False
    unread: dict[PartName, Unread] = Field(default_factory=dict, max_length=MOST_UNREAD)


class Heartbeat(Wire):
    """One row per agent and cycle: alive, and when each scope was last read (``sweep``: the oldest swept reading).

    ``held``: the scopes the agent takes for its own, each with the token of its lease. ``cycles``: how the last cycle
    of each went.
    """

    agent_id: str
    last_seen: LastSeen
    held: dict[str, int] = Field(default_factory=dict)
    read_at: dict[str, AwareDatetime] = Field(default_factory=dict)
    swept_since: dict[str, AwareDatetime] = Field(default_factory=dict)
    cycles: dict[str, ScopeCycle] = Field(default_factory=dict)


class Beat(Wire):
    """The answer to a heartbeat; ``lost`` are scopes the agent no longer holds.

    ``has_stale``: some that it holds count as unread, and the next read of them is worth a heartbeat of its own (C11).
    """

    now: datetime
    lost: list[str] = Field(default_factory=list)
    has_stale: bool = False


class AgentEvent(Wire):
    """Something the agent saw that is worth an event of its own."""

    uid: str
    kind: EventKind
    message: str = ""
    before: Any = None
    after: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentChange(ObservedReport):
    """The observed half of one component, and what its report ends.

    ``used_request``: the id of the operator's request this change uses up. ``finished``: a deleted component is done;
    ``left``: and its resource was left in the cloud. Where ``established`` is not set, the control plane moves the
    component to the identity its declaration says.
    """

    uid: str
    used_request: str | None = None
    finished: bool = False
    left: bool = False


class ScopeReport(Wire):
    """What changed in one scope, under its lease, judged from that version of its work."""

    scope: str
    token: int
    version: int
    changes: list[ComponentChange] = Field(default_factory=list)
    resources: list[KnownResource] = Field(default_factory=list)
    journal: list[JournalEntry] = Field(default_factory=list)
    events: list[AgentEvent] = Field(default_factory=list)


class Report(Wire):
    """All that changed in a cycle, or all that is about to be written in a wave; refused whole if a token is stale."""

    agent_id: str
    last_seen: LastSeen
    scopes: list[ScopeReport]


class Reported(Wire):
    """The time all stamps of this report bear."""

    at: datetime


class PlanTask(Wire):
    """A plan somebody waits for: the scope's work as it would be after the deploy; ``uids`` are those asked about.

    ``learn``: nothing is planned, and the cloud is asked what this type is.
    """

    id: str
    work: ScopeWork
    uids: list[str]
    learn: str = ""


class PlannedAction(StrEnum):
    """What a deploy would do with one component."""

    CREATE = "create"
    CHANGE = "change"
    IMPORT = "import"
    LEAVE = "leave"
    NOTHING = "nothing"
    DELETE = "delete"
    DROP = "drop"
    FAIL = "fail"
    UNKNOWN = "unknown"


class PlannedLinkAction(StrEnum):
    """What a deploy would do with one link."""

    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"
    NOTHING = "nothing"


class PlannedLink(Wire):
    """What a deploy would do with one link of a component (C6).

    ``changes``: its settings as declared against those that stand. ``waits``: why it would not be carried out yet.
    """

    target: str
    action: PlannedLinkAction
    changes: dict[str, Any] = Field(default_factory=dict)
    waits: str = ""


class PlannedComponent(Wire):
    """What a deploy would do with one component, and why (C6); ``changes`` holds declared against actual.

    ``found``: what its lookups find, by the path of each (C12).
    """

    uid: str
    component_id: str
    type: str
    action: PlannedAction
    rule: str = ""
    message: str = ""
    changes: dict[str, Any] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)
    resource_id: str | None = None
    holds_data: bool = False
    found: dict[str, list[Any]] = Field(default_factory=dict)


class PlanResult(Wire):
    """An agent's answer to a plan task. ``learned``: what the type is that was asked about; else ``why`` not."""

    components: list[PlannedComponent] = Field(default_factory=list)
    learned: TypeFacts | None = None
    why: str = ""


Claimed.model_rebuild()
