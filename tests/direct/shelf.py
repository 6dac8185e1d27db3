"""A cloud that is a shelf, and an offer over it: every call is noted, and a test may act right before one of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from fractal_cloud.agent.evaluator import Evaluator
from fractal_cloud.agent.reading import Snapshot
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.identity import Identity
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.call_context import current_context, note_request
from fractal_cloud.offers.offer import Cloud, Offer, Query, Recognition, Wanted
from tests.direct.things import NOW, SCOPE, tracked

KIND = "Test.IaaS.Item"


class Item(Component):
    """Something on a shelf."""

    type = KIND
    provider = "aws"
    region: str = parameter(default="eu-west-1")
    size: int | None = parameter(default=None)
    zone: str | None = parameter(default=None, immutable=True)
    policy: str | None = parameter(default=None, swept=True)


@dataclass
class Shelf(Cloud):
    """What stands on it, the calls that were made, and what happens before some of them."""

    scope = SCOPE
    items: dict[str, Sighting] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    acts: list[Any] = field(default_factory=list)

    def note(self, *call: Any) -> None:
        """A call comes in; whoever waits for it acts first."""
        act = current_context()
        self.acts.append(act and (act.live_system_id, act.component_id, act.reason))
        if call[0] != "read":
            note_request(f"request-{len(self.calls)}")
        hook = self.before.pop(call[0], None)
        self.calls.append(call)
        if hook is not None:
            hook()

    @property
    def writes(self) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] != "read"]


class ItemOffer(Offer[Item, Shelf]):
    """How a shelf is read and changed."""

    component = Item
    title = "Item"
    place = ("region",)
    unguarded = frozenset({"tag"})
    predicted: ClassVar[dict[str, str]] = {}

    def sightings(self, cloud: Shelf, query: Query) -> Iterable[Sighting]:
        cloud.note("list")
        return list(cloud.items.values())

    def read(self, cloud: Shelf, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        cloud.note("read", resource_id, frozenset(sweep))
        return cloud.items.get(resource_id)

    def create(self, cloud: Shelf, wanted: Wanted[Item], tags: ProtocolTags) -> Sighting:
        cloud.note("create", wanted, tags)
        made = Sighting(KIND, str(wanted.component.name), "id-new", protocol=tags)
        cloud.items[made.resource_id] = made
        return made

    def predicted_id(self, token: str) -> str | None:
        return self.predicted.get(token)

    def update(self, cloud: Shelf, sighting: Sighting, wanted: Wanted[Item], drift: Collection[str]) -> None:
        cloud.note("update", sighting, wanted, frozenset(drift))

    def delete(self, cloud: Shelf, sighting: Sighting) -> None:
        cloud.note("delete", sighting)
        cloud.items.pop(sighting.resource_id, None)

    def tag(self, cloud: Shelf, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        cloud.note("tag", sighting, add, remove)


class FrozenOffer(ItemOffer):
    """Whose tags nobody can change."""

    tags_frozen = True


class WindowOffer(ItemOffer):
    """Whose lost creations are recognised by nothing."""

    recognition = Recognition.WINDOW


def item(tags: ProtocolTags, **more: Any) -> Sighting:
    """A resource on the shelf that bears the component's name."""
    return replace(Sighting(KIND, "web", "id-1", protocol=tags), **more)


def component(*given: Any, **more: Any) -> Tracked:
    """A component that speaks of it."""
    identity = Identity(KIND, SCOPE, "web")
    return tracked(*given, **{"type": KIND, "identity": identity, "declared_identity": identity, **more})


@dataclass
class ShelfScope:
    """One scope with its shelf, and the evaluator of a cycle over it."""

    offer: ItemOffer = field(default_factory=ItemOffer)
    shelf: Shelf = field(default_factory=Shelf)

    def __post_init__(self) -> None:
        self.held = HeldScope(SCOPE, self.shelf, confirm_realm=lambda: None)
        self.watchdog = Watchdog(120.0)
        self.facts = OfferFacts(self.offer, self.watchdog)
        self.settings = AgentSettings()
        self.evaluator = Evaluator(self.held, Snapshot(), {KIND: self.facts}, self.settings, NOW)

    def add(self, *components: Tracked) -> None:
        """Components of the scope."""
        self.held.work.tracked.update({one.uid: one for one in components})
