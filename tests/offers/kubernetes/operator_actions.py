"""What a person does to every Kubernetes type, and the cases of the contract: plain requests, no line of the offers.

The contract speaks of tags by their names in the protocol. Here they become labels and an annotation, and everybody
else's become annotations, whose values may be any text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.kubernetes.ambassador import Ambassador
from fractal_cloud.offers.kubernetes.claim import KubernetesPersistentVolumeClaim
from fractal_cloud.offers.kubernetes.network_policy import KubernetesNetworkPolicy
from fractal_cloud.offers.kubernetes.service import KubernetesService
from fractal_cloud.offers.kubernetes.virtual_machine import KubernetesVirtualMachine
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.testing import MINE, Declaration, Found, Hazard, Obstacle, OfferExample
from tests.offers.kubernetes.examples import ACCOUNT, CLASS, EXAMPLES, ROLE, Example
from tests.offers.kubernetes.person import MANAGED_BY, OWNER, RECONCILE, KubernetesPerson

LABELS = {"managed-by": MANAGED_BY, "fractal-cloud-owner": OWNER, **{key: key for key in MINE}}
ANNOTATIONS = {"fractal-cloud": RECONCILE}
OTHERS = "others.example/"
"""Tags of others stand behind this prefix, their keys written so that they are allowed."""


def _annotation(key: str) -> str:
    return ANNOTATIONS.get(key) or f"{OTHERS}{key.encode().hex()}"


class KubernetesActions:
    """What a person does to objects of one kind."""

    def __init__(self, person: KubernetesPerson, example: Example) -> None:
        self._person = person
        self._example = example

    def find(self, name: str) -> list[Found]:
        item = self._person.get(self._example.plural, name)
        if item is None or item["metadata"].get("deletionTimestamp"):
            return []
        metadata = item["metadata"]
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        tags = {tag: labels[key] for tag, key in LABELS.items() if key in labels}
        tags |= {tag: annotations[key] for tag, key in ANNOTATIONS.items() if key in annotations}
        tags |= {
            bytes.fromhex(key.removeprefix(OTHERS)).decode(): value
            for key, value in annotations.items()
            if key.startswith(OTHERS)
        }
        return [Found(f"{name}/{metadata['uid']}", tags, name)]

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        name = resource_id.partition("/")[0]
        item = self._person.get(self._example.plural, name)
        assert item is not None
        changed = deepcopy(item)
        self._example.edit(changed, parameter, value)
        changed.pop("status", None)
        self._person.call("PUT", self._person.path(self._example.plural, name), changed)

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._write(found, tags)

    def untag(self, found: Found, *keys: str) -> None:
        self._write(found, dict.fromkeys(keys))

    def _write(self, found: Found, tags: Mapping[str, str | None]) -> None:
        labels = {LABELS[key]: value for key, value in tags.items() if key in LABELS}
        annotations = {_annotation(key): value for key, value in tags.items() if key not in LABELS}
        metadata = {"labels": labels, "annotations": annotations}
        self._person.merge(self._example.plural, found.handle, {"metadata": metadata})

    def delete(self, found: Found) -> None:
        self._person.delete(self._example.plural, found.handle)

    def make_anew(self, found: Found) -> None:
        item = self._person.get(self._example.plural, found.handle)
        if item is not None:
            self._person.delete(self._example.plural, found.handle)
            fields = {key: value for key, value in item.items() if key not in ("metadata", "status")}
            if "spec" in item:
                spec = {key: value for key, value in item["spec"].items() if not key.startswith("clusterIP")}
                fields["spec"] = spec
            self._person.create(self._example.plural, {**fields, "metadata": {"name": found.handle}})


Arrange = Callable[[KubernetesPerson, Found], Obstacle]


@dataclass(frozen=True)
class Case:
    """What the suite must know of one type beside its example; ``effects``: how many its life has at least."""

    is_slow: bool = False
    only_up: frozenset[str] = frozenset()
    more_parents: tuple[Declaration, ...] = ()
    hazards: dict[str, tuple[str, Arrange]] = field(default_factory=dict)
    effects: int = 20


def _pod_with_claim(person: KubernetesPerson, found: Found) -> Obstacle:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": found.handle}}
    spec = {"containers": [{"name": "a", "image": "b"}], "volumes": [volume]}
    person.create("pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": spec})
    return Obstacle(("pod 'user'",), lambda: person.delete("pods", "user"))


def _disk_of_its_own(person: KubernetesPerson, found: Found) -> Obstacle:
    templates = [{"metadata": {"name": "box-disk"}, "spec": {}}]
    person.merge("virtualmachines", found.handle, {"spec": {"dataVolumeTemplates": templates}})

    def clear() -> None:
        person.merge("virtualmachines", found.handle, {"spec": {"dataVolumeTemplates": None}})

    return Obstacle(("'box-disk'",), clear)


CASES: dict[type[Component], Case] = {
    KubernetesWorkload: Case(is_slow=True),
    KubernetesService: Case(),
    KubernetesNetworkPolicy: Case(),
    KubernetesPersistentVolumeClaim: Case(
        is_slow=True,
        only_up=frozenset({"storage"}),
        hazards={"a pod that uses it": ("Failed", _pod_with_claim)},
        effects=16,
    ),
    KubernetesVirtualMachine: Case(is_slow=True, hazards={"a disk of its own": ("Failed", _disk_of_its_own)}),
    Ambassador: Case(),
    ACCOUNT: Case(effects=12),
    ROLE: Case(effects=12),
    CLASS: Case(effects=12),
}


def example_of(kind: type[Component], person: KubernetesPerson) -> OfferExample:
    """The example of one type, with the actions of a person on it."""
    example, case = EXAMPLES[kind], CASES[kind]

    def hazard(title: str, status: str, arrange: Arrange) -> Hazard:
        return Hazard(title, status, lambda found: arrange(person, found))

    return OfferExample(
        components=[*example.components[:-1], *case.more_parents, example.components[-1]],
        changes=example.changes,
        immutable_changes=example.immutable_changes,
        operator=KubernetesActions(person, example),
        only_up=case.only_up,
        is_slow=case.is_slow,
        hazards=[hazard(title, status, arrange) for title, (status, arrange) in case.hazards.items()],
    )
