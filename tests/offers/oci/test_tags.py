"""Free-form tags: one map that is written whole, keys whatever their case, and nobody else's ever lost (T10)."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import Overtaken, Unreadable
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.oci.bucket import OciBucketOffer
from fractal_cloud.offers.oci.calls import Oci
from fractal_cloud.offers.oci.tags import protocol_of, rewritten
from fractal_cloud.offers.oci.vcn import OciVcnOffer
from fractal_cloud.offers.offer import Query
from tests.offers.oci.declaring import vcn
from tests.offers.oci.person import BUCKETS, CORE, OciPerson
from tests.offers.oci.worlds import OciWorld

CONTEXT = CallContext("ls-a", "net", "handshake")
MANAGED = {"managed-by": "fractal-cloud", "fractal-cloud": "reconcile", "fractal-cloud-owner": "ls-a"}


@pytest.mark.rule("T8")
def test_keys_are_the_same_whatever_their_case_and_values_are_not() -> None:
    assert protocol_of({"Managed-By": "fractal-cloud"}).is_managed
    assert not protocol_of({"managed-by": "Fractal-Cloud"}).is_managed
    assert protocol_of({"FRACTAL-CLOUD": "reconcile", "Fractal-Cloud-Owner": "ls-a"}) == ProtocolTags(
        None, True, "ls-a"
    )
    assert protocol_of({"fractal.managed-by": "fractal-cloud"}) == NO_TAGS


@pytest.mark.rule("T1", "T10")
def test_a_map_is_rewritten_but_for_the_protocols_own_keys() -> None:
    tags = {"Team": "pay", "Managed-By": "fractal-cloud", "Fractal-Cloud": "reconcile"}
    removed = rewritten(tags, NO_TAGS, ProtocolTags(reconcile=True))
    assert removed == {"Team": "pay", "Managed-By": "fractal-cloud"}
    assert rewritten(removed, ProtocolTags(owner="ls-a"), NO_TAGS) == {**removed, "fractal-cloud-owner": "ls-a"}


@pytest.mark.rule("T10", "S16")
def test_a_tag_write_is_refused_if_anything_changed_since_it_was_read(cloud: Oci, person: OciPerson) -> None:
    made = person.create("vcns", cidrBlocks=["10.0.0.0/16"], displayName="net", freeformTags=MANAGED)["id"]
    offer = OciVcnOffer()
    seen = offer.read(cloud, made)
    assert seen is not None
    person.call("PUT", f"{CORE}/vcns/{made}", {"freeformTags": {**MANAGED, "Team": "pay"}})
    with cloud.calling_as(CONTEXT), pytest.raises(Overtaken):
        offer.tag(cloud, seen, NO_TAGS, ProtocolTags(reconcile=True))
    found = person.get(f"{CORE}/vcns/{made}")
    assert found is not None
    assert found["freeformTags"] == {**MANAGED, "Team": "pay"}


@pytest.mark.rule("S16")
def test_no_write_goes_out_without_an_etag(cloud: Oci, person: OciPerson) -> None:
    person.create(BUCKETS, name="objects", freeformTags=MANAGED)
    offer = OciBucketOffer()
    [listed] = all_sightings(offer.sightings(cloud, Query()))
    assert listed.revision is None, "a list shows no etag that could be relied on"
    with cloud.calling_as(CONTEXT), pytest.raises(Unreadable, match="without an etag"):
        offer.delete(cloud, listed)
    with cloud.calling_as(CONTEXT), pytest.raises(Unreadable, match="without an etag"):
        offer.tag(cloud, listed, NO_TAGS, ProtocolTags(reconcile=True))


@pytest.mark.rule("S9", "T6", "T8")
def test_a_handshake_in_capitals_is_a_handshake(world: OciWorld) -> None:
    world.deploy("ls-a", vcn())
    world.settle()
    path = f"{CORE}/vcns/{world.output('ls-a', 'net', 'vcnId')}"
    owner = {"fractal-cloud-owner": "ls-a", "Team": "pay"}
    world.oci.call("PUT", path, {"freeformTags": owner})
    world.cycle()
    assert world.status("ls-a", "net") == "ManualOverride"
    shouted = {**owner, "MANAGED-BY": "fractal-cloud", "Fractal-Cloud": "reconcile"}
    world.oci.call("PUT", path, {"freeformTags": shouted})
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    found = world.oci.get(path)
    assert found is not None
    assert found["freeformTags"] == {**owner, "MANAGED-BY": "fractal-cloud"}
    world.assert_safe()


@pytest.mark.rule("T1")
def test_defined_tags_are_never_sent(world: OciWorld) -> None:
    world.deploy("ls-a", vcn())
    world.settle()
    path = f"{CORE}/vcns/{world.output('ls-a', 'net', 'vcnId')}"
    world.oci.call("PUT", path, {"definedTags": {"Ops": {"CostCenter": "42"}}})
    assert world.glass("ls-a", "net", "break", reason="outage").status_code == 202
    world.settle()
    assert world.glass("ls-a", "net", "readopt").status_code == 202
    world.settle()
    found = world.oci.get(path)
    assert found is not None
    assert found["definedTags"] == {"Ops": {"CostCenter": "42"}}
    world.assert_safe()


@pytest.mark.rule("T8")
def test_a_defined_tag_of_that_name_only_warns(world: OciWorld) -> None:
    world.deploy("ls-a", vcn())
    world.settle()
    path = f"{CORE}/vcns/{world.output('ls-a', 'net', 'vcnId')}"
    assert world.output("ls-a", "net", "warning") is None
    world.oci.call(
        "PUT",
        path,
        {
            "freeformTags": {"fractal-cloud-owner": "ls-a"},
            "definedTags": {"fractal": {"managed-by": "fractal-cloud"}},
        },
    )
    world.cycle()
    assert world.status("ls-a", "net") == "ManualOverride"
    assert "free-form tag managed-by" in world.output("ls-a", "net", "warning")
