"""A world and a session over the sandbox's vCenter; everything is skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.vsphere.cloud import Vsphere, VsphereSession
from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.vsphere.cloud import VERSION
from fractal_sandbox.vsphere.simulator import why_not
from tests.offers.vsphere.examples import FOLDER
from tests.offers.vsphere.person import VspherePerson
from tests.offers.vsphere.worlds import VsphereWorld, vsphere_world


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[VsphereWorld]:
    """The whole product in one process, with an empty vCenter and an empty database."""
    if why_not():
        pytest.skip(why_not())
    with vsphere_world(session_sandbox, tmp_path) as made:
        yield made


@pytest.fixture
def vcenter(session_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Sandbox:
    """An empty vCenter, of the version that a test may ask for, and the agent's login in the environment."""
    if why_not():
        pytest.skip(why_not())
    session_sandbox.vsphere.version = getattr(request, "param", VERSION)
    session_sandbox.vsphere.reset()
    for name, value in agent_env(session_sandbox.url).items():
        monkeypatch.setenv(name, value)
    return session_sandbox


@pytest.fixture
def person(vcenter: Sandbox) -> VspherePerson:
    """Somebody else at the vCenter."""
    return VspherePerson(vcenter.url)


@pytest.fixture
def cloud(vcenter: Sandbox) -> Vsphere:
    """The folder, with the agent's login."""
    session = VsphereSession()
    return session.at(Scope("vsphere", session.realms()[""], FOLDER))
