"""A world and a session over the sandbox's project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.hetzner.cloud import Hetzner, HetznerSession
from fractal_sandbox import Sandbox, agent_env
from tests.offers.hetzner.person import HetznerPerson
from tests.offers.hetzner.worlds import HetznerWorld, hetzner_world


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[HetznerWorld]:
    """The whole product in one process, with an empty project and an empty database."""
    with hetzner_world(session_sandbox, tmp_path) as made:
        yield made


@pytest.fixture
def project(session_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """An empty project, and the agent's token in the environment."""
    session_sandbox.hetzner.reset()
    for name, value in agent_env(session_sandbox.url).items():
        monkeypatch.setenv(name, value)
    return session_sandbox


@pytest.fixture
def person(project: Sandbox) -> HetznerPerson:
    """Somebody else in the project."""
    return HetznerPerson(project.url)


@pytest.fixture
def cloud(project: Sandbox) -> Hetzner:
    """The project, with the agent's token."""
    session = HetznerSession()
    return session.at(Scope("hetzner", session.realms()[""], "global"))
