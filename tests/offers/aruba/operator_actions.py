"""What a person does to every Aruba type, and the cases of the contract: plain requests, no line of the offers.

A tag is one string of at least four characters: those of others are written so that they are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.aruba.block_storage import ArubaBlockStorage
from fractal_cloud.offers.aruba.cloud_server import ArubaCloudServer
from fractal_cloud.offers.aruba.kaas import ArubaKaas
from fractal_cloud.offers.aruba.security_group import ArubaSecurityGroup
from fractal_cloud.offers.aruba.subnet import ArubaSubnet
from fractal_cloud.offers.aruba.vpc import ArubaVpc
from fractal_cloud.testing import MINE, Found, Hazard, Obstacle, OfferExample
from tests.offers.aruba.examples import BOOTABLE, EXAMPLES
from tests.offers.aruba.person import CLUSTERS, DISKS, SERVERS, SNAPSHOTS, VPCS, ArubaPerson

OURS = ("managed-by", "fractal-cloud", "fractal-cloud-owner")
OTHERS = "others-"


def spelled(key: str, value: str) -> str:
    """One tag as the cloud takes it."""
    is_plain = key in OURS or key in MINE
    return f"{key}:{value}" if is_plain else f"{OTHERS}{key.encode().hex()}.{value.encode().hex()}"


def key_and_value(tag: str) -> tuple[str, str]:
    """The key and the value of one tag."""
    if not tag.startswith(OTHERS):
        key, _, value = tag.partition(":")
        return key, value
    key, _, value = tag.removeprefix(OTHERS).partition(".")
    return bytes.fromhex(key).decode(), bytes.fromhex(value).decode()


ASSOCIATED = {
    "subnets": ("associateDisassociateSubnets", "subnetsToAssociate", "subnetsToDisassociate", "subnets"),
    "securityGroups": (
        "associateDisassociateSecurityGroups",
        "securityGroupsToAssociate",
        "securityGroupsToDisassociate",
        "securityGroups",
    ),
    "dataVolumes": ("attachDetachDataVolumes", "volumesToAttach", "volumesToDetach", "blockStorages"),
}
"""By parameter: the call that changes it, how it says what comes and what goes, and the collection these are in."""


class ArubaActions:
    """What a person does to resources of one collection; ``below``: its name in every VPC, where it lies in one."""

    def __init__(self, person: ArubaPerson, path: str, below: str = "") -> None:
        self.person = person
        self._path = path
        self._below = below

    def find(self, name: str) -> list[Found]:
        places = [self._path]
        if self._below:
            places = [f"{vpc['metadata']['uri']}/{self._below}" for vpc in self.person.list(self._path)]
        items = [one for place in places for one in self.person.list(place)]
        living = [one for one in items if one["metadata"]["name"] == name and one["status"]["state"] != "Deleting"]
        return [
            Found(one["metadata"]["uri"], dict(map(key_and_value, one["metadata"]["tags"])), one["metadata"]["uri"])
            for one in living
        ]

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        if parameter == "rules":
            self._edit_rules(resource_id, value)
        elif parameter == "state":
            self.person.act(resource_id, "poweron" if value == "running" else "poweroff")
        elif parameter in ASSOCIATED:
            self._edit_associated(resource_id, parameter, value)
        elif parameter == "kubernetesVersion":
            self.person.put(resource_id, kubernetesVersion={"value": value})
        else:
            self.person.put(resource_id, **{parameter: value})

    def _edit_associated(self, server: str, parameter: str, value: list[str]) -> None:
        item = self.person.get(server)
        assert item is not None
        action, added, removed, kind = ASSOCIATED[parameter]
        linked = [one["uri"] for one in item["properties"]["linkedResources"] if f"/{kind}/" in one["uri"]]
        here = [uri for uri in linked if uri != item["properties"]["bootVolume"]["uri"]]
        body = {
            added: [{"uri": uri} for uri in value if uri not in here],
            removed: [{"uri": uri} for uri in here if uri not in value],
        }
        self.person.act(server, action, **body)

    def _edit_rules(self, group: str, rules: list[Mapping[str, Any]]) -> None:
        wanted = [_rule(rule) for rule in rules]
        here = self.person.list(f"{group}/securityRules")
        for one in here:
            if one["properties"] not in [{**rule, "linkedResources": []} for rule in wanted]:
                self.person.delete(one["metadata"]["uri"])
        for number, rule in enumerate(wanted):
            if {**rule, "linkedResources": []} not in [one["properties"] for one in here]:
                self.person.create(f"{group}/securityRules", f"theirs-{number}", **rule)

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._write(found, tags, ())

    def untag(self, found: Found, *keys: str) -> None:
        self._write(found, {}, keys)

    def _write(self, found: Found, add: Mapping[str, str], remove: tuple[str, ...]) -> None:
        kept = dict(map(key_and_value, self.person.tags(found.handle)))
        tags = {**{key: value for key, value in kept.items() if key not in remove}, **add}
        self.person.put(found.handle, tags=[spelled(key, value) for key, value in tags.items()])

    def delete(self, found: Found) -> None:
        self.person.delete(found.handle)


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    port = {"port": rule["port"]} if "port" in rule else {}
    target = {"kind": rule["targetKind"], "value": rule["target"]}
    return {"direction": rule["direction"], "protocol": rule["protocol"], "target": target, **port}


Arrange = Callable[[ArubaPerson, Found], Obstacle]


@dataclass(frozen=True)
class Case:
    """What the suite must know of one type beside its example; ``effects``: how many its life has at least."""

    path: str
    below: str = ""
    only_up: frozenset[str] = frozenset()
    hazards: dict[str, tuple[str, Arrange]] = field(default_factory=dict)
    effects: int = 17
    own: Callable[[str], dict[str, Any]] = lambda _: {}


def _subnet_of_somebody_else(person: ArubaPerson, found: Found) -> Obstacle:
    made = person.create(f"{found.resource_id}/subnets", "theirs", type="Basic")
    return Obstacle((made,), lambda: person.delete(made))


def _cluster_in_subnet(person: ArubaPerson, found: Found) -> Obstacle:
    made = person.create(
        CLUSTERS,
        "theirs",
        vpc={"uri": found.resource_id.rsplit("/", 2)[0]},
        subnet={"uri": found.resource_id},
        nodeCidr={"address": "10.100.0.0/16"},
        securityGroup={"name": "theirs"},
        kubernetesVersion={"value": "1.33.2"},
        nodePools=[{"name": "workers", "nodes": 1, "instance": "K2A4", "dataCenter": "ITBG-1"}],
    )
    return Obstacle((made,), lambda: person.delete(made))


def _snapshot(person: ArubaPerson, found: Found) -> Obstacle:
    made = person.create(SNAPSHOTS, "precious", volume={"uri": found.resource_id})
    return Obstacle((made,), lambda: person.delete(made))


def _server_that_boots(person: ArubaPerson, found: Found) -> Obstacle:
    vpc = person.create(VPCS, "theirs")
    net = person.create(f"{vpc}/subnets", "theirs", type="Basic")
    made = person.create(
        SERVERS,
        "theirs",
        dataCenter="ITBG-1",
        vpc={"uri": vpc},
        flavorName="CSO2A4",
        bootVolume={"uri": found.resource_id},
        subnets=[{"uri": net}],
    )
    return Obstacle((made,), lambda: person.delete(made))


def _boot_volume(name: str) -> dict[str, Any]:
    """A disk that a server of that name has for itself: of those that tests have beside each other, each another."""
    number = int(name[-1]) if name[-1].isdigit() else {"a": 1, "b": 2}.get(name[-1], 0)
    return {"bootVolume": BOOTABLE[number % len(BOOTABLE)]}


CASES: dict[type[Component], Case] = {
    ArubaVpc: Case(VPCS, hazards={"somebody else's subnet": ("Deleting", _subnet_of_somebody_else)}),
    ArubaSubnet: Case(VPCS, "subnets", hazards={"a cluster": ("Deleting", _cluster_in_subnet)}),
    ArubaSecurityGroup: Case(VPCS, "securityGroups", effects=33),
    ArubaKaas: Case(CLUSTERS, only_up=frozenset({"kubernetesVersion", "ha"}), effects=23),
    ArubaCloudServer: Case(SERVERS, own=_boot_volume, effects=25),
    ArubaBlockStorage: Case(
        DISKS,
        only_up=frozenset({"sizeGb"}),
        hazards={
            "a snapshot": ("Failed", _snapshot),
            "a server that boots from it": ("Failed", _server_that_boots),
        },
        effects=23,
    ),
}


def example_of(kind: type[Component], person: ArubaPerson) -> OfferExample:
    """The example of one type, with the actions of a person on it."""
    example, case = EXAMPLES[kind], CASES[kind]

    def hazard(title: str, status: str, arrange: Arrange) -> Hazard:
        return Hazard(title, status, lambda found: arrange(person, found))

    return OfferExample(
        components=example.components,
        changes=example.changes,
        immutable_changes=example.immutable_changes,
        operator=ArubaActions(person, case.path, case.below),
        only_up=case.only_up,
        is_slow=True,
        own=case.own,
        touches_parents=kind is ArubaCloudServer,
        hazards=[hazard(title, status, arrange) for title, (status, arrange) in case.hazards.items()],
    )
