"""The account as a person sees it: the verbs of the offers, called directly, outside of the agent.

So whatever a person would do with the vendor's own tools (change a value, take a tag off) needs no code of its own for
each type. What the agent then makes of it is seen elsewhere.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final

from fractal_cloud.model.catalog import GLOBAL_PLACE
from fractal_cloud.model.errors import Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.offer import AnyOffer, Cloud, Query, Session, Wanted

WRITING_CALLS: Final = ("put", "patch", "merge", "post", "delete")
"""How clouds name the calls before which somebody else may be faster."""


class Account:
    """One account and the places in it that `--scope` names."""

    def __init__(self, session: Session, offers: Collection[AnyOffer], words: Mapping[str, str]) -> None:
        self._session = session
        self._words = words
        called = next((words[offer.realm] for offer in offers if offer.realm and offer.realm in words), "")
        realms = session.realms()
        if called not in realms:
            reached = ", ".join(sorted(name for name in realms if name)) or "none"
            asked = f"{called!r} is not reached" if called else "which account is meant is not clear"
            raise Unreadable(f"{asked}: these credentials reach {reached}")
        self.realm = realms[called]

    def covers(self, offer: AnyOffer) -> bool:
        """Whether the words of `--scope` say where to look for resources of a type."""
        return all(word in self._words for word in offer.place)

    def cloud(self, offer: AnyOffer) -> Cloud:
        """The place in which names of a type are unique."""
        place = "/".join(self._words[word] for word in offer.place) or GLOBAL_PLACE
        return self._session.at(Scope(offer.provider, self.realm, place))

    # --- reading

    def listed(self, offer: AnyOffer, query: Query | None = None) -> list[Sighting]:
        """Everything of a type in the place, as the bulk list shows it; items that nobody understands are left out."""
        found = offer.sightings(self.cloud(offer), query or Query())
        return [one for one in found if not isinstance(one, UnreadItem)]

    def read(self, offer: AnyOffer, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One resource by its id, fresh."""
        return offer.read(self.cloud(offer), resource_id, sweep)

    # --- writing, as a person would; each returns the vendor's request ids

    def change(self, offer: AnyOffer, sighting: Sighting, wanted: Wanted[Any], name: str) -> list[str]:
        """Make the next call that one parameter needs for its new value."""
        return self._act(offer, lambda cloud: offer.update(cloud, sighting, wanted, {name}))

    def untag(self, offer: AnyOffer, sighting: Sighting, tags: ProtocolTags) -> list[str]:
        """Take tags off."""
        return self._act(offer, lambda cloud: offer.tag(cloud, sighting, NO_TAGS, tags))

    def tag(self, offer: AnyOffer, sighting: Sighting, tags: ProtocolTags) -> list[str]:
        """Put tags on."""
        return self._act(offer, lambda cloud: offer.tag(cloud, sighting, tags, NO_TAGS))

    def delete(self, offer: AnyOffer, sighting: Sighting) -> list[str]:
        """Make the next call that a deletion needs."""
        return self._act(offer, lambda cloud: offer.delete(cloud, sighting))

    def overtake(self, offer: AnyOffer, act: Callable[[Cloud], None], intrude: Callable[[], object]) -> list[str]:
        """Call a verb of an offer, and let somebody else act right before its writing call: only a precondition helps.

        Raises what the verb raises.
        """
        racing = copy.copy(self.cloud(offer))
        waiting = [intrude]

        def second(call: Callable[..., Any], *given: Any, **more: Any) -> Any:
            if waiting:
                waiting.pop()()
            return call(*given, **more)

        for name in WRITING_CALLS:
            call = getattr(racing, name, None)
            if call is not None:
                setattr(racing, name, partial(second, call))
        return _call_as_person(racing, act)

    def _act(self, offer: AnyOffer, act: Callable[[Cloud], None]) -> list[str]:
        return _call_as_person(self.cloud(offer), act)


def _call_as_person(cloud: Cloud, act: Callable[[Cloud], None]) -> list[str]:
    """Call a verb under a context that is not the agent's; return the vendor's request ids."""
    context = CallContext("fractal-verify", "person", "verify")
    with cloud.calling_as(context):
        act(cloud)
    return context.request_ids
