"""A link from a workload in a cluster to a database on Google Cloud."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from fractal_cloud.offers.database_roles import dsn_setting
from fractal_cloud.offers.gcp.postgres import GcpPostgresDbms
from fractal_sandbox import Sandbox
from tests.linking.beside_a_cluster import BesideACluster, beside_a_cluster
from tests.linking.two_clouds import workload
from tests.offers.gcp.rights import printed_rights

LS = "ls-a"
DATABASE = {
    "id": "db",
    "type": GcpPostgresDbms.type,
    "parameters": {"region": "europe-west1", "databaseVersion": "POSTGRES_16", "tier": "db-custom-1-3840"},
}
LINK = {"target": "db", "settings": {"database": "orders"}}


class Gcp(BesideACluster):
    """One agent for a project and a cluster."""

    providers = ("gcp", "kubernetes")
    cloud_name = "gcp"

    @classmethod
    def rights(cls, sandbox: Sandbox) -> AbstractContextManager[None]:
        """As they are printed."""
        return printed_rights(sandbox)


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[Gcp]:
    with beside_a_cluster(session_sandbox, tmp_path, Gcp) as made:
        yield made


@pytest.mark.rule("L3", "L8", "L9", "L10")
def test_a_workload_logs_in_with_a_role_of_its_own_until_the_link_is_taken_away(
    world: Gcp, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(dsn_setting(LS, "db"), database)
    world.deploy(LS, DATABASE, workload("shop", LINK))
    world.come_to_rest()
    world.assert_role_goes_with_the_link(LS, DATABASE)


@pytest.mark.rule("L5", "L9")
def test_without_a_way_in_the_link_waits_and_says_which_setting_is_missing(world: Gcp) -> None:
    world.deploy(LS, DATABASE, workload("shop", LINK))
    world.cycle(3)
    shown = world.component(LS, "db")
    assert dsn_setting(LS, "db") in shown["message"], shown
    assert shown["status"] == "Active"
