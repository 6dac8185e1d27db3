"""Real access keys and passwords travel sealed: a key of another realm opens none, and a withdrawn one ends them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import botocore.exceptions
import psycopg
import pytest

from fractal_cloud.model.errors import LinkNotReady
from fractal_cloud.offers import link as links
from fractal_cloud.offers.secret import SealingKey, seal
from fractal_cloud.testing.tokens import agent_token
from tests.linking.test_across_clouds import shop
from tests.linking.test_aws_rules import LS, link
from tests.linking.test_aws_storage import BUCKET
from tests.linking.two_clouds import SECRETS, TwoClouds, workload


@contextmanager
def _listening() -> Iterator[list[str]]:
    """Everything that is sealed meanwhile, as it travels."""
    heard: list[str] = []

    def listen(*arguments: Any) -> str:
        heard.append(seal(*arguments))
        return heard[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "seal", listen)
        yield heard


@pytest.mark.rule("A5", "L9")
def test_a_key_of_another_realm_opens_neither_a_key_of_s3_nor_a_password(clouds: TwoClouds, database: str) -> None:
    thief = SealingKey()
    token = agent_token(clouds.api, "stolen", providers=["kubernetes"], realms=["another-cluster"])
    body = {
        "agentId": "thief",
        "environment": "default",
        "reaches": [{"provider": "kubernetes", "realm": "another-cluster", "name": "another"}],
        "cycleSeconds": 60,
        "publicKey": thief.public,
    }
    answer = clouds.api.post("/agent/register", json=body, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text
    with _listening() as heard:
        shop(clouds, link("db", database="orders"), link("files"))
    assert len(heard) == 2
    (honest,) = {clouds.other_agent._sealing.key}
    kept = {one for item in clouds.objects(SECRETS) for one in item["data"].values()}
    assert len(kept) == 4
    for sealed in heard:
        assert honest.open(sealed).reveal()
        with pytest.raises(LinkNotReady):
            thief.open(sealed)


@pytest.mark.rule("A5")
def test_what_was_sealed_to_a_withdrawn_key_opens_neither_the_bucket_nor_the_database(
    clouds: TwoClouds, database: str
) -> None:
    shop(clouds, link("db", database="orders"))
    password = clouds.secret()["url"]
    psycopg.connect(password).close()
    shop(clouds, link("files"))
    before = clouds.secret()
    _put(clouds, before)
    shop(clouds, link("db", database="orders"), link("files"))
    agent = clouds.other_agent
    path = f"/agents/{agent.settings.agent_id}/rotate-key"
    assert clouds.api.post(path, json={"reason": "a laptop was stolen"}).status_code == 200
    clouds.settle(at_most=20)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(password)
    iam = clouds.person.client("iam")
    (user,) = iam.list_users(PathPrefix="/fractal-cloud/")["Users"]
    (key,) = iam.list_access_keys(UserName=user["UserName"])["AccessKeyMetadata"]
    assert key["AccessKeyId"] != before["accessKeyId"]
    assert {event["kind"] for event in clouds.events(LS)} >= {"SecretRevoked", "SecretSealed"}
    clouds.deploy(LS, BUCKET, workload("shop", link("files")))
    clouds.settle(at_most=20)
    _put(clouds, clouds.secret())
    clouds.assert_safe()


def _put(clouds: TwoClouds, kept: dict[str, str]) -> None:
    make: Any = boto3.client
    theirs = make(
        "s3",
        endpoint_url=clouds.sandbox.url,
        region_name="eu-west-1",
        aws_access_key_id=kept["accessKeyId"],
        aws_secret_access_key=kept["secretAccessKey"],
    )
    try:
        theirs.put_object(Bucket="shop-files", Key="a", Body=b"b")
    except botocore.exceptions.ClientError as error:
        raise AssertionError(str(error)) from error
