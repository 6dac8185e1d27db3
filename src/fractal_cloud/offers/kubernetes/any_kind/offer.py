"""The offer of every kind: objects made by one POST, corrected by server-side apply, read only where they changed.

How objects are tagged, transferred, guarded and deleted is the same as for the types with classes, and stands there.
What is drift is decided by the rules, from the marks of the type's schema.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, Final, Self

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.errors import Unreadable
from fractal_cloud.model.generic_component import GenericComponent
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags, stamp
from fractal_cloud.offers.family import FamilyOffer
from fractal_cloud.offers.items import parse_each, text_at
from fractal_cloud.offers.kubernetes.any_kind import linked_pods, secrets
from fractal_cloud.offers.kubernetes.any_kind.facts import HIDDEN, facts_of
from fractal_cloud.offers.kubernetes.any_kind.inside import check_nothing_goes_along
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import KindFacts
from fractal_cloud.offers.kubernetes.any_kind.owned_fields import (
    FIELD_MANAGER,
    configuration,
    is_applied_elsewhere,
    set_alone,
)
from fractal_cloud.offers.kubernetes.any_kind.status import state_of
from fractal_cloud.offers.kubernetes.any_kind.tables import NEVER_SHOWN
from fractal_cloud.offers.kubernetes.any_kind.tables import OUTPUTS as OF_KINDS
from fractal_cloud.offers.kubernetes.calls import PAGE, Kubernetes
from fractal_cloud.offers.kubernetes.claim import KubernetesPersistentVolumeClaimOffer
from fractal_cloud.offers.kubernetes.containers import LINKED, env_of_links
from fractal_cloud.offers.kubernetes.kinds import Object
from fractal_cloud.offers.kubernetes.managers import MANAGED_FIELDS
from fractal_cloud.offers.kubernetes.objects import ObjectOffer, State, resource_id, shown_of
from fractal_cloud.offers.kubernetes.patching import difference
from fractal_cloud.offers.kubernetes.tags import annotations_of, guard, labels_of
from fractal_cloud.offers.offer import LinkFields, Query, Wanted
from fractal_cloud.rules.nested.correct import corrected
from fractal_cloud.rules.nested.path import Path, entry_name, of_name, root, value_at, written
from fractal_cloud.rules.nested.shape import Shape, along, shape_of

_CLAIM: Final = "PersistentVolumeClaim"
_OF_THE_SERVER: Final = ("apiVersion", "kind", "metadata", "status")
_NO_FIELDS: Final = ("cluster", "namespace", "name", linked_pods.POD_TEMPLATE, LINKED)
"""Parameters that are no fields of the object."""


class AnyKindOffer(FamilyOffer[Kubernetes], ObjectOffer[GenericComponent]):
    """How the objects of one kind are read and changed."""

    kind_facts: ClassVar[KindFacts]
    pods_at: ClassVar[str]
    record = MANAGED_FIELDS
    unlisted = "is listed by its metadata; `kubectl get … -o yaml | fractal convert -` drafts its objects"

    @classmethod
    def of_kind(cls, kind: KindFacts) -> Self:
        """The offer of a kind."""
        facts: TypeFacts = facts_of(kind)
        return cls.of(facts, kind_facts=kind, object_kind=kind.object_kind(), pods_at=linked_pods.place_of(kind))

    # --- reading

    def sightings(self, cloud: Kubernetes, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All objects: their metadata in bulk, and the whole of those that are declared and changed since last time."""
        heads = cloud.heads(self.object_kind)
        known = {head["metadata"]["name"]: self._known(head, query) for head in heads}
        asked = [name for name, seen in known.items() if seen is None and name in query.names]
        whole = self._read_whole(cloud, asked, len(heads))

        def one(head: Object) -> Sighting | None:
            name = head["metadata"]["name"]
            seen = known.get(name)
            if seen is not None:
                return seen
            if name not in query.names:
                return self._by_metadata(cloud, head)
            item = whole.get(name)
            return None if item is None else self.sighting(cloud, item, None)

        yield from parse_each(heads, one, shown_of)

    def _known(self, head: Object, query: Query) -> Sighting | None:
        """What was seen last time, where it is still the same; metadata alone is not enough of what is declared."""
        metadata = head["metadata"]
        seen = query.seen_pages.last(resource_id(metadata))
        if seen is None or seen.revision != metadata.get("resourceVersion"):
            return None
        return seen if seen.actual or metadata["name"] not in query.names else None

    def _read_whole(self, cloud: Kubernetes, names: Collection[str], among: int) -> dict[str, Object]:
        """These objects, one by one or in one list of all, whichever is fewer calls; one that is gone is left out."""
        if len(names) <= among // PAGE + 1:
            found = {name: cloud.find(self.object_kind, name) for name in names}
            return {name: self._checked(name, item) for name, item in found.items() if item is not None}
        listed = {item["metadata"]["name"]: item for item in cloud.list(self.object_kind)}
        identity = {"apiVersion": self.object_kind.api_version, "kind": self.object_kind.kind}
        return {name: {**identity, **listed[name]} for name in names if name in listed}

    def _checked(self, name: str, item: Object) -> Object:
        """What a read of one object answered; raises ``Unreadable`` where it is none: nothing is known then."""
        if text_at(item, "metadata", "name") != name or text_at(item, "metadata", "uid") is None:
            raise Unreadable(f"the answer for {self.object_kind.kind} {name!r} is no such object")
        return item

    def _by_metadata(self, cloud: Kubernetes, head: Object) -> Sighting:
        """An object of which only the metadata was read: who it belongs to, and nothing of what it is."""
        return replace(self.sighting(cloud, head, None), actual={})

    def actual(self, item: Object) -> dict[str, Any]:
        """Its fields by their own names, without what only the server writes."""
        metadata = item["metadata"]
        own = {name: value for name, value in item.items() if name not in _OF_THE_SERVER}
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        missing = dict.fromkeys(name for name in self.said.parameter_schema["properties"] if name not in _NO_FIELDS)
        found = {**missing, **own, "metadata": {"labels": labels, "annotations": annotations}}
        return {**found, **secrets.shown(item)} if self._is_secret else found

    def sighting(self, cloud: Kubernetes, item: Object, beside: Any) -> Sighting:
        """What an object shows; its labels and annotations stand in its ``metadata``, as people declare them."""
        seen = super().sighting(cloud, item, beside)
        own = {name: value for name, value in seen.actual.items() if name not in ("labels", "annotations")}
        return replace(seen, actual=own, ours=set_alone(item))

    def as_declared(self, sighting: Sighting, declared: Mapping[str, Any], published: Mapping[str, Any]) -> Sighting:
        """Of labels, annotations and a Secret's values, what is declared alone: nothing else of them goes any further.

        Others write there, too, and kubectl's own annotation repeats a whole Secret. What links brought stands apart.
        """
        del published
        if not sighting.actual:
            return sighting
        if LINKED in self.said.parameter_schema["properties"]:
            sighting = linked_pods.as_declared(sighting, declared, self._pods_at(declared))
        actual = secrets.only_declared(sighting.actual, declared) if self._is_secret else sighting.actual
        return replace(sighting, actual={**actual, "metadata": _only_declared(actual, declared, sighting.ours)})

    def _pods_at(self, declared: Mapping[str, Any]) -> str:
        """Where its pods are described; empty where nobody knows."""
        return str(declared.get(linked_pods.POD_TEMPLATE) or self.pods_at)

    def linked_parameters(self, links: Sequence[LinkFields]) -> Mapping[str, Any]:
        """What its links published, as environment variables."""
        return {LINKED: env_of_links(links)}

    @property
    def _is_secret(self) -> bool:
        return self.kind_facts.name.unversioned == "Secret"

    def state(self, item: Object, beside: Any) -> State:
        """What its status means, where that is known."""
        del beside
        return state_of(self.kind_facts.name.unversioned, item)

    def shown(self, item: Object, beside: Any) -> dict[str, Any]:
        """What others need of it, and the rest of its status."""
        del beside
        status = item.get("status")
        said = {k: v for k, v in status.items() if k not in NEVER_SHOWN} if isinstance(status, dict) else {}
        own = {name: _at(item, path) for name, (path, _) in OF_KINDS.get(self.kind_facts.name.unversioned, {}).items()}
        found = {name: value for name, value in own.items() if value is not None}
        return {**({"status": said} if said else {}), **found}

    # --- writing

    def create(self, cloud: Kubernetes, wanted: Wanted[GenericComponent], tags: ProtocolTags) -> Sighting:
        """Create it, with its tags in the call: a POST, for an apply would change what somebody else just made."""
        item = self._new_object(cloud, wanted, tags)
        return self.sighting(cloud, cloud.create(self.object_kind, item, FIELD_MANAGER), None)

    def rehearse(
        self, cloud: Kubernetes, wanted: Wanted[GenericComponent], sighting: Sighting | None, drift: Collection[str]
    ) -> None:
        """Send it with ``dryRun``: the server validates and admits it, and keeps nothing."""
        if sighting is None:
            item = self._new_object(cloud, wanted, stamp(wanted.live_system_id))
            cloud.create(self.object_kind, item, FIELD_MANAGER, is_rehearsal=True)
            return
        changed = deepcopy(self.still(cloud, sighting))
        self.apply(changed, wanted, drift)
        applied = self._configuration(changed, wanted, drift)
        cloud.apply(self.object_kind, sighting.name, applied, FIELD_MANAGER, is_rehearsal=True)

    def _new_object(self, cloud: Kubernetes, wanted: Wanted[GenericComponent], tags: ProtocolTags) -> Object:
        """The whole object as it is declared, with its tags."""
        declared = self._declared(wanted)
        metadata = declared.pop("metadata", None) or {}
        labels = {**(metadata.get("labels") or {}), **labels_of(tags)}
        annotations = {**(metadata.get("annotations") or {}), **annotations_of(tags)}
        kind = self.object_kind
        item: Object = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {
                "name": wanted.component.name,
                **({"namespace": cloud.namespace} if kind.is_namespaced else {}),
                "labels": labels,
                **({"annotations": annotations} if annotations else {}),
            },
            **declared,
        }
        self._put_linked(item, wanted.component.parameters())
        return item

    def _put_linked(self, item: Object, declared: Mapping[str, Any]) -> None:
        linked_pods.put(item, self._pods_at(declared), declared.get(LINKED) or {})

    def _declared(self, wanted: Wanted[GenericComponent]) -> dict[str, Any]:
        """The object's fields as they are declared, without nulls; the values of a Secret as the server keeps them."""
        said = as_sent(shape_of(self.said.parameter_schema), wanted.component.parameters())
        found = {name: value for name, value in said.items() if name not in _NO_FIELDS}
        return secrets.stored(found) if self._is_secret else found

    def apply(self, item: Object, wanted: Wanted[GenericComponent], names: Collection[str]) -> None:
        """Bring the fields at these paths to what is declared, in a copy of the object; nothing else of it."""
        declared = self._declared(wanted)
        schema = self.said.parameter_schema
        paths = {_stored_name(name) if self._is_secret else name for name in names if root(name) != LINKED}
        ours = set_alone(item)
        left = {one for one in _gone(declared, paths) if _is_of_others(shape_of(schema), of_name(one), ours)}
        changed = corrected(item, declared, schema, paths - left, wanted.ignored, ours)
        item.clear()
        item.update(changed)
        self._put_linked(item, wanted.component.parameters())  # a list that is one value was replaced whole

    def update(
        self, cloud: Kubernetes, sighting: Sighting, wanted: Wanted[GenericComponent], drift: Collection[str]
    ) -> None:
        """Apply what differs, and again what is ours already; what must go is taken away by a patch of its own.

        An apply takes nothing away that another manager set; where we applied in another version of the kind before, it
        would take away what has another name there, so that is patched, too. It carries the uid and the resourceVersion
        of the read that showed the tags unchanged, so nothing that happened since is overwritten. It is forced: what
        differs is set back, whoever set it, and nothing else is in it.
        """
        item = self.still(cloud, sighting)
        changed = deepcopy(item)
        self.apply(changed, wanted, drift)
        operations = difference(item, changed)
        if not operations:
            return
        is_removal = bool(_gone(self._declared(wanted), (name for name in drift if root(name) != LINKED)))
        removes = is_removal or any(_removes(item, operation) for operation in operations)
        if removes or is_applied_elsewhere(item):
            cloud.patch(
                self.object_kind, sighting.name, [*guard(item["metadata"]["uid"], sighting.protocol), *operations]
            )
            return
        applied = self._configuration(changed, wanted, drift)
        cloud.apply(self.object_kind, sighting.name, applied, FIELD_MANAGER)

    def _configuration(self, changed: Object, wanted: Wanted[GenericComponent], drift: Collection[str]) -> Object:
        """What an apply says: what differs, and what is ours by an earlier one."""
        own = [name for name in drift if root(name) != LINKED]
        paths: list[Path] = [of_name(_stored_name(name) if self._is_secret else name) for name in own]
        if len(own) < len(drift):
            paths += linked_pods.paths(changed, self._pods_at(wanted.component.parameters()))
        identity = {"apiVersion": self.object_kind.api_version, "kind": self.object_kind.kind}
        return configuration({**changed, **identity}, paths)

    def check_deletion(self, cloud: Kubernetes, sighting: Sighting) -> None:
        """Refuse where something that is not ours, or data, would go with it."""
        name = self.kind_facts.name.unversioned
        if name == _CLAIM:
            KubernetesPersistentVolumeClaimOffer().check_deletion(cloud, sighting)
        check_nothing_goes_along(cloud, name, sighting)


def _only_declared(actual: Mapping[str, Any], declared: Mapping[str, Any], ours: Collection[str]) -> dict[str, Any]:
    """Labels and annotations that are declared, and those of ours that were taken out beside such ones."""
    there, wanted = actual.get("metadata") or {}, declared.get("metadata") or {}
    return {
        carrier: {
            key: text
            for key, text in values.items()
            if key in (wanted.get(carrier) or {})
            or (carrier in wanted and entry_name(("metadata", carrier, key)) in ours)
        }
        for carrier, values in there.items()
    }


def as_sent(shape: Shape, value: Any) -> Any:
    """A value as it is written: amounts as text, which an apply insists on, and no nulls, which say nothing."""
    if isinstance(value, dict):
        return {name: as_sent(shape.property(name), one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [as_sent(shape.items, one) for one in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and shape.compare == "quantity" else value


def _at(item: Object, path: str) -> Any:
    found: Any = item
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _stored_name(path: str) -> str:
    """Where a Secret's value stands that is declared at a path: whatever it is declared as, the server keeps data."""
    first, *rest = of_name(path)
    if first not in HIDDEN or not rest:
        return "data" if first in HIDDEN else path
    return written(("data", *rest))


def _gone(declared: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    """Those of these names of drift under which nothing is declared (any more)."""
    return {name for name in names if value_at(declared, name) is None}


def _is_of_others(shape: Shape, path: Path, ours: Collection[str]) -> bool:
    """Whether a place is an entry among others', in which somebody else has a part by now: it is left to them."""
    above = [shape, *along(shape, path[:-1])][-1]
    return above.has_others and entry_name(path) not in ours


def _removes(item: Object, operation: Mapping[str, Any]) -> bool:
    """Whether an operation removes something, also from within a value that it replaces."""
    if operation["op"] == "remove":
        return True
    if operation["op"] != "replace":
        return False
    found: Any = item
    for part in operation["path"].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found[int(key)] if isinstance(found, list) else found.get(key)
    return _loses(found, operation["value"])


def _loses(before: Any, after: Any) -> bool:
    """Whether entries of maps or elements of lists are missing afterwards."""
    if isinstance(before, dict) and isinstance(after, dict):
        return any(key not in after or _loses(one, after[key]) for key, one in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(after) < len(before)
    return isinstance(before, dict) != isinstance(after, dict)
