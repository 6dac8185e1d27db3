"""Links from a workload in a cluster to a bucket on Google Cloud: its key is used, as S3's own client signs with it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from fractal_cloud.offers.gcp.bucket import GcpGcsBucket
from fractal_cloud.offers.kubernetes import cloud as kubernetes
from fractal_cloud.sandbox import Sandbox
from fractal_cloud.sandbox.gcp import PROJECT
from tests.linking.test_gcp_database import Both, come_to_rest, secrets
from tests.linking.test_oci_storage import may
from tests.linking.two_clouds import workload
from tests.offers.gcp.person import GcpPerson
from tests.offers.worlds import provider_world

LS = "ls-shop"
ACCOUNTS, KEYS = f"/v1/projects/{PROJECT}/serviceAccounts", f"/storage/v1/projects/{PROJECT}/hmacKeys"
POLICY = "/storage/v1/b/{}/iam"


def bucket(component_id: str, name: str) -> dict[str, Any]:
    return {"id": component_id, "type": GcpGcsBucket.type, "parameters": {"name": name, "location": "EU"}}


def link(**settings: Any) -> dict[str, Any]:
    return {"target": "files", "settings": settings}


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Both]:
    session_sandbox.kubernetes.reset()
    monkeypatch.setenv(kubernetes.WATCH, "0")
    with provider_world(session_sandbox, tmp_path, Both) as made:
        yield made


@pytest.fixture
def person(world: Both) -> GcpPerson:
    return GcpPerson(world.sandbox.url)


def deploy(world: Both, *links: dict[str, Any]) -> None:
    parts = (bucket("files", "shop-files-1"), bucket("others", "other-files-1"))
    world.deploy(LS, *parts, workload("shop", *links))
    come_to_rest(world)


def kept(world: Both, folder: Path) -> dict[str, str]:
    (secret,) = secrets(world, folder)
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def s3(world: Both, secret: dict[str, str]) -> Any:
    """S3's own client, as the workload is told to use it."""
    told = world.component(LS, "shop")["outputFields"]
    return boto3.client(
        "s3",
        endpoint_url=told["storageLink.files.endpoint"],
        region_name=told["storageLink.files.region"],
        aws_access_key_id=secret["accessKeyId"],
        aws_secret_access_key=secret["secretAccessKey"],
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
    )


@pytest.mark.rule("L3", "L8", "L9", "L10", "L17")
def test_the_key_opens_that_bucket_alone_until_the_link_is_taken_away(
    world: Both, person: GcpPerson, tmp_path: Path
) -> None:
    theirs = {"role": "roles/storage.objectUser", "members": ["user:somebody@example.com"]}
    deploy(world)
    person.call("PUT", POLICY.format("shop-files-1"), {"bindings": [theirs]})
    deploy(world, link())
    secret = kept(world, tmp_path)
    client = s3(world, secret)
    client.put_object(Bucket="shop-files-1", Key="a b", Body=b"hello")
    assert client.get_object(Bucket="shop-files-1", Key="a b")["Body"].read() == b"hello"
    assert not may(client.list_objects_v2, Bucket="other-files-1")
    assert secret["secretAccessKey"] not in world.api.get(f"/livesystems/{LS}").text
    (account,) = person.call("GET", ACCOUNTS)["accounts"]
    assert account["description"] == "ls-shop/files<ls-shop/shop"

    deploy(world, link(access="read-only"))
    assert kept(world, tmp_path) == secret
    assert client.get_object(Bucket="shop-files-1", Key="a b")["Body"].read() == b"hello"
    assert not may(client.delete_object, Bucket="shop-files-1", Key="a b")

    deploy(world)
    assert not may(client.list_objects_v2, Bucket="shop-files-1")
    assert person.call("GET", ACCOUNTS)["accounts"] == person.call("GET", KEYS)["items"] == []
    assert person.call("GET", POLICY.format("shop-files-1"))["bindings"] == [theirs], "nobody else's role is touched"
    assert secrets(world, tmp_path) == []
    world.assert_safe()


@pytest.mark.rule("L14")
def test_what_a_person_took_away_comes_back(world: Both, person: GcpPerson, tmp_path: Path) -> None:
    deploy(world, link())
    before = kept(world, tmp_path)
    person.call("PUT", POLICY.format("shop-files-1"), {"bindings": []})
    assert not may(s3(world, before).list_objects_v2, Bucket="shop-files-1")
    come_to_rest(world)
    s3(world, before).list_objects_v2(Bucket="shop-files-1")

    person.call("PUT", f"{KEYS}/{before['accessKeyId']}", {"state": "INACTIVE"})
    person.call("DELETE", f"{KEYS}/{before['accessKeyId']}")
    come_to_rest(world)
    after = kept(world, tmp_path)
    assert after["accessKeyId"] != before["accessKeyId"]
    s3(world, after).list_objects_v2(Bucket="shop-files-1")
