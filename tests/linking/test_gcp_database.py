"""A link from a workload in a cluster to a database on Google Cloud."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fractal_cloud.offers.database_roles import dsn_setting
from fractal_cloud.offers.gcp.postgres import GcpPostgresDbms
from fractal_cloud.offers.kubernetes import cloud as kubernetes
from fractal_cloud.sandbox import Sandbox
from tests.linking.two_clouds import SECRETS, workload
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.worlds import ProviderWorld, provider_world

LS = "ls-a"
DATABASE = {
    "id": "db",
    "type": GcpPostgresDbms.type,
    "parameters": {"region": "europe-west1", "databaseVersion": "POSTGRES_16", "tier": "db-custom-1-3840"},
}
LINK = {"target": "db", "settings": {"database": "orders"}}


class Both(ProviderWorld):
    """One agent for a project and a cluster."""

    providers = ("gcp", "kubernetes")
    cloud_name = "gcp"


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Both]:
    session_sandbox.kubernetes.reset()
    monkeypatch.setenv(kubernetes.WATCH, "0")
    with provider_world(session_sandbox, tmp_path, Both) as made:
        yield made


def secrets(world: Both, folder: Path) -> list[dict[str, Any]]:
    person = KubernetesPerson(world.sandbox.url, folder)
    found: list[dict[str, Any]] = person.call("GET", f"{SECRETS}?labelSelector=fractal.cloud/link")["items"]
    return found


def come_to_rest(world: Both, at_most: int = 30) -> None:
    """Cycles until one has nothing to say to anybody: two halves of a link take turns."""
    for _ in range(at_most):
        if all(result.settled and not result.writes and not result.changes for result in world.cycle()):
            return
    raise AssertionError("the link does not come to rest")


@pytest.mark.rule("L3", "L8", "L9", "L10")
def test_a_workload_logs_in_with_a_role_of_its_own_until_the_link_is_taken_away(
    world: Both, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(dsn_setting(LS, "db"), database)
    world.deploy(LS, DATABASE, workload("shop", LINK))
    come_to_rest(world)
    (secret,) = secrets(world, tmp_path)
    kept = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    psycopg.connect(kept["url"]).close()
    assert kept["password"] not in world.api.get(f"/livesystems/{LS}").text

    world.deploy(LS, DATABASE, workload("shop"))
    come_to_rest(world)
    assert secrets(world, tmp_path) == []
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(kept["url"])
    world.assert_safe()


@pytest.mark.rule("L5", "L9")
def test_without_a_way_in_the_link_waits_and_says_which_setting_is_missing(world: Both) -> None:
    world.deploy(LS, DATABASE, workload("shop", LINK))
    world.cycle(3)
    shown = world.component(LS, "db")
    assert dsn_setting(LS, "db") in shown["message"], shown
    assert shown["status"] == "Active"
