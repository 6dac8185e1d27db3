"""Worlds and sessions over the sandbox's clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.cloud import KubernetesSession
from fractal_sandbox import Sandbox, agent_env
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    """The whole product in one process, with two empty clusters and an empty database."""
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as made:
        yield made


@pytest.fixture
def clusters(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """Two empty clusters, and the agent's kubeconfig in the environment."""
    session_sandbox.kubernetes.reset()
    session_sandbox.kubernetes_2.reset()
    for name, value in agent_env(session_sandbox.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    return session_sandbox


@pytest.fixture
def person(clusters: Sandbox, tmp_path: Path) -> KubernetesPerson:
    """Somebody at the first cluster."""
    return KubernetesPerson(clusters.url, tmp_path)


@pytest.fixture
def session(clusters: Sandbox) -> KubernetesSession:
    """A session with the agent's credentials."""
    return KubernetesSession()


@pytest.fixture
def cloud(session: KubernetesSession) -> Kubernetes:
    """The namespace ``default`` of the first cluster."""
    return session.at(Scope("kubernetes", session.realms()[""], "default"))
