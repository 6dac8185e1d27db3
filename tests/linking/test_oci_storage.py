"""Links from a workload in a cluster to a bucket on Oracle Cloud: its key is used, as S3's own client signs with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.oci.bucket import OciBucket
from fractal_cloud.offers.oci.link_storage import EMAIL
from fractal_sandbox import Sandbox
from tests.linking.beside_a_cluster import BesideACluster, beside_a_cluster, may
from tests.linking.two_clouds import workload
from tests.offers.oci.person import OciPerson
from tests.offers.oci.rights import printed_rights

LS = "ls-shop"
TENANCY = {"compartmentId": "ocid1.tenancy.oc1..sandbox"}
TEAM = {"compartmentId": "ocid1.compartment.oc1..sandboxteam"}


def bucket(component_id: str, name: str = "", **parameters: Any) -> dict[str, Any]:
    values = {"name": name or component_id, "compartment": "team", "region": "eu-frankfurt-1", **parameters}
    return {"id": component_id, "type": OciBucket.type, "parameters": values}


def link(**settings: Any) -> dict[str, Any]:
    return {"target": "files", "settings": settings}


class Oci(BesideACluster):
    """One agent for a tenancy and a cluster."""

    providers = ("oci", "kubernetes")
    cloud_name = "oci"
    is_atomic = True

    @classmethod
    def rights(cls, sandbox: Sandbox) -> AbstractContextManager[None]:
        """As they are printed."""
        return printed_rights(sandbox)

    def __init__(self, sandbox: Sandbox, folder: Path, *args: Any, **settings: Any) -> None:
        self.oci = OciPerson(sandbox.url, folder)
        super().__init__(sandbox, folder, *args, **settings)

    def listed(self, what: str) -> list[dict[str, Any]]:
        """The users, groups or policies there are."""
        found: list[dict[str, Any]] = self.oci.call("GET", f"/20160918/{what}", **_place(what))
        return found


def _place(what: str) -> dict[str, str]:
    return TEAM if what == "policies" else TENANCY


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[Oci]:
    with beside_a_cluster(session_sandbox, tmp_path, Oci) as made:
        yield made


def deploy(world: Oci, *links: dict[str, Any]) -> None:
    world.deploy(LS, bucket("files", "shop-files"), bucket("others", "other-files"), workload("shop", *links))
    world.come_to_rest()


@pytest.mark.rule("L3", "L8", "L9", "L10", "L17")
def test_the_key_opens_that_bucket_alone_until_the_link_is_taken_away(world: Oci) -> None:
    deploy(world, link())
    (secret,) = world.secrets()
    s3 = world.s3(LS, secret)
    s3.put_object(Bucket="shop-files", Key="a/b c.txt", Body=b"hello")
    assert s3.get_object(Bucket="shop-files", Key="a/b c.txt")["Body"].read() == b"hello"
    assert [one["Key"] for one in s3.list_objects_v2(Bucket="shop-files")["Contents"]] == ["a/b c.txt"]
    s3.delete_object(Bucket="shop-files", Key="a/b c.txt")
    assert not may(s3.put_object, Bucket="other-files", Key="x", Body=b"")
    assert not may(s3.list_objects_v2, Bucket="other-files")
    forged = world.s3(LS, {**secret, "secretAccessKey": "another"})
    assert not may(forged.list_objects_v2, Bucket="shop-files")

    assert secret["secretAccessKey"] not in world.api.get(f"/livesystems/{LS}").text
    for what in ("users", "groups", "policies"):
        (made,) = world.listed(what)
        assert made["freeformTags"] == {"fractal-cloud-link": "ls-shop/files<ls-shop/shop"}

    deploy(world)
    assert not may(s3.list_objects_v2, Bucket="shop-files")
    assert [world.listed(what) for what in ("users", "groups", "policies")] == [[], [], []]
    assert world.secrets() == []
    world.assert_safe()


@pytest.mark.rule("L5", "L10")
def test_access_is_narrowed_with_the_same_key(world: Oci) -> None:
    deploy(world, link())
    (secret,) = world.secrets()
    s3 = world.s3(LS, secret)
    s3.put_object(Bucket="shop-files", Key="x", Body=b"1")
    deploy(world, link(access="read-only"))
    assert world.secrets() == [secret]
    assert s3.get_object(Bucket="shop-files", Key="x")["Body"].read() == b"1"
    assert not may(s3.put_object, Bucket="shop-files", Key="x", Body=b"2")
    assert not may(s3.delete_object, Bucket="shop-files", Key="x")


@pytest.mark.rule("L14")
@pytest.mark.parametrize("lost", ["policy", "rights", "key", "membership"])
def test_what_a_person_took_away_comes_back(world: Oci, lost: str) -> None:
    deploy(world, link())
    (before,) = world.secrets()
    (user,), (rights,) = world.listed("users"), world.listed("policies")
    if lost == "policy":
        world.oci.call("DELETE", f"/20160918/policies/{rights['id']}")
    elif lost == "rights":
        fewer = {"statements": rights["statements"][:1]}
        world.oci.call("PUT", f"/20160918/policies/{rights['id']}", fewer)
    elif lost == "key":
        world.oci.call("DELETE", f"/20160918/users/{user['id']}/customerSecretKeys/{before['accessKeyId']}")
    else:
        (member,) = world.oci.call("GET", "/20160918/userGroupMemberships", **TENANCY, userId=user["id"])
        world.oci.call("DELETE", f"/20160918/userGroupMemberships/{member['id']}")
    assert not may(world.s3(LS, before).put_object, Bucket="shop-files", Key="x", Body=b"1")
    world.cycle()
    world.come_to_rest()
    (after,) = world.secrets()
    world.s3(LS, after).put_object(Bucket="shop-files", Key="x", Body=b"1")
    assert (after == before) is (lost != "key"), "a key that is still there is kept"


@pytest.mark.rule("L14", "S20")
def test_a_settled_cycle_asks_for_three_lists_and_writes_nothing(world: Oci) -> None:
    deploy(world, link())
    world.cycle(2)
    world.cloud.calls.clear()
    (result, *_) = world.cycle()
    assert (result.writes, result.changes) == (0, 0)
    asked = [call.operation for call in world.cloud.calls.find("identity", actor="agent")]
    assert {"listUsers", "listGroups", "listPolicies"} <= set(asked)
    assert not [one for one in asked if not one.startswith("list")], asked


@pytest.mark.rule("L17")
def test_a_user_of_that_name_that_the_link_did_not_make_is_left_alone(world: Oci) -> None:
    deploy(world, link())
    (user,) = world.listed("users")
    deploy(world)
    theirs = {**TENANCY, "name": user["name"], "description": "somebody's", "freeformTags": {"team": "a"}}
    world.oci.call("POST", "/20160918/users", theirs)
    world.deploy(LS, bucket("files", "shop-files"), workload("shop", link()))
    world.cycle(3)
    assert "was not made by this link" in world.component(LS, "files")["message"]
    (found,) = world.listed("users")
    assert found["freeformTags"] == {"team": "a"}
    assert world.oci.call("GET", f"/20160918/users/{found['id']}/customerSecretKeys") == []


@pytest.mark.rule("L9")
def test_buckets_that_policies_cannot_distinguish_are_not_linked(world: Oci) -> None:
    world.deploy(LS, bucket("files", "shop-files"), bucket("twin", "Shop-Files"), workload("shop", link()))
    world.cycle(4)
    assert "differs from 'Shop-Files' in case only" in world.component(LS, "files")["message"]
    assert world.listed("policies") == []


@pytest.mark.rule("L5")
def test_a_tenancy_that_asks_for_addresses_is_given_one(world: Oci, monkeypatch: pytest.MonkeyPatch) -> None:
    world.cloud.domain.needs_email = True
    world.deploy(LS, bucket("files", "shop-files"), workload("shop", link()))
    world.cycle(3)
    assert f"set {EMAIL}=" in world.component(LS, "files")["message"]
    monkeypatch.setenv(EMAIL, "links@example.com")
    world.deploy(LS, bucket("files", "shop-files"), workload("shop", link(access="read-only")))
    world.come_to_rest()
    (user,) = world.listed("users")
    assert user["email"] == f"links+{user['name']}@example.com"
