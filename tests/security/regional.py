"""A type of the provider ``east`` that is unique in a region: an account then has several scopes, to be shared out."""

from __future__ import annotations

from collections.abc import Iterator

from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.offer import Query
from tests.links.clouds import ToyCloud
from tests.links.offers import ToyOffer


class EastQueue(Component):
    """A queue in one region."""

    type = "Toy.EastQueue"
    provider = "east"

    region: str = parameter(immutable=True, description="Where it is.")


class EastQueueOffer(ToyOffer[EastQueue]):
    """How they are kept."""

    component = EastQueue
    title = "Queue"
    place = ("region",)

    def sightings(self, cloud: ToyCloud, query: Query) -> Iterator[Sighting]:
        """All of one region."""
        return (one for one in super().sightings(cloud, query) if one.actual["region"] == cloud.scope.place)
