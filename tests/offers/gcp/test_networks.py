"""What has no labels is only ever read: networks, subnets, firewall rules."""

from __future__ import annotations

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


@pytest.mark.rule("S1", "S5")
@pytest.mark.parametrize("kind", UNLABELLED)
def test_its_verbs_refuse_before_anything_is_sent(session: GcpSession, kind: type[Component]) -> None:
    offer, cloud = installed()[kind.type], session.at(Scope("gcp", "fractal-sandbox", "global"))
    seen = Sighting(kind.type, "a", "a")
    wanted = Wanted(kind.from_parameters("a", EXAMPLES[kind].components[-1]["parameters"]), "ls-a")
    for verb in (
        lambda: offer.create(cloud, wanted, stamp("ls-a")),
        lambda: offer.update(cloud, seen, wanted, {"mtu"}),
        lambda: offer.delete(cloud, seen),
        lambda: offer.tag(cloud, seen, stamp("ls-a"), NO_TAGS),
    ):
        with pytest.raises(Invalid, match="cannot carry tags"):
            verb()
