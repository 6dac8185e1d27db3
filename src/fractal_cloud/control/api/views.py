"""What the routes answer, as models: the OpenAPI document is made of them, and the tests hold the answers against it.

The answers themselves are built as plain JSON in the store, without a detour through these.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import ComponentDeclaration, LiveSystemDeclaration, Wire
from fractal_cloud.model.event import Event
from fractal_cloud.model.observed import Override
from fractal_cloud.model.status import MutationStatus, Stance, Status
from fractal_cloud.model.wire import OperatorRequest, PlannedAction, PlannedLink, Reach


class Accepted(Wire):
    """A deploy or delete was taken."""

    live_system_id: str
    mutation_id: str
    warnings: list[str]


class LiveSystem(LiveSystemDeclaration):
    """A LiveSystem: what is declared, and how it is doing."""

    status: Status
    counts: dict[str, int]
    generation: int
    mutation_id: str
    deleting: bool
    in_recovery: bool
    deployed_at: datetime
    last_updated: datetime


class Component(Wire):
    """A component: what is declared, and what was last seen of it. ``lastRead`` is when its scope was last read."""

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
    override: Override | None
    overdue: bool
    deleting: bool
    scope: str | None
    resource_id: str | None
    resource_key: str | None
    request: OperatorRequest | None
    waits_for: list[str]
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
    """

    live_system_id: str
    requested: list[str]
    refused: list[Refusal]
    tags_frozen: list[str]


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
    """An agent, as it registered and was last heard of."""

    id: str
    environment: str
    reaches: list[Reach]
    cycle_seconds: float
    last_seen: datetime
    alive: bool


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


class Scope(Wire):
    """A scope with its holder; ``lastRead`` is when its holder last read it."""

    key: str
    provider: str
    realm: str
    place: str
    holder: str | None
    version: int
    components: int
    last_read: datetime | None


class Token(Wire):
    """A token, without its secret."""

    id: str
    name: str
    role: str
    providers: list[str]
    created_at: datetime
    waits: bool


class CreatedToken(Token):
    """A new token, with its secret."""

    token: str


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
    """One page of a list; ``cursor`` leads to the next, and is null on the last."""

    cursor: str | None


class LiveSystemPage(Page):
    """LiveSystems."""

    items: list[LiveSystem]


class ComponentPage(Page):
    """Components."""

    items: list[Component]


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


class AgentPage(Page):
    """Agents."""

    items: list[Agent]


class RealmPage(Page):
    """Realms."""

    items: list[Realm]


class ScopePage(Page):
    """Scopes."""

    items: list[Scope]


class OfferPage(Page):
    """Component types."""

    items: list[TypeFacts]
