"""Links from what runs on AWS to a PostgreSQL server that somebody runs: the password ends in Secrets Manager."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fractal_cloud.offers.aws.ecs_service import AwsEcsService
from fractal_cloud.offers.database_roles import dsn_setting
from fractal_sandbox import Sandbox
from tests.linking.test_aws_database import connect
from tests.linking.test_aws_rules import LS, link, machine
from tests.linking.test_postgres_server import declared, roles
from tests.linking.two_clouds import TwoClouds, two_clouds
from tests.offers.aws.examples import EXAMPLES


class AwsAndAServer(TwoClouds):
    """AWS, and PostgreSQL servers that somebody runs: an agent for each."""

    sides = ("aws", "postgres")


@pytest.fixture
def clouds(
    session_sandbox: Sandbox, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TwoClouds]:
    monkeypatch.setenv(dsn_setting(LS, "db"), database)
    with two_clouds(session_sandbox, tmp_path, AwsAndAServer) as made:
        yield made


def login(clouds: TwoClouds, source: str) -> dict[str, Any]:
    """The content of the secret whose name the source is given."""
    store, region, name = str(clouds.output(LS, source, "databaseLink.db.secretName")).split(":")
    assert (store, region, name) == ("aws-secrets-manager", "eu-west-1", f"fractal-cloud/{LS}/{source}/uses/db")
    found = clouds.person.client("secretsmanager").get_secret_value(SecretId=name)
    kept: dict[str, Any] = json.loads(found["SecretString"])
    return kept


@pytest.mark.rule("L3", "L4", "L9", "L10", "L14", "L17")
def test_a_machine_and_a_service_log_in_at_a_server_elsewhere(clouds: TwoClouds, database: str) -> None:
    example = EXAMPLES[AwsEcsService]
    example.prepare(clouds.person.client)
    *below, service = example.components
    wanted = link("db", database="orders")

    def deploy(*links: dict[str, Any]) -> None:
        jobs = {**service, "id": "jobs-service", "links": list(links)}
        beside = machine("machine", "web", *links)
        beside["parameters"]["subnet"] = "part-a"
        clouds.deploy(LS, *below, beside, jobs, declared(database))
        clouds.settle(at_most=30)

    deploy(wanted)
    for source in ("machine", "jobs-service"):
        kept = login(clouds, source)
        with connect(kept) as connection:
            connection.execute(f'CREATE TABLE "{source}" (id int)')
        assert kept["password"] not in clouds.api.get(f"/livesystems/{LS}").text
    secrets = clouds.person.client("secretsmanager")
    (tag,) = secrets.describe_secret(SecretId=f"fractal-cloud/{LS}/machine/uses/db")["Tags"]
    assert tag == {"Key": "fractal-cloud-link", "Value": f"{LS}/machine=db"}

    before = login(clouds, "machine")
    secrets.delete_secret(SecretId=f"fractal-cloud/{LS}/machine/uses/db", ForceDeleteWithoutRecovery=True)
    clouds.settle(at_most=20)
    after = login(clouds, "machine")
    assert after["password"] != before["password"], "nobody has the old one any more"
    connect(after).close()

    deploy()
    assert roles(database) == []
    assert secrets.list_secrets()["SecretList"] == []
    with pytest.raises(psycopg.OperationalError):
        connect(after)
    clouds.assert_safe()
