"""Worlds and sessions over the sandbox's Azure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.cloud import AzureSession
from fractal_sandbox import Sandbox, agent_env
from tests.offers.azure.person import AzurePerson
from tests.offers.azure.worlds import AzureWorld
from tests.offers.worlds import provider_world


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[AzureWorld]:
    """The whole product in one process, with an empty subscription and an empty database."""
    with provider_world(session_sandbox, tmp_path, AzureWorld) as made:
        yield made


@pytest.fixture
def sandbox(session_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """An empty subscription, and the agent's credentials in the environment."""
    session_sandbox.azure.reset()
    for name, value in agent_env(session_sandbox.url).items():
        monkeypatch.setenv(name, value)
    return session_sandbox


@pytest.fixture
def person(sandbox: Sandbox) -> AzurePerson:
    """Somebody at the subscription."""
    return AzurePerson(sandbox.url)


@pytest.fixture
def session(sandbox: Sandbox) -> AzureSession:
    """A session with the agent's credentials."""
    return AzureSession()


@pytest.fixture
def cloud(session: AzureSession) -> Azure:
    """The group that is there from the start."""
    return session.at(Scope("azure", session.realms()[""], "sandbox"))
