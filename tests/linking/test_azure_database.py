"""A link from a workload in a cluster to a database on Azure: the agent comes in with its own token from Entra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from fractal_cloud.offers.azure.postgres import AzurePostgresDbms
from fractal_cloud.offers.database_roles import dsn_setting
from fractal_sandbox import Sandbox
from fractal_sandbox.real_postgres import REAL_POSTGRES
from tests.linking.beside_a_cluster import BesideACluster, beside_a_cluster
from tests.linking.two_clouds import workload
from tests.offers.azure.examples import EXAMPLES
from tests.offers.azure.person import AzurePerson
from tests.offers.azure.rights import printed_rights

LS = "ls-a"
ADMINISTRATOR = "fractal-agent"
LINK = {"target": "db", "settings": {"database": "orders"}}


def server(password_auth: str) -> dict[str, Any]:
    (example,) = EXAMPLES[AzurePostgresDbms].components
    parameters = {**example["parameters"], "name": "fractal-orders", "passwordAuth": password_auth}
    return {**example, "id": "db", "parameters": parameters}


class Azure(BesideACluster):
    """One agent for a subscription and a cluster."""

    providers = ("azure", "kubernetes")
    cloud_name = "azure"

    @classmethod
    def rights(cls, sandbox: Sandbox) -> AbstractContextManager[None]:
        """As they are printed."""
        return printed_rights(sandbox)


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[Azure]:
    with beside_a_cluster(session_sandbox, tmp_path, Azure) as made:
        yield made


def administered_by_the_agent(world: Azure, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the agent's identity an administrator, and give the agent its name; there is no password."""
    identity = str(world.output(LS, "db", "id"))
    body = {"properties": {"principalName": ADMINISTRATOR, "principalType": "ServicePrincipal"}}
    AzurePerson(world.sandbox.url).call("PUT", f"{identity}/administrators/agent", body)
    REAL_POSTGRES.let_in(ADMINISTRATOR, "nobody's yet")
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(f'ALTER DATABASE orders OWNER TO "{ADMINISTRATOR}"')
    parts = urlsplit(database)
    monkeypatch.setenv(dsn_setting(LS, "db"), f"postgresql://{ADMINISTRATOR}@{parts.hostname}:{parts.port}/postgres")


@pytest.mark.rule("L3", "L8", "L9", "L10")
def test_a_workload_logs_in_with_a_role_that_the_agent_made_with_its_token(
    world: Azure, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.deploy(LS, server("Enabled"), workload("shop", LINK))
    world.come_to_rest()
    message = world.component(LS, "db")["message"]
    assert "make the agent's identity its administrator in Entra" in message
    assert dsn_setting(LS, "db") in message
    administered_by_the_agent(world, database, monkeypatch)
    world.deploy(LS, server("Enabled"), workload("shop", {**LINK, "settings": {"database": "orders"}}, replicas=1))
    world.cycle()
    world.come_to_rest()
    world.assert_role_goes_with_the_link(LS, server("Enabled"))


@pytest.mark.rule("L5", "L9")
def test_a_server_that_accepts_only_identities_is_not_linked_and_says_what_to_declare(world: Azure) -> None:
    world.deploy(LS, server("Disabled"), workload("shop", LINK))
    world.cycle(3)
    shown = world.component(LS, "db")
    assert "declare passwordAuth as 'Enabled'" in shown["message"], shown
    assert shown["status"] == "Active"
