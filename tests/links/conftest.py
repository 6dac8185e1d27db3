"""A world of two clouds for every test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.links.world import World
from tests.links.world import world as make_world


@pytest.fixture
def links(tmp_path: Path) -> Iterator[World]:
    """Two clouds, two agents, one control plane; nothing deployed yet."""
    with make_world(tmp_path) as made:
        yield made
