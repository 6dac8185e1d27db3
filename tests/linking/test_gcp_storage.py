"""Links from a workload in a cluster to a bucket on Google Cloud: its key is used, as S3's own client signs with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.gcp.bucket import GcpGcsBucket
from fractal_sandbox import Sandbox
from fractal_sandbox.gcp import PROJECT
from tests.linking.beside_a_cluster import beside_a_cluster, may
from tests.linking.test_gcp_database import Gcp
from tests.linking.two_clouds import workload
from tests.offers.gcp.person import GcpPerson

LS = "ls-shop"
ACCOUNTS, KEYS = f"/v1/projects/{PROJECT}/serviceAccounts", f"/storage/v1/projects/{PROJECT}/hmacKeys"
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
