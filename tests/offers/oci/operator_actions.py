"""What a person does to every OCI type, and the cases of the contract: plain requests, no line of the offers.

OCI takes no spaces and no keys that differ in case only; tags of others are written so that they are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.oci.bucket import OciBucket
from fractal_cloud.offers.oci.instance import OciInstance
from fractal_cloud.offers.oci.subnet import OciSubnet
from fractal_cloud.offers.oci.vcn import OciVcn
from fractal_cloud.testing import MINE, Found, Hazard, Obstacle, OfferExample
from tests.offers.oci.examples import DOMAIN, EXAMPLES, IMAGE, Example
from tests.offers.oci.person import BUCKETS, CORE, OciPerson

OURS = ("managed-by", "fractal-cloud", "fractal-cloud-owner")
OTHERS = "others-"


def _key(tag: str) -> str:
    return tag if tag in OURS or tag in MINE else f"{OTHERS}{tag.encode().hex()}"


def _tag(key: str) -> str:
    return bytes.fromhex(key.removeprefix(OTHERS)).decode() if key.startswith(OTHERS) else key


class OciActions:
    """What a person does to resources of one collection. ``update``: the method that changes one."""

    def __init__(self, person: OciPerson, example: Example, path: str, name: str = "displayName") -> None:
        self.person = person
        self._example = example
        self._path = path
        self._name = name
        self._method = "POST" if name == "name" else "PUT"
        self._id = "name" if name == "name" else "id"

    def path(self, resource_id: str) -> str:
        return f"{self._path}/{resource_id}"

    def find(self, name: str) -> list[Found]:
        extra = {"fields": "tags"} if self._name == "name" else {}
        found = [one for one in self.person.list(self._path, **extra) if one[self._name] == name]
        living = [one for one in found if one.get("lifecycleState") not in ("TERMINATING", "TERMINATED")]
        return [
            Found(one[self._id], {_tag(key): value for key, value in one["freeformTags"].items()}, one[self._id])
            for one in living
        ]

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        item = self.person.get(self.path(resource_id))
        assert item is not None
        for method, below, body in self._example.edits(item, parameter, value):
            path, _, query = below.partition("?")
            words = dict(part.split("=") for part in query.split("&") if part)
            self.person.call(method, f"{self.path(resource_id)}{path}", body, **words)

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._write(found, {_key(tag): value for tag, value in tags.items()})

    def untag(self, found: Found, *keys: str) -> None:
        self._write(found, {}, {_key(tag) for tag in keys})

    def _write(self, found: Found, add: Mapping[str, str], remove: set[str] | None = None) -> None:
        item = self.person.get(self.path(found.handle))
        assert item is not None
        kept = {key: value for key, value in item["freeformTags"].items() if key not in (remove or ())}
        self.person.call(self._method, self.path(found.handle), {"freeformTags": {**kept, **add}})

    def delete(self, found: Found) -> None:
        self.person.delete(self.path(found.handle))


Arrange = Callable[[OciPerson, Found], Obstacle]


@dataclass(frozen=True)
class Case:
    """What the suite must know of one type beside its example; ``effects``: how many its life has at least."""

    path: str
    name: str = "displayName"
    is_slow: bool = True
    hazards: dict[str, tuple[str, Arrange]] = field(default_factory=dict)
    effects: int = 23


def _subnet_of_somebody_else(person: OciPerson, found: Found) -> Obstacle:
    made = person.create("subnets", vcnId=found.resource_id, cidrBlock="10.0.77.0/24", displayName="theirs")["id"]
    return Obstacle((made,), lambda: person.delete(f"{CORE}/subnets/{made}"))


def _gateway(person: OciPerson, found: Found) -> Obstacle:
    made = person.create("internetGateways", vcnId=found.resource_id, isEnabled=True)["id"]
    return Obstacle((made,), lambda: person.delete(f"{CORE}/internetGateways/{made}"))


def _machine_in_subnet(person: OciPerson, found: Found) -> Obstacle:
    machine = person.create(
        "instances",
        availabilityDomain=DOMAIN,
        shape="VM.Standard2.1",
        displayName="theirs",
        sourceDetails={"sourceType": "image", "imageId": IMAGE},
        createVnicDetails={"subnetId": found.resource_id},
    )["id"]
    [attachment] = person.list(f"{CORE}/vnicAttachments", instanceId=machine)
    return Obstacle((attachment["vnicId"],), lambda: person.delete(f"{CORE}/instances/{machine}"))


def _object_in_bucket(person: OciPerson, found: Found) -> Obstacle:
    path = f"{BUCKETS}/{found.resource_id}/o/letters/first"
    person.call("PUT", path, {"dear": "you"})
    return Obstacle((found.resource_id, "never emptied"), lambda: person.delete(path))


CASES: dict[type[Component], Case] = {
    OciVcn: Case(
        f"{CORE}/vcns",
        hazards={
            "somebody else's subnet": ("Deleting", _subnet_of_somebody_else),
            "an internet gateway": ("Deleting", _gateway),
        },
    ),
    OciSubnet: Case(f"{CORE}/subnets", hazards={"a machine": ("Deleting", _machine_in_subnet)}),
    OciInstance: Case(f"{CORE}/instances", effects=25),
    OciBucket: Case(BUCKETS, name="name", is_slow=False, hazards={"an object": ("Failed", _object_in_bucket)}),
}


def example_of(kind: type[Component], person: OciPerson) -> OfferExample:
    """The example of one type, with the actions of a person on it."""
    example, case = EXAMPLES[kind], CASES[kind]

    def hazard(title: str, status: str, arrange: Arrange) -> Hazard:
        return Hazard(title, status, lambda found: arrange(person, found))

    return OfferExample(
        components=example.components,
        changes=example.changes,
        immutable_changes=example.immutable_changes,
        operator=OciActions(person, example, case.path, case.name),
        is_slow=case.is_slow,
        hazards=[hazard(title, status, arrange) for title, (status, arrange) in case.hazards.items()],
    )
