"""Worlds and sessions over the sandbox's projects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.offers.gcp.cloud import GcpSession
from fractal_sandbox import Sandbox, agent_env
from tests.offers.gcp.person import GcpPerson
from tests.offers.gcp.suite import GcpWorld
from tests.offers.worlds import provider_world


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[GcpWorld]:
    """The whole product in one process, with empty projects and an empty database."""
    with provider_world(session_sandbox, tmp_path, GcpWorld) as made:
        yield made


@pytest.fixture
def person(world: GcpWorld) -> GcpPerson:
    """Somebody in the first project."""
    return GcpPerson(world.sandbox.url)


@pytest.fixture
def google(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """Empty projects, and the agent's settings in the environment."""
    session_sandbox.gcp.reset()
    for name, value in agent_env(session_sandbox.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    return session_sandbox


@pytest.fixture
def session(google: Sandbox) -> GcpSession:
    """A session with the agent's credentials."""
    return GcpSession()
