"""What all offers of Kubernetes share: one kind of object, read in bulk, changed by guarded patches.

An offer says how declared parameters stand in its kind of object, and what its status means. How objects are found,
tagged, guarded and deleted is the same for all of them, and stands here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import field_validator

from fractal_cloud.model.component import Component, Reference, parameter
from fractal_cloud.model.errors import Denied, NotFound, Overtaken, Unreadable
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import MANAGED_BY, OURS, ProtocolTags
from fractal_cloud.offers.history import Asked, Author
from fractal_cloud.offers.items import Shown, parse_each, text_at
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.declared import HOSTS
from fractal_cloud.offers.kubernetes.errors import NO_SUCH_KIND
from fractal_cloud.offers.kubernetes.kinds import Annotations, Labels, Namespace, Object, ObjectKind
from fractal_cloud.offers.kubernetes.managers import MANAGED_FIELDS, setter
from fractal_cloud.offers.kubernetes.patching import difference
from fractal_cloud.offers.kubernetes.tags import (
    GUARD,
    PROTOCOL_KEYS,
    RECONCILE,
    RULES,
    WRITTEN_BY_THE_CLUSTER,
    annotations_of,
    guard,
    labels_of,
    paths_of,
    protocol_of,
)
from fractal_cloud.offers.offer import C, Offer, Query, Wanted

OUTPUTS: Mapping[str, str] = {
    "name": "its name",
    "namespace": "namespace it lies in",
    "context": "what the agent calls the cluster: a context of its kubeconfig",
    "uid": "the cluster's own id of it",
}
State = tuple[Condition, str]
"""Whether the cluster is still at work on an object, and what it says about it."""
SETTLED: State = (Condition.SETTLED, "")


class ObjectComponent(Component):
    """What all components that become an object in a namespace declare."""

    provider = "kubernetes"

    cluster: Reference[Component] | None = parameter(
        default=None,
        immutable=True,
        hosts=HOSTS,
        description=(
            "The cluster it lies in: an EKS, AKS, GKE or KaaS cluster of the same LiveSystem, by its id, else a "
            "context of the agent's kubeconfig; the current context if not given."
        ),
    )
    namespace: Namespace = parameter(
        default="default", immutable=True, enforced=True, description="Namespace it lies in, which must exist."
    )
    labels: Labels | None = parameter(
        default=None,
        compare="entries",
        description="Labels of the object, beside those of the protocol: only these are compared and written.",
    )
    annotations: Annotations | None = parameter(
        default=None,
        compare="entries",
        lines=True,
        description="Annotations of the object: only these are compared and written.",
    )

    @field_validator("labels", "annotations")
    @classmethod
    def _leaves_the_protocol_alone(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for key in value or {}:
            if key in PROTOCOL_KEYS:
                raise ValueError(f"{key!r} belongs to the protocol: leave it out")
        return value


class ObjectOffer(Offer[C, Kubernetes]):
    """How one kind of object is read and changed.

    ``also_reads``: other kinds that it reads, each with the verb; ``listed_everywhere``: those that it looks for in all
    namespaces.
    """

    object_kind: ClassVar[ObjectKind]
    also_reads: ClassVar[Mapping[ObjectKind, str]] = {}
    listed_everywhere: ClassVar[tuple[ObjectKind, ...]] = ()
    tag_rules = RULES
    place = ("namespace",)
    realm = "cluster"
    guard = GUARD
    record = MANAGED_FIELDS

    # --- what each offer says of its kind

    @abstractmethod
    def actual(self, item: Object) -> dict[str, Any]:
        """The actual values of the parameters an object shows, as people declare them; None where it has none."""

    @abstractmethod
    def apply(self, item: Object, wanted: Wanted[C], names: Collection[str]) -> None:
        """Write the declared values of these parameters into an object: a new one, or a copy of the one that is."""

    def correct(self, item: Object, sighting: Sighting, wanted: Wanted[C], names: Collection[str]) -> None:
        """The same into a copy of what was sighted, for a kind that must know what was taken for its own there."""
        del sighting
        self.apply(item, wanted, names)

    def new(self, wanted: Wanted[C]) -> Object:
        """What an object of this kind begins with, but for its metadata and the declared parameters."""
        del wanted
        return {"spec": {}}

    def beside(self, cloud: Kubernetes, items: Sequence[Object]) -> Any:
        """What else must be read to understand these objects: once for all of them, and None where nothing must."""
        del cloud, items
        return None

    def state(self, item: Object, beside: Any) -> State:
        """What the object's status means."""
        del item, beside
        return SETTLED

    def shown(self, item: Object, beside: Any) -> dict[str, Any]:
        """The outputs beside those that every object has."""
        del item, beside
        return {}

    def check_deletion(self, cloud: Kubernetes, sighting: Sighting) -> None:
        """Raise ``Conflict`` or ``Protected`` where a deletion must not be asked for.

        Whoever reads the object itself once more does so with ``still``: that read counts like the guard's.
        """

    # --- what is the same for all

    def sightings(self, cloud: Kubernetes, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All objects of the kind in the namespace, 500 a call."""
        del query
        items = cloud.list(self.object_kind)
        beside = self.beside(cloud, items)
        yield from parse_each(items, lambda item: self.sighting(cloud, item, beside), shown_of)

    def read(self, cloud: Kubernetes, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One object by name; one of that name that was made anew is another one."""
        del sweep
        item = self._find(cloud, resource_id)
        return None if item is None else self.sighting(cloud, item, self.beside(cloud, [item]))

    def _find(self, cloud: Kubernetes, resource_id: str) -> Object | None:
        name, uid = split_id(resource_id)
        item = cloud.find(self.object_kind, name)
        return item if item is not None and item["metadata"]["uid"] == uid else None

    def sighting(self, cloud: Kubernetes, item: Object, beside: Any) -> Sighting:
        """What an object shows."""
        metadata = item["metadata"]
        condition, detail = _dying(metadata) or self.state(item, beside)
        context = {"context": cloud.context} if cloud.context else {}
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        return Sighting(
            type=self.type,
            name=metadata["name"],
            resource_id=resource_id(metadata),
            protocol=protocol_of(item),
            tags={**labels, **({RECONCILE: annotations[RECONCILE]} if RECONCILE in annotations else {})},
            actual={**_metadata_of(labels, annotations), **self.actual(item)},
            outputs={
                "name": metadata["name"],
                **({"namespace": metadata["namespace"]} if "namespace" in metadata else {}),
                "uid": metadata["uid"],
                **context,
                **self.shown(item, beside),
            },
            condition=condition,
            revision=metadata["resourceVersion"],
            detail=detail,
            is_open=True,
        )

    def as_declared(self, sighting: Sighting, declared: Mapping[str, Any], published: Mapping[str, Any]) -> Sighting:
        """With those labels and annotations alone that are declared: all others are somebody else's."""
        del published
        narrowed = {
            name: {key: text for key, text in sighting.actual[name].items() if key in declared[name]}
            for name in ("labels", "annotations")
            if isinstance(declared.get(name), Mapping) and isinstance(sighting.actual.get(name), Mapping)
        }
        return replace(sighting, actual={**sighting.actual, **narrowed}) if narrowed else sighting

    def create(self, cloud: Kubernetes, wanted: Wanted[C], tags: ProtocolTags) -> Sighting:
        """Create it with its tags in the call."""
        kind = self.object_kind
        annotations = annotations_of(tags)
        metadata = {
            "name": wanted.component.name,
            "namespace": cloud.namespace,
            "labels": labels_of(tags),
            **({"annotations": annotations} if annotations else {}),
        }
        item = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **self.new(wanted)}
        names = self._given(wanted.component)
        _put_metadata(item, wanted.component, names)
        self.apply(item, wanted, names)
        made = cloud.create(kind, item)
        return self.sighting(cloud, made, self.beside(cloud, [made]))

    def _given(self, component: C) -> frozenset[str]:
        """The parameters that have a value: declared, or by default (a default acts at creation)."""
        fields = component.parameter_fields()
        hidden = {"name", *self.place, self.realm}
        return frozenset(n for n, field in fields.items() if n not in hidden and getattr(component, field) is not None)

    def update(self, cloud: Kubernetes, sighting: Sighting, wanted: Wanted[C], drift: Collection[str]) -> None:
        """Bring all parameters in ``drift`` back in one patch, which tests the tags it rests on."""
        item = self.still(cloud, sighting)
        changed = deepcopy(item)
        _put_metadata(changed, wanted.component, drift)
        self.correct(changed, sighting, wanted, drift)
        operations = difference(item, changed)
        if operations:
            uid = item["metadata"]["uid"]
            cloud.patch(self.object_kind, sighting.name, [*guard(uid, sighting.protocol), *operations])

    def changed_by(
        self, cloud: Kubernetes, sighting: Sighting, wanted: Wanted[C], asked: Collection[Asked]
    ) -> Mapping[str, Author]:
        """Who owns the fields in which these parameters differ, or the label ``managed-by``."""
        item = self._find(cloud, sighting.resource_id)
        if item is None:
            return {}
        found = {}
        for one in asked:
            author = setter(item, self._fields_of(item, one.parameter, sighting, wanted))
            if author is not None:
                found[one.parameter] = author
        return found

    def _fields_of(self, item: Object, name: str, sighting: Sighting, wanted: Wanted[C]) -> Iterable[str]:
        """The JSON pointers of the fields in which a parameter differs from the declaration."""
        if name == MANAGED_BY:
            return paths_of(ProtocolTags(managed_by=OURS))
        changed = deepcopy(item)
        _put_metadata(changed, wanted.component, [name])
        self.correct(changed, sighting, wanted, [name])
        return [op["path"] for op in difference(item, changed) if op["op"] != "test"]

    def still(self, cloud: Kubernetes, sighting: Sighting) -> Object:
        """The object as it is now, right before a write; raises where its tags are no longer those of the guard."""
        item = self._find(cloud, sighting.resource_id)
        if item is None:
            raise NotFound(f"{sighting.name!r} is gone: it is looked for again")
        if protocol_of(item) != sighting.protocol:
            raise Overtaken(f"the tags of {sighting.name!r} were changed by somebody: nothing was written")
        return item

    def delete(self, cloud: Kubernetes, sighting: Sighting) -> None:
        """Delete this very object as it was read; absent is success."""
        name, uid = split_id(sighting.resource_id)
        try:
            self.check_deletion(cloud, sighting)
        except NotFound:
            return
        cloud.delete(self.object_kind, name, uid, sighting.revision)

    def tag(self, cloud: Kubernetes, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Add tags by a merge patch with the resourceVersion that was read, or remove those that still stand."""
        name, uid = split_id(sighting.resource_id)
        adding, removing = paths_of(add), paths_of(remove)
        if adding and removing:
            raise ValueError(
                f"tags are added or removed in one call, not both: {sorted(adding)} and {sorted(removing)}"
            )
        if adding:
            metadata: Object = {"uid": uid, "resourceVersion": sighting.revision, "labels": labels_of(add)}
            if add.reconcile:
                metadata["annotations"] = annotations_of(add)
            cloud.merge(self.object_kind, name, {"metadata": metadata})
        elif removing:
            operations = [{"op": "remove", "path": path} for path in removing]
            cloud.patch(self.object_kind, name, [*guard(uid, sighting.protocol), *operations])

    def transfer(self, cloud: Kubernetes, sighting: Sighting, owner: str) -> None:
        """Replace the owner's label in a patch that first tests the object's uid and its tags, the owner among them."""
        name, uid = split_id(sighting.resource_id)
        operations = [
            {"op": "replace", "path": path, "value": value}
            for path, value in paths_of(ProtocolTags(owner=owner)).items()
        ]
        cloud.patch(self.object_kind, name, [*guard(uid, sighting.protocol), *operations])


def _metadata_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    """The labels and annotations that people may declare."""
    return {
        "labels": {key: text for key, text in labels.items() if key not in PROTOCOL_KEYS},
        "annotations": {key: text for key, text in annotations.items() if key not in WRITTEN_BY_THE_CLUSTER},
    }


def _put_metadata(item: Object, component: Component, names: Collection[str]) -> None:
    """Write declared labels and annotations; what is declared as a whole manifest says its own in ``metadata``."""
    if not isinstance(component, ObjectComponent):
        return
    for name, values in (("labels", component.labels), ("annotations", component.annotations)):
        if name in names and values is not None:
            item["metadata"][name] = {**(item["metadata"].get(name) or {}), **values}


def resource_id(metadata: Mapping[str, Any]) -> str:
    """Return what finds an object and distinguishes it from an earlier or later one of the same name."""
    return f"{metadata['name']}/{metadata['uid']}"


def split_id(resource_id: str) -> tuple[str, str]:
    """The name and the uid in a resource id."""
    name, _, uid = resource_id.partition("/")
    return name, uid


def shown_of(item: Object) -> Shown:
    """The id and the name that an item of a list shows."""
    name, uid = text_at(item, "metadata", "name"), text_at(item, "metadata", "uid")
    return f"{name}/{uid}" if name and uid else None, name


def _dying(metadata: Mapping[str, Any]) -> State | None:
    if not metadata.get("deletionTimestamp"):
        return None
    waits = metadata.get("finalizers") or []
    return Condition.DYING, "is being deleted" + (f", and waits for {', '.join(waits)}" if waits else "")


def readable(read: Callable[[], list[Object]]) -> list[Object]:
    """What a list beside the main one shows; nothing where it may not be read, or the cluster has no such kind.

    Any other failure is one of the main list too: what stands there is unknown, not nothing (S0).
    """
    try:
        return read()
    except Denied:
        return []
    except Unreadable as error:
        if error.code != NO_SUCH_KIND:
            raise
        return []
