"""Types that cannot carry tags: they can be owned by nobody, so they are read and never written (S1, S5)."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, NoReturn

from fractal_cloud.model.errors import Invalid
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.offer import C, K, Offer, Wanted


class ReadOnlyOffer(Offer[C, K]):
    """How such a type is read. The reconciler asks for none of the writing verbs; were it to, they refuse."""

    taggable: ClassVar[bool] = False
    guard: ClassVar[str] = "never written"

    def create(self, cloud: K, wanted: Wanted[C], tags: ProtocolTags) -> Sighting:
        """Never, unless a type overrides it: what could not be owned is made at most once, where that is asked for."""
        del cloud, tags
        raise _untaggable(wanted.component.name)

    def update(self, cloud: K, sighting: Sighting, wanted: Wanted[C], drift: Collection[str]) -> NoReturn:
        """Never: differences are shown."""
        del cloud, wanted, drift
        raise _untaggable(sighting.name)

    def delete(self, cloud: K, sighting: Sighting) -> NoReturn:
        """Leave it alone: only the reference to it is dropped."""
        del cloud
        raise _untaggable(sighting.name)

    def tag(self, cloud: K, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> NoReturn:
        """Never: it has none."""
        del cloud, add, remove
        raise _untaggable(sighting.name)


def _untaggable(name: str) -> Invalid:
    return Invalid(f"{name!r} is of a type that cannot carry tags: it is only ever read")
