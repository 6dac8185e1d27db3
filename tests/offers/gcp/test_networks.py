"""What has no labels is only read, or made once: networks, subnets, firewall rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fractal_cloud.model.component import Component
from fractal_cloud.model.errors import Invalid
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import NO_TAGS, stamp
from fractal_cloud.offers.gcp.cloud import GcpSession
from fractal_cloud.offers.gcp.firewall import GcpFirewall
from fractal_cloud.offers.gcp.network import GcpVpc
from fractal_cloud.offers.gcp.subnet import GcpSubnet
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.offer import Query, Wanted
from fractal_cloud.offers.registry import installed
from tests.offers.gcp.examples import EXAMPLES
from tests.offers.gcp.person import GcpPerson
from tests.offers.gcp.suite import GcpWorld

UNLABELLED = (GcpVpc, GcpSubnet, GcpFirewall)
RULE: dict[str, Any] = {
    "name": "let-in",
    "network": "projects/fractal-sandbox/global/networks/default",
    "sourceRanges": ["192.0.2.0/24"],
    "targetTags": ["web"],
    "allowed": [{"IPProtocol": "tcp", "ports": ["443"]}, {"IPProtocol": "icmp"}],
}


@pytest.mark.rule("S5", "O5", "O10")
@pytest.mark.parametrize("kind", UNLABELLED)
def test_it_is_imported_compared_and_never_written(world: GcpWorld, person: GcpPerson, kind: type[Component]) -> None:
    person.call("POST", person.firewall("").rstrip("/"), RULE)
    example = EXAMPLES[kind]
    world.deploy("ls-a", *example.components)
    world.settle()
    component = example.components[-1]["id"]
    shown = world.component("ls-a", component)
    assert shown["status"] == "ExternallyManaged"
    assert "drift" not in shown["outputFields"]
    assert set(shown["outputFields"]) >= set(installed()[kind.type].outputs)

    name = example.components[-1]["parameters"].get("name", component)
    for parameter, value in example.changes.items():
        example.edit(person, name, parameter, value)
    world.settle()
    assert set(world.component("ls-a", component)["outputFields"]["drift"]) == set(example.changes)

    world.delete("ls-a")
    world.settle()
    assert world.writes() == []
    world.assert_safe()


@pytest.mark.rule("S1")
def test_what_is_not_there_is_missing_and_never_made(world: GcpWorld, person: GcpPerson) -> None:
    nowhere = {"id": "nowhere", "type": GcpVpc.type, "provider": "gcp", "parameters": {}}
    world.deploy("ls-a", nowhere)
    world.settle()
    assert world.status("ls-a", "nowhere") == "Missing"
    assert world.force_push("ls-a", "nowhere").status_code == 409
    assert person.get(person.network("nowhere")) is None
    assert world.writes() == []


def test_what_google_made_unasked_is_a_provider_default(session: GcpSession) -> None:
    for kind, place in ((GcpVpc, "global"), (GcpSubnet, "europe-west1")):
        offer, cloud = installed()[kind.type], session.at(Scope("gcp", "fractal-sandbox", place))
        made = {one.name: offer.is_provider_default(one) for one in all_sightings(offer.sightings(cloud, Query()))}
        assert made == {"default": True, "inner": False}


NET = {
    "id": "shop-net",
    "type": GcpVpc.type,
    "provider": "gcp",
    "createOnce": True,
    "parameters": {"autoCreateSubnetworks": False, "routingMode": "REGIONAL", "mtu": 1500},
}
SUBNET = {
    "id": "shop-subnet",
    "type": GcpSubnet.type,
    "provider": "gcp",
    "createOnce": True,
    "parameters": {
        "network": "shop-net",
        "region": "europe-west1",
        "ipCidrRange": "10.9.0.0/24",
        "privateIpGoogleAccess": True,
    },
}
LET_IN = {
    "id": "shop-let-in",
    "type": GcpFirewall.type,
    "provider": "gcp",
    "createOnce": True,
    "parameters": {
        "network": "shop-net",
        "sourceRanges": ["192.0.2.0/24"],
        "targetTags": ["web"],
        "allowed": ["tcp:443", "tcp:8080-8090", "icmp"],
    },
}


@pytest.mark.rule("S1b", "S5", "O10")
def test_what_says_create_once_is_made_once_then_only_read_and_left(world: GcpWorld, person: GcpPerson) -> None:
    world.deploy("ls-a", NET, SUBNET, LET_IN)
    world.settle()
    for name in ("shop-net", "shop-subnet", "shop-let-in"):
        shown = world.component("ls-a", name)
        assert (shown["status"], shown["outputFields"].get("drift")) == ("ExternallyManaged", None), shown
    rule = person.get(person.firewall("shop-let-in"))
    assert rule is not None
    assert rule["allowed"] == [{"IPProtocol": "tcp", "ports": ["443", "8080-8090"]}, {"IPProtocol": "icmp"}]
    assert len(world.writes()) == 3

    person.call("PATCH", person.firewall("shop-let-in"), {"name": "shop-let-in", "priority": 7})
    person.call("DELETE", person.firewall("shop-let-in"))
    world.settle()
    assert world.status("ls-a", "shop-let-in") == "Missing"
    world.deploy("ls-a", NET, SUBNET, LET_IN)
    world.settle()
    assert world.status("ls-a", "shop-let-in") == "ExternallyManaged", "a new deploy asks for it anew"
    assert len(world.writes()) == 4

    world.delete("ls-a")
    world.settle()
    assert world.api.get("/livesystems/ls-a").status_code == 404
    for there in (person.network("shop-net"), person.firewall("shop-let-in")):
        assert person.get(there) is not None, "what cannot carry tags is never deleted"
    assert len(world.writes()) == 4
    world.assert_safe()


@pytest.mark.rule("S1b", "O2")
def test_of_several_that_would_make_it_one_does_and_the_others_import(world: GcpWorld, person: GcpPerson) -> None:
    world.deploy("ls-a", NET)
    world.deploy("ls-b", NET)
    world.settle()
    assert {world.status(one, "shop-net") for one in ("ls-a", "ls-b")} == {"ExternallyManaged"}
    assert len(world.writes()) == 1
    world.assert_safe()


@pytest.mark.rule("S1b")
def test_what_google_refuses_says_so(world: GcpWorld, person: GcpPerson) -> None:
    lacking = {**SUBNET, "parameters": {"network": "shop-net", "region": "europe-west1"}}
    world.deploy("ls-a", NET, lacking)
    for _ in range(4):
        world.cycle()
    shown = world.component("ls-a", "shop-subnet")
    assert shown["status"] == "Failed"
    assert "ipCidrRange" in shown["message"]
    world.assert_safe()


@pytest.mark.rule("S1", "S5")
@pytest.mark.parametrize("kind", UNLABELLED)
def test_its_verbs_refuse_before_anything_is_sent(session: GcpSession, kind: type[Component]) -> None:
    offer, cloud = installed()[kind.type], session.at(Scope("gcp", "fractal-sandbox", "global"))
    seen = Sighting(kind.type, "a", "a")
    wanted = Wanted(kind.from_parameters("a", EXAMPLES[kind].components[-1]["parameters"]), "ls-a")
    verbs: list[Callable[[], object]] = [
        lambda: offer.update(cloud, seen, wanted, {"mtu"}),
        lambda: offer.delete(cloud, seen),
        lambda: offer.tag(cloud, seen, stamp("ls-a"), NO_TAGS),
    ]
    for verb in verbs:
        with pytest.raises(Invalid, match="cannot carry tags"):
            verb()
