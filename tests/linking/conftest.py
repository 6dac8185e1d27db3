"""A real PostgreSQL behind the sandbox's managed databases, in which nobody gets in without a password."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.real_postgres import REAL_POSTGRES
from tests import aws_rights, postgres
from tests.linking.two_clouds import TwoClouds, two_clouds
from tests.world import World

MISSING = "no PostgreSQL server on this machine: install Debian's postgresql"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a server, with its user's password in it."""
    if postgres.binaries() is None:
        pytest.skip(MISSING)
    with postgres.server(password="of-the-master-user") as url:
        yield url.replace("postgresql+psycopg", "postgresql")


@pytest.fixture
def database(postgres_server: str) -> Iterator[str]:
    """The same server with two empty databases, `orders` and `invoices`, and no roles of links; behind RDS."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for name in ("orders", "invoices"):
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {name}")
        for (role,) in connection.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE 'fc\\_%'").fetchall():
            connection.execute(f"DROP ROLE {role}")
    REAL_POSTGRES.set(postgres_server)
    yield postgres_server
    REAL_POSTGRES.set(None)


@pytest.fixture
def clouds(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[TwoClouds]:
    """The whole product with an agent for AWS and one for Kubernetes, and nothing in either cloud."""
    with two_clouds(session_sandbox, tmp_path, TwoClouds) as made:
        yield made


@pytest.fixture
def world(world: World, session_sandbox: Sandbox) -> World:
    """The whole product over AWS, with an agent that may also make what links need."""
    aws_rights.limit(session_sandbox, with_links=True)
    return world
