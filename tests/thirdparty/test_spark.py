"""A Spark job of a third party uses a bucket on AWS: it says that it can be a source, and nothing of ours changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.offers.registry import Registry
from fractal_sandbox import Sandbox
from tests.linking.test_aws_rules import LS, link
from tests.linking.test_aws_storage import BUCKET
from tests.linking.two_clouds import TwoClouds, two_clouds
from tests.thirdparty import spark


class BesideSpark(TwoClouds):
    """An agent for AWS that has nothing of the third party's, and the third party's own agent."""

    sides = ("aws", "spark")

    def _make(self, settings: AgentSettings, plane: ControlPlane) -> Agent:
        return Agent(settings, plane, Registry([spark]) if settings.providers == ("spark",) else None)


@pytest.fixture
def clouds(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[TwoClouds]:
    """The whole product, and Spark beside AWS."""
    spark.SERVICE.things.clear()
    spark.SERVICE.secrets.clear()
    with two_clouds(session_sandbox, tmp_path, BesideSpark) as made:
        made.cycle()  # the agents register: now the control plane knows what a Spark job is
        yield made


def job(*links: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "nightly",
        "type": spark.SparkJob.type,
        "parameters": {"mainClass": "shop.Nightly"},
        "links": list(links),
    }


def deploy(clouds: TwoClouds, *links: dict[str, Any]) -> str:
    mutation = clouds.deploy(LS, BUCKET, job(*links))
    clouds.settle(at_most=20)
    return mutation


@pytest.mark.rule("L3", "L6", "L9", "L16")
def test_a_job_writes_to_the_bucket_with_what_its_link_brought(clouds: TwoClouds) -> None:
    mutation = deploy(clouds, link("files"))
    conf = spark.SERVICE.named("nightly").actual["sparkConf"]
    base = "spark.hadoop.fs.s3a.bucket.shop-files"
    ((secret, _),) = spark.SERVICE.secrets.values()
    assert secret not in str(conf)
    make: Any = boto3.client
    theirs = make(
        "s3",
        endpoint_url=clouds.sandbox.url,
        region_name="eu-west-1",
        aws_access_key_id=conf[f"{base}.access.key"],
        aws_secret_access_key=secret,
    )
    theirs.put_object(Bucket="shop-files", Key="out", Body=b"rows")
    assert conf[f"{base}.endpoint"] == "https://s3.eu-west-1.amazonaws.com"
    assert clouds.mutation(LS, mutation)["status"] == "Completed"
    assert secret not in clouds.api.get(f"/livesystems/{LS}/components/nightly").text
    assert clouds.settle() == 1


@pytest.mark.rule("L10")
def test_a_link_taken_away_leaves_no_user_no_key_and_no_setting(clouds: TwoClouds) -> None:
    deploy(clouds, link("files", access="read-only"))
    deploy(clouds)
    assert spark.SERVICE.secrets == {}
    assert spark.SERVICE.named("nightly").actual["sparkConf"] == {}
    assert clouds.person.client("iam").list_users(PathPrefix="/fractal-cloud/")["Users"] == []


@pytest.mark.rule("L7")
def test_its_settings_are_checked_by_the_contract_that_its_agent_brought(clouds: TwoClouds) -> None:
    body = {"id": LS, "components": [BUCKET, job(link("files", access="everything"))]}
    answer = clouds.api.put(f"/livesystems/{LS}", json=body)
    assert answer.status_code == 422
    assert "access" in answer.json()["errors"][0]["path"]
