"""A control plane of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.conftest import Api, make_client
from tests.security.agents import Stage


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    """A control plane that nobody has used yet, as an admin calls it."""
    with make_client(tmp_path) as client:
        yield Api(client)


@pytest.fixture
def stage(api: Api) -> Stage:
    """The same, with agents that come to it."""
    return Stage(api.client)
