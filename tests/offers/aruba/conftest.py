"""Worlds over the sandbox's Aruba Cloud."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from tests.offers.aruba.worlds import ArubaWorld
from tests.offers.worlds import provider_world


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[ArubaWorld]:
    """The whole product in one process, with empty projects and an empty database."""
    with provider_world(session_sandbox, tmp_path, ArubaWorld) as made:
        yield made


@pytest.fixture
def plain_world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArubaWorld]:
    """The same, with a person in the project whose tags may hold no colon, and an agent that knows."""
    monkeypatch.setenv("FRACTAL_ARUBA_TAG_STYLE", "plain")
    with provider_world(session_sandbox, tmp_path, ArubaWorld, project="strict") as made:
        yield made
