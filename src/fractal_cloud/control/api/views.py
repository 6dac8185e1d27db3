"""What the routes answer, as models: the OpenAPI document is made of them, and the tests hold the answers against it.

The answers themselves are built as plain JSON in the store, without a detour through these.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import ComponentDeclaration, Wire
from fractal_cloud.model.event import Event
from fractal_cloud.model.notification import NotificationFormat, NotificationKind
from fractal_cloud.model.observed import Override
from fractal_cloud.model.status import MutationStatus, Stance, Status
from fractal_cloud.model.wire import OperatorRequest, PlannedAction, PlannedLink, Reach


class Accepted(Wire):
    """A deploy or delete was taken."""

    live_system_id: str
    mutation_id: str
    warnings: list[str]


class LiveSystemSummary(Wire):
    """How a LiveSystem is doing. ``counts``: components by status; ``oldestOverride``: since when the oldest is.

    ``stale``: ``staleComponents`` of its components were not read for two cycles; ``lastRead``: the oldest of their
    last reads (C11). ``components``: all that is declared, with ``include=components``.
    """

    id: str
    environment: str
    description: str
    readoption: str
    tags: dict[str, str]
    status: Status
    counts: dict[str, int]
    overrides: int
    overdue: int
    oldest_override: datetime | None
    drifted: int
    stale: bool
    stale_components: int
    last_read: datetime | None
    generation: int
    mutation_id: str
    deleting: bool
    in_recovery: bool
    deployed_at: datetime
    last_updated: datetime
    components: list[ComponentDeclaration] | None = None


class LiveSystem(LiveSystemSummary):
    """A LiveSystem: what is declared, and how it is doing."""

    components: list[ComponentDeclaration]


class ChangedBy(Wire):
    """Something that was changed outside of Fractal Cloud, and who did it, as far as the cloud records that.

    ``parameter``: what was changed; ``managed-by`` where somebody took the resource over. ``stands``: it still is so.
    ``state``: who is ``known``; ``related``: a call to the resource is known, and not what it set; ``waiting`` for a
    record that is written late; ``denied``: the agent may not read it; ``unknown``. ``text`` says it in one sentence.
    """

    parameter: str
    seen: datetime
    after: datetime | None
    stands: bool
    state: Literal["known", "related", "waiting", "denied", "unknown"]
    by: str
    identity: str
    at: datetime | None
    how: str
    address: str
    source: str
    text: str


class Component(Wire):
    """A component: what is declared, and what was last seen of it.

    ``lastRead``: when it was last read, with its scope; ``stale``: that is more than two cycles ago (C11).
    """

    id: str
    component_id: str
    live_system_id: str
    type: str
    provider: str
    environment: str
    status: Status
    stance: Stance
    message: str
    owner: str | None
    generation: int
    observed_generation: int
    last_updated: datetime
    last_read: datetime | None
    stale: bool
    override: Override | None
    overdue: bool
    deleting: bool
    scope: str | None
    resource_id: str | None
    resource_key: str | None
    request: OperatorRequest | None
    waits_for: list[str]
    changed_by: list[ChangedBy]
    declaration: ComponentDeclaration
    output_fields: dict[str, Any]


class MutationComponent(Wire):
    """A component as a mutation sees it, or saw it last."""

    component_id: str
    type: str
    status: Status
    message: str
    output_fields: dict[str, Any]
    generation: int
    observed_generation: int
    waits_for: list[str]
    links_waiting: list[str]
    resource_id: str | None


class MutationSummary(Wire):
    """A deploy or delete."""

    id: str
    live_system_id: str
    kind: Literal["deploy", "delete"]
    status: MutationStatus
    generation: int
    by: str
    created_at: datetime
    updated_at: datetime


class Mutation(MutationSummary):
    """A deploy or delete, with every component. ``reasons``: why it is ``Failed``, and empty if it is not."""

    reasons: list[str]
    components: dict[str, MutationComponent]
    held_by_override: list[str]
    waiting: list[str]
    links_waiting: list[str]


class JournalItem(Wire):
    """One write to a cloud."""

    id: str
    live_system_id: str
    component_id: str
    agent_id: str
    generation: int
    verb: str
    reason: str
    resource_id: str | None
    before: dict[str, Any]
    after: dict[str, Any]
    tags: dict[str, str]
    request_ids: list[str]
    outcome: str
    error: str
    at: datetime
    finished_at: datetime | None
    count: int
    last_at: datetime | None


class Declarer(Wire):
    """A component that declares a resource."""

    live_system_id: str
    component_id: str
    status: Status


class Resource(Wire):
    """A cloud resource, whoever declares it. ``absent``: somebody declares it, and it is not there now."""

    key: str
    identity: str
    type: str
    scope: str
    name: str
    resource_id: str | None
    absent: bool
    owner: str | None
    left_by: str | None
    importers: list[str]
    declared_by: list[Declarer]
    last_updated: datetime


class Refusal(Wire):
    """A component for which a request was refused at once."""

    component_id: str
    reason: str


class Requested(Wire):
    """An operator's request was taken, for these components.

    ``tags_frozen``: those of them whose tags nobody can change; the control plane remembers what was asked for.
    ``already_in_override``: those for which the glass was broken before; ``override``: how it stood until then.
    """

    live_system_id: str
    requested: list[str]
    refused: list[Refusal]
    already_in_override: list[str]
    override: Override | None
    tags_frozen: list[str]


class Whoami(Wire):
    """The name, the role and the environments of a token; no environments: it is bound to none."""

    name: str
    role: str
    environments: list[str]


class TransferRequested(Wire):
    """The agent was asked to make another LiveSystem the owner; ``to_component_id``: what declares it there."""

    live_system_id: str
    component_id: str
    to: str
    to_component_id: str
    resource_id: str


class OverrideTerms(Wire):
    """Who holds a component by hand, why, since and until when; ``since`` None: asked for, and not carried out yet."""

    since: datetime | None
    by: str | None
    reason: str | None
    until: datetime | None


class OverrideChanged(Wire):
    """An override that was extended or handed over, in memory alone; ``changed`` False: it was so before.

    ``overdue``: its end has passed.
    """

    live_system_id: str
    component_id: str
    changed: bool
    before: OverrideTerms
    override: OverrideTerms
    overdue: bool


class Glass(Wire):
    """The vendor's own commands; ``missing`` names the values that are not known yet.

    ``tags_frozen``: the vendor has none, because nobody can change a tag of it; the commands are this product's own.
    """

    live_system_id: str
    component_id: str
    provider: str
    resource_id: str | None
    status: Status
    break_: list[str] = Field(alias="break")
    readopt: list[str]
    caveat: str
    tags_frozen: bool
    missing: list[str]
    message: str
    override: Override | None


class PlannedComponent(Wire):
    """What a deploy would do with one component."""

    component_id: str
    type: str
    action: PlannedAction
    rule: str
    message: str
    changes: dict[str, Any]
    warnings: list[str]
    resource_id: str | None
    holds_data: bool
    found: dict[str, list[Any]]
    links: list[PlannedLink]


class Plan(Wire):
    """What a deploy would do. ``verdict``: how it would end, ``reasons``: why it would fail."""

    live_system_id: str
    components: list[PlannedComponent]
    summary: dict[str, int]
    has_changes: bool
    warnings: list[str]
    verdict: Literal["Completed", "Failed", "Unknown"]
    reasons: list[str]


class RecoveryPlan(Plan):
    """What confirming a LiveSystem of a restored backup would do.

    ``fingerprint``: what confirms it; null while some components are ``unknown``.
    """

    fingerprint: str | None
    unknown: list[str]


class EndedComponent(Wire):
    """What a delete would do with one component."""

    component_id: str
    type: str
    resource_id: str | None
    ending: Literal["deleted", "left", "dropped", "absent", "unknown"]
    message: str
    holds_data: bool
    importers: list[str]
    broken_links: list[str]


class Preview(Wire):
    """What a delete would do."""

    components: list[EndedComponent]
    summary: dict[str, int]


class DeletePreview(Wire):
    """What a delete would do, and its warnings."""

    live_system_id: str
    warnings: list[str]
    preview: Preview


class Agent(Wire):
    """An agent, as it registered and was last heard of.

    ``environments``: those that its token is bound to, as patterns. ``scopes``: how many it holds, ``staleScopes`` of
    them not read for two cycles; ``lastCycle``: when it last read any. ``stale``: it was not heard of for two cycles,
    or holds a stale scope (C11). ``token``: the name of its token; ``key``: the fingerprint of its sealing key;
    ``waiting``: what it reaches and is not let in at before somebody approves it.
    """

    id: str
    environment: str
    token: str
    key: str
    reaches: list[Reach]
    waiting: list[Reach]
    cycle_seconds: float
    last_seen: datetime
    alive: bool
    version: str
    environments: list[str]
    scopes: int
    stale_scopes: int
    last_cycle: datetime | None
    stale: bool


class Waiting(Wire):
    """An agent that waits at a realm until somebody approves it; ``key``: the fingerprint of its sealing key."""

    id: str
    agent_id: str
    environment: str
    provider: str
    realm: str
    token: str
    key: str
    since: datetime


class Approved(Wire):
    """Who waited, and where, until now."""

    approved: list[Waiting]


class ApprovalWithdrawn(Wire):
    """Who waits from now on, and where."""

    withdrawn: list[Waiting]


class Environment(Wire):
    """What holds in an environment."""

    name: str
    approve_agents: bool


class EnvironmentChanged(Environment):
    """The same after a change, and who was let in by it."""

    approved: list[Waiting]


class TypeOwner(Wire):
    """Whose a component type is: a token's name; none for a package installed here, or where nobody is known."""

    type: str
    provider: str
    installed: bool
    owner: str | None


class TypeMoved(Wire):
    """A type that belongs to another token from now on."""

    type: str
    before: str | None
    owner: str


class Realm(Wire):
    """What declarations call a realm, the id it is bound to, and another that is reached by that name now."""

    id: str
    environment: str
    provider: str
    name: str
    realm: str
    first_reached: datetime | None
    other: str | None
    other_since: datetime | None
    other_by: str | None


class RealmAccepted(Wire):
    """What followed when another realm was accepted: components that moved, and deletions that ended as absent."""

    before: str
    after: str
    components: int
    ended: int


class SealingKey(Wire):
    """A key that secrets are sealed to, by its fingerprint, at one realm; ``agentId``: who came with it."""

    id: str
    fingerprint: str
    environment: str
    provider: str
    realm: str
    token: str
    agent_id: str
    first_at: datetime
    approved: bool
    alive: bool
    withdrawn_at: datetime | None
    withdrawn_by: str | None
    reason: str | None


class WithdrawnKey(Wire):
    """A key that is withdrawn, in all its realms."""

    fingerprint: str
    realms: list[SealingKey]


class LastCycle(Wire):
    """How long the last cycle of a scope took, and its calls to the cloud: all, throttled ones, failed ones."""

    seconds: float
    calls: int
    throttles: int
    errors: int


class Scope(Wire):
    """A scope; ``lastRead``: when it was last read, ``stale``: more than two cycles ago (C11).

    ``holder``: the living agent that reads it; ``lastHolder``: the same, or the dead one that nobody has followed yet;
    ``cycleSeconds`` and ``lastCycle`` are that agent's. ``unread``: what its last read did not show, by type, or by uid
    of a component.
    """

    key: str
    provider: str
    realm: str
    place: str
    holder: str | None
    last_holder: str | None
    version: int
    components: int
    last_read: datetime | None
    stale: bool
    cycle_seconds: float | None
    last_cycle: LastCycle | None
    unread: list[str]


class Token(Wire):
    """A token, without its secret; ``createdBy`` is empty where that was not kept."""

    id: str
    name: str
    role: str
    providers: list[str]
    environments: list[str]
    realms: list[str]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    waits: bool


class CreatedToken(Token):
    """A new token, with its secret."""

    token: str


class SubscriptionTest(Wire):
    """How a test of a subscription goes; ``outcome``: pending, sent or failed, with the error."""

    id: str
    at: datetime
    outcome: Literal["pending", "sent", "failed"]
    error: str


class Subscription(Wire):
    """Who is notified, where and of what, without the secret and the whole address; and how sending goes.

    ``failures``: tries in a row that failed, since ``failingSince``; the next is at ``nextTry``. ``givenUp``: how many
    notifications were given up.
    """

    name: str
    address: str
    format: NotificationFormat
    signed: bool
    kinds: list[NotificationKind]
    environments: list[str]
    live_systems: list[str]
    created_at: datetime
    created_by: str
    pending: int
    sent: int
    given_up: int
    last_sent_at: datetime | None
    failures: int
    failing_since: datetime | None
    last_error: str
    next_try: datetime | None
    test: SubscriptionTest | None


class CreatedSubscription(Subscription):
    """A new subscription, with its secret where one was made for it."""

    secret: str | None


class HeldLiveSystem(Wire):
    """A LiveSystem of a restored backup that nobody has confirmed yet; ``shownAt``: when its plan was last shown."""

    id: str
    deleting: bool
    generation: int
    deployed_at: datetime
    shown_at: datetime | None


class Recovery(Wire):
    """What waits for a person since a backup was restored; ``since``, ``by`` and ``reason`` are of the last time."""

    incarnation: str
    in_recovery: bool
    since: datetime | None
    by: str | None
    reason: str | None
    live_systems: list[HeldLiveSystem]
    tokens: list[Token]


class ConfirmedTokens(Wire):
    """The names of the tokens that were let in again."""

    confirmed: list[str]


class Page(Wire):
    """One page of a list; ``next`` leads to the one after it, and is null on the last; ``cursor`` is the same."""

    next: str | None
    cursor: str | None


class LiveSystemPage(Page):
    """LiveSystems; ``total``: on all pages."""

    items: list[LiveSystemSummary]
    total: int


class ComponentPage(Page):
    """Components; ``total``: on all pages, where counting is cheap."""

    items: list[Component]
    total: int | None = None


class MutationPage(Page):
    """Mutations."""

    items: list[MutationSummary]


class JournalPage(Page):
    """Writes to a cloud."""

    items: list[JournalItem]


class EventPage(Page):
    """Events."""

    items: list[Event]


class ResourcePage(Page):
    """Resources."""

    items: list[Resource]


class TokenPage(Page):
    """Tokens."""

    items: list[Token]


class SubscriptionPage(Page):
    """Subscriptions to notifications."""

    items: list[Subscription]


class AgentPage(Page):
    """Agents."""

    items: list[Agent]


class RealmPage(Page):
    """Realms."""

    items: list[Realm]


class WaitingPage(Page):
    """Who waits for approval."""

    items: list[Waiting]


class EnvironmentPage(Page):
    """Environments."""

    items: list[Environment]


class TypeOwnerPage(Page):
    """Types and their owners."""

    items: list[TypeOwner]


class SealingKeyPage(Page):
    """Sealing keys."""

    items: list[SealingKey]


class ScopePage(Page):
    """Scopes."""

    items: list[Scope]


class TypeSummary(Wire):
    """A component type in a search; ``family``: the family that it is of, where no class was written for it."""

    type: str
    provider: str
    title: str
    description: str
    family: str


class FamilyOfTypes(Wire):
    """The vendor's own types by their own names; ``as_of``: the date of what is known of them, else empty."""

    name: str
    provider: str
    title: str
    as_of: str


class OfferPage(Page):
    """Component types: in full, or as a search found them; and the families in which a search finds more."""

    items: list[TypeFacts | TypeSummary]
    families: list[FamilyOfTypes]
