"""What OCI says alike of «not there» and «not allowed»: nothing is concluded from it, and nobody is left guessing."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import Denied, Unreadable
from fractal_cloud.offers.oci.bucket import OciBucketOffer
from fractal_cloud.offers.oci.calls import Oci
from fractal_cloud.offers.oci.policy import policy
from fractal_cloud.offers.oci.vcn import OciVcnOffer
from fractal_cloud.offers.offer import Query
from fractal_sandbox import Sandbox
from tests.offers.oci.declaring import bucket, vcn
from tests.offers.oci.person import OciPerson
from tests.offers.oci.worlds import OciWorld

HIDDEN = {"status": 404, "code": "NotAuthorizedOrNotFound", "times": None}


@pytest.mark.rule("S0")
def test_a_list_that_is_not_found_is_denied_and_never_empty(cloud: Oci, tenancy: Sandbox) -> None:
    tenancy.oci.knobs.fail(operation="list*", **HIDDEN)
    for offer in (OciVcnOffer(), OciBucketOffer()):
        with pytest.raises(Denied):
            list(offer.sightings(cloud, Query()))


@pytest.mark.rule("S0")
def test_a_read_that_finds_nothing_is_believed_only_beside_a_list(
    cloud: Oci, tenancy: Sandbox, person: OciPerson
) -> None:
    made = person.create("vcns", cidrBlocks=["10.0.0.0/16"], displayName="net")["id"]
    offer = OciVcnOffer()
    assert offer.read(cloud, f"{made}x") is None
    tenancy.oci.knobs.fail(operation="getVcn", **HIDDEN)
    with pytest.raises(Denied, match="is listed but may not be read"):
        offer.read(cloud, made)
    tenancy.oci.knobs.fail(operation="listVcns", status=500, code="InternalError", times=None)
    with pytest.raises(Unreadable):
        offer.read(cloud, f"{made}x")


@pytest.mark.rule("S0", "S4")
def test_a_vanished_vcn_is_not_made_again_while_it_may_only_be_hidden(world: OciWorld) -> None:
    world.deploy("ls-a", vcn(), bucket())
    world.settle()
    world.cloud.knobs.fail(operation="list*", actor="agent", **HIDDEN)
    world.cloud.knobs.fail(operation="get*", actor="agent", **HIDDEN)
    before = len(world.writes())
    world.cycle(3)
    assert len(world.writes()) == before
    assert world.status("ls-a", "net") == "Active"
    assert "NotAuthorizedOrNotFound" in world.component("ls-a", "net")["message"]


@pytest.mark.rule("S21", "O10")
def test_a_deletion_that_is_not_allowed_is_reported_and_not_taken_for_done(world: OciWorld) -> None:
    world.deploy("ls-a", vcn("net"), bucket())
    world.settle()
    world.cloud.knobs.fail(operation="delete*", actor="agent", **HIDDEN)
    world.delete("ls-a")
    world.cycle(3)
    for component in ("net", "objects"):
        shown = world.component("ls-a", component)
        assert shown["status"] == "Failed", shown
        assert "fractal agent policy --provider oci" in shown["message"]
    world.cloud.knobs.reset()


@pytest.mark.rule("S21")
def test_a_bucket_whose_name_is_taken_elsewhere_says_so(world: OciWorld) -> None:
    elsewhere = {"compartmentId": "ocid1.compartment.oc1..sandboxnetwork", "name": "objects"}
    world.oci.call("POST", "/n/frsandbox/b", elsewhere)
    world.deploy("ls-a", bucket())
    world.cycle(2)
    shown = world.component("ls-a", "objects")
    assert shown["status"] == "Failed"
    assert "already exists or you are not authorized" in shown["message"]
    world.assert_safe()


def test_the_policy_names_what_every_type_needs_and_no_object() -> None:
    statements = policy()
    assert all(one.startswith("Allow group fractal-cloud-agent to ") for one in statements)
    for words in ("manage vcns", "manage subnets", "manage instances", "inspect compartments", "manage buckets"):
        assert any(words in one for one in statements)
    assert not any(" objects " in one or "all-resources" in one for one in statements)
