"""What the toy clouds offer: workloads, databases and gateways, and how each is read and changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.offer import LinkFields, Offer, Query, Wanted
from tests.links.clouds import Thing, ToyCloud


class Workload(Component):
    """Something that runs, and whose links set what it may use."""

    image: str = parameter(default="app", description="What it runs.")
    environment: dict[str, str] | None = parameter(default=None, linked=True, description="What its links set.")


class Database(Component):
    """A database with a role per source."""

    size: int | None = parameter(default=None, description="How big it is.")


class Gateway(Component):
    """A gateway with a route per source, beside the routes that are declared."""

    routes: list[str] | None = parameter(default=None, compare="unordered", description="Its own routes.")


C = TypeVar("C", bound=Component)


class ToyOffer(Offer[C, ToyCloud], Generic[C]):
    """How every toy resource is read and changed."""

    outputs: ClassVar[Mapping[str, str]] = {"endpoint": "where it is reached"}

    def sightings(self, cloud: ToyCloud, query: Query) -> Iterator[Sighting]:
        """All of one type."""
        cloud.store.call(f"list {self.type}")
        for thing in list(cloud.store.things.values()):
            if thing.type == self.type:
                yield _sighting(thing)

    def read(self, cloud: ToyCloud, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One by its id."""
        cloud.store.call(f"read {self.type}")
        thing = cloud.store.things.get(resource_id)
        return None if thing is None else _sighting(thing)

    def create(self, cloud: ToyCloud, wanted: Wanted[C], tags: ProtocolTags) -> Sighting:
        """Make it, with its tags."""
        store = cloud.store
        store.call("create")
        name = wanted.component.name
        thing = Thing(store.new_id(), self.type, name, tags.to_mapping(), self._values(wanted.component))
        store.things[thing.id] = thing
        return _sighting(thing)

    def _values(self, component: C) -> dict[str, Any]:
        declared = component.model_dump(mode="json", by_alias=True, include=set(component.parameter_fields().values()))
        empty = {"environment": {}, "routes": [], "size": 1}
        return {k: empty.get(k) if v is None else v for k, v in declared.items() if k != "name"}

    def update(self, cloud: ToyCloud, sighting: Sighting, wanted: Wanted[C], drift: Collection[str]) -> None:
        """Change what differs."""
        cloud.store.call("update")
        values = self._values(wanted.component)
        cloud.store.things[sighting.resource_id].actual.update({name: values[name] for name in drift})

    def delete(self, cloud: ToyCloud, sighting: Sighting) -> None:
        """Delete it, with all that is in it."""
        cloud.store.call("delete")
        cloud.store.things.pop(sighting.resource_id, None)

    def tag(self, cloud: ToyCloud, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Change protocol tags."""
        cloud.store.call("tag")
        tags = cloud.store.things[sighting.resource_id].tags
        tags.update(add.to_mapping())
        for key in remove.to_mapping():
            tags.pop(key, None)


class WorkloadOffer(ToyOffer[C]):
    """A workload reads the keys that its links published."""

    def linked_parameters(self, links: Sequence[LinkFields]) -> Mapping[str, Any]:
        """All keys, each under the name of its link."""
        found = {f"{w.link_type}.{w.target_id}.{key}": str(value) for w in links for key, value in w.fields.items()}
        return {"environment": dict(sorted(found.items()))}


def _sighting(thing: Thing) -> Sighting:
    return Sighting(
        type=thing.type,
        name=thing.name,
        resource_id=thing.id,
        protocol=ProtocolTags.from_mapping(thing.tags),
        tags=dict(thing.tags),
        actual=dict(thing.actual),
        outputs={"endpoint": f"{thing.name}.toy:{5000 + int(thing.actual.get('size') or 0)}"},
    )
