"""Links from a workload in a cluster to a bucket on Google Cloud: its key is used, as S3's own client signs with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.gcp.bucket import GcpGcsBucket
from fractal_cloud.offers.gcp.link_storage import LINK_PROJECT
from fractal_sandbox import Sandbox
from fractal_sandbox.gcp import OTHER_PROJECT
from tests.linking.beside_a_cluster import beside_a_cluster, may
from tests.linking.test_gcp_database import Gcp
from tests.linking.two_clouds import workload
from tests.offers.gcp.person import GcpPerson

LS = "ls-shop"
ACCOUNTS, KEYS = f"/v1/projects/{OTHER_PROJECT}/serviceAccounts", f"/storage/v1/projects/{OTHER_PROJECT}/hmacKeys"
POLICY = "/storage/v1/b/{}/iam"


def bucket(component_id: str, name: str) -> dict[str, Any]:
    return {"id": component_id, "type": GcpGcsBucket.type, "parameters": {"name": name, "location": "EU"}}


def link(**settings: Any) -> dict[str, Any]:
    return {"target": "files", "settings": settings}


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[Gcp]:
    with beside_a_cluster(session_sandbox, tmp_path, Gcp) as made:
        yield made


@pytest.fixture
def person(world: Gcp) -> GcpPerson:
    return GcpPerson(world.sandbox.url)


def deploy(world: Gcp, *links: dict[str, Any]) -> None:
    parts = (bucket("files", "shop-files-1"), bucket("others", "other-files-1"))
    world.deploy(LS, *parts, workload("shop", *links))
    world.come_to_rest()


@pytest.mark.rule("L3", "L8", "L9", "L10", "L17")
def test_the_key_opens_that_bucket_alone_until_the_link_is_taken_away(world: Gcp, person: GcpPerson) -> None:
    theirs = {"role": "roles/storage.objectUser", "members": ["user:somebody@example.com"]}
    deploy(world)
    person.call("PUT", POLICY.format("shop-files-1"), {"bindings": [theirs]})
    deploy(world, link())
    (secret,) = world.secrets()
    client = world.s3(LS, secret)
    client.put_object(Bucket="shop-files-1", Key="a b", Body=b"hello")
    assert client.get_object(Bucket="shop-files-1", Key="a b")["Body"].read() == b"hello"
    assert not may(client.list_objects_v2, Bucket="other-files-1")
    assert secret["secretAccessKey"] not in world.api.get(f"/livesystems/{LS}").text
    (account,) = person.call("GET", ACCOUNTS)["accounts"]
    assert account["description"] == "ls-shop/files<ls-shop/shop"

    deploy(world, link(access="read-only"))
    assert world.secrets() == [secret]
    assert client.get_object(Bucket="shop-files-1", Key="a b")["Body"].read() == b"hello"
    assert not may(client.delete_object, Bucket="shop-files-1", Key="a b")

    deploy(world)
    assert not may(client.list_objects_v2, Bucket="shop-files-1")
    assert person.call("GET", ACCOUNTS)["accounts"] == person.call("GET", KEYS)["items"] == []
    assert person.call("GET", POLICY.format("shop-files-1"))["bindings"] == [theirs], "nobody else's role is touched"
    assert world.secrets() == []
    world.assert_safe()


@pytest.mark.rule("L14")
def test_what_a_person_took_away_comes_back(world: Gcp, person: GcpPerson) -> None:
    deploy(world, link())
    (before,) = world.secrets()
    person.call("PUT", POLICY.format("shop-files-1"), {"bindings": []})
    assert not may(world.s3(LS, before).list_objects_v2, Bucket="shop-files-1")
    world.come_to_rest()
    world.s3(LS, before).list_objects_v2(Bucket="shop-files-1")

    person.call("PUT", f"{KEYS}/{before['accessKeyId']}", {"state": "INACTIVE"})
    person.call("DELETE", f"{KEYS}/{before['accessKeyId']}")
    world.come_to_rest()
    (after,) = world.secrets()
    assert after["accessKeyId"] != before["accessKeyId"]
    world.s3(LS, after).list_objects_v2(Bucket="shop-files-1")


@pytest.mark.rule("A7", "L14")
def test_a_link_that_moves_to_the_project_of_links_leaves_nothing_open_behind_it(
    world: Gcp, person: GcpPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LINK_PROJECT)
    with world.cloud.restrict_agent(lambda *_: ""):  # what somebody gave it who has not heard of such a project
        deploy(world, link())
    (before,) = world.secrets()
    assert may(world.s3(LS, before).list_objects_v2, Bucket="shop-files-1")

    monkeypatch.setenv(LINK_PROJECT, OTHER_PROJECT)
    world.cycle()
    world.come_to_rest()
    (after,) = world.secrets()
    assert may(world.s3(LS, after).list_objects_v2, Bucket="shop-files-1")
    assert not may(world.s3(LS, before).list_objects_v2, Bucket="shop-files-1")
    (account,) = person.call("GET", ACCOUNTS)["accounts"]
    assert OTHER_PROJECT in account["email"]
    (binding,) = person.call("GET", POLICY.format("shop-files-1"))["bindings"]
    assert binding["members"] == [f"serviceAccount:{account['email']}"]
    world.assert_safe()
