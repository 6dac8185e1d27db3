"""A store on every database there is: SQLite always, PostgreSQL where its server is installed or its address given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.control.store import open_store, summaries
from tests import postgres
from tests.store.playing import CATALOG, Clock, World

GIVEN = os.environ.get("FRACTAL_TEST_POSTGRES_URL", "")
MISSING = "no PostgreSQL server: install Debian's postgresql, or name one in FRACTAL_TEST_POSTGRES_URL"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a server on which databases may be made: the one given, or one of this session's own."""
    if GIVEN:
        yield GIVEN
        return
    with postgres.server() as url:
        yield url


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param(
            "postgresql",
            marks=[
                pytest.mark.postgres,
                pytest.mark.skipif(not GIVEN and postgres.binaries() is None, reason=MISSING),
            ],
        ),
    ]
)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    with postgres.database(request.getfixturevalue("postgres_url")) as url:
        yield url


@pytest.fixture(
    params=[
        pytest.param(
            "postgresql",
            marks=[
                pytest.mark.postgres,
                pytest.mark.skipif(not GIVEN and postgres.binaries() is None, reason=MISSING),
            ],
        )
    ]
)
def postgres_database(postgres_url: str) -> Iterator[str]:
    """The address of an empty PostgreSQL database, for what SQLite does not have."""
    with postgres.database(postgres_url) as url:
        yield url


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """An empty store with a clock that stands."""
    clock = Clock()
    store = open_store(database_url, types_here=CATALOG, clock=clock)
    yield World(store, clock)
    with store.read() as tx:
        assert summaries.differences(tx.connection) == [], (
            "what is kept of LiveSystems is not what their components say"
        )
    store.close()
