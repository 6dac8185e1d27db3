"""Worlds and sessions over the sandbox's tenancy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.oci.calls import Oci
from fractal_cloud.offers.oci.cloud import OciSession
from fractal_sandbox import Sandbox, agent_env
from tests.offers.oci.examples import REGION
from tests.offers.oci.person import OciPerson
from tests.offers.oci.worlds import OciWorld, alone
from tests.offers.worlds import provider_world


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[OciWorld]:
    """The whole product in one process, with an empty tenancy and an empty database."""
    with provider_world(session_sandbox, tmp_path, OciWorld) as made:
        yield made


@pytest.fixture
def tenancy(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """An empty tenancy, and the agent's key in the environment."""
    session_sandbox.oci.reset()
    alone(monkeypatch)
    for name, value in agent_env(session_sandbox.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    return session_sandbox


@pytest.fixture
def person(tenancy: Sandbox, tmp_path: Path) -> OciPerson:
    """Somebody in the team's compartment."""
    return OciPerson(tenancy.url, tmp_path)


@pytest.fixture
def session(tenancy: Sandbox) -> OciSession:
    """A session with the agent's key."""
    return OciSession()


@pytest.fixture
def cloud(session: OciSession) -> Oci:
    """The team's compartment."""
    return session.at(Scope("oci", session.realms()["team"], REGION))
