"""What a person does to every Azure type, and the cases of the contract: plain requests, no line of the offers.

Azure ignores the case of a tag's key: a tag of somebody else's that is nearly ours goes by another key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.azure.aks import AzureAks
from fractal_cloud.offers.azure.nsg import AzureNsg
from fractal_cloud.offers.azure.postgres import AzurePostgresDbms
from fractal_cloud.offers.azure.storage_account import AzureStorageAccount
from fractal_cloud.offers.azure.vm import AzureVm
from fractal_cloud.offers.azure.vnet import AzureVnet
from fractal_cloud.testing import Found, Hazard, Obstacle, OfferExample
from tests.offers.azure.examples import EXAMPLES, LOCATION, Example
from tests.offers.azure.person import AzurePerson

OTHERS = {"Fractal-Cloud": "their Fractal-Cloud"}
BACK = {theirs: key for key, theirs in OTHERS.items()}


class AzureActions:
    """What a person does to resources of one kind."""

    def __init__(self, person: AzurePerson, example: Example) -> None:
        self._person = person
        self._example = example

    def find(self, name: str) -> list[Found]:
        path = self._person.path(self._example.kind, name)
        item = self._person.find(path)
        if item is None or item["properties"].get("provisioningState") == "Deleting":
            return []
        tags = {BACK.get(key, key): value for key, value in (item.get("tags") or {}).items()}
        return [Found(str(item["id"]), tags, path)]

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        self._example.edit(self._person, resource_id, parameter, value)

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._person.write_tags(found.handle, "Merge", {OTHERS.get(key, key): value for key, value in tags.items()})

    def untag(self, found: Found, *keys: str) -> None:
        self._person.untag(found.handle, *(OTHERS.get(key, key) for key in keys))

    def delete(self, found: Found) -> None:
        self._person.call("DELETE", found.handle)


Arrange = Callable[[AzurePerson, Found], Obstacle]


@dataclass(frozen=True)
class Case:
    """What the suite must know of one type beside its example; ``effects``: how many its life has at least."""

    is_slow: bool = True
    only_up: frozenset[str] = frozenset()
    hazards: dict[str, tuple[str, Arrange]] = field(default_factory=dict)
    effects: int = 18


def _lock(person: AzurePerson, found: Found) -> Obstacle:
    path = f"{found.handle}/providers/Microsoft.Authorization/locks/keep"
    person.call("PUT", path, {"properties": {"level": "CanNotDelete"}})
    return Obstacle(("are locked",), lambda: person.call("DELETE", path))


def _delegated_subnet(person: AzurePerson, found: Found) -> Obstacle:
    path = f"{found.handle}/subnets/back"
    subnet = person.call("GET", path)
    delegation = {"name": "db", "properties": {"serviceName": "Microsoft.DBforPostgreSQL/flexibleServers"}}
    person.call("PUT", path, {**subnet, "properties": {**subnet["properties"], "delegations": [delegation]}})
    return Obstacle(("subnet 'back' (a delegation)",), lambda: person.call("DELETE", path))


def _subnet_under_group(person: AzurePerson, found: Found) -> Obstacle:
    network = person.path(EXAMPLES[AzureVnet].kind, "theirs")
    subnet = {"name": "a", "properties": {"addressPrefix": "10.9.1.0/24", "networkSecurityGroup": {"id": found.handle}}}
    properties = {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}, "subnets": [subnet]}
    person.call("PUT", network, {"location": LOCATION, "properties": properties})
    return Obstacle(("subnet 'theirs/a'",), lambda: person.call("DELETE", network))


def _container(person: AzurePerson, found: Found) -> Obstacle:
    path = f"{found.handle}/blobServices/default/containers/letters"
    person.call("PUT", path, {})
    return Obstacle(("container 'letters'", "never emptied"), lambda: person.call("DELETE", path))


def _claimed_disk(person: AzurePerson, found: Found) -> Obstacle:
    group = person.call("GET", found.handle)["properties"]["nodeResourceGroup"]
    path = person.path("Microsoft.Compute/disks", "pvc-1", group)
    tags = {"kubernetes.io-created-for-pvc-name": "orders"}
    person.call("PUT", path, {"location": LOCATION, "tags": tags, "properties": {}})
    return Obstacle(("claim 'orders'",), lambda: person.call("DELETE", path))


def _database(person: AzurePerson, found: Found) -> Obstacle:
    path = f"{found.handle}/databases/shop"
    person.call("PUT", path, {"properties": {"charset": "UTF8"}})
    return Obstacle(("database 'shop'",), lambda: person.call("DELETE", path))


CASES: dict[type[Component], Case] = {
    AzureVnet: Case(
        hazards={
            "a delegated subnet": ("Deleting", _delegated_subnet),
            "a management lock": ("Failed", _lock),
        }
    ),
    AzureNsg: Case(hazards={"a subnet": ("Deleting", _subnet_under_group)}),
    AzureVm: Case(hazards={"a management lock": ("Failed", _lock)}),
    AzureStorageAccount: Case(hazards={"a container": ("Failed", _container)}),
    AzureAks: Case(only_up=frozenset({"kubernetesVersion"}), hazards={"data of a claim": ("Failed", _claimed_disk)}),
    AzurePostgresDbms: Case(
        only_up=frozenset({"version", "storageSizeGB"}), hazards={"a database": ("Failed", _database)}
    ),
}


def example_of(kind: type[Component], person: AzurePerson) -> OfferExample:
    """The example of one type, with the actions of a person on it."""
    example, case = EXAMPLES[kind], CASES[kind]

    def hazard(title: str, status: str, arrange: Arrange) -> Hazard:
        return Hazard(title, status, lambda found: arrange(person, found))

    return OfferExample(
        components=example.components,
        changes=example.changes,
        immutable_changes=example.immutable_changes,
        operator=AzureActions(person, example),
        only_up=case.only_up,
        is_slow=case.is_slow,
        hazards=[hazard(title, status, arrange) for title, (status, arrange) in case.hazards.items()],
        as_name=example.as_name,
    )
