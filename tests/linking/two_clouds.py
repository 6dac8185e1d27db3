"""The whole product over two clouds: an agent for AWS and one for Kubernetes, each with a token of its own that opens
nothing of the other's. They never meet but through the control plane.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.cycle import CycleResult
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.offers.kubernetes import cloud as kubernetes
from fractal_cloud.testing.tokens import agent_token
from fractal_sandbox import Sandbox, agent_env
from tests import aws_rights
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.kubernetes.rights import printed_rights
from tests.world import World

SECRETS = "/api/v1/namespaces/default/secrets"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
MAPPINGS = "/apis/getambassador.io/v3alpha1/namespaces/default/mappings"


W = TypeVar("W", bound="TwoClouds")


class TwoClouds(World):
    """One control plane, two agents, for these providers."""

    sides = ("aws", "kubernetes")

    def __init__(self, sandbox: Sandbox, folder: Path, **settings: Any) -> None:
        self.kube = KubernetesPerson(sandbox.url, folder)
        self._token: dict[str, str] = {}
        super().__init__(sandbox, folder, **settings)

    def start_agent(self, control: Any = None) -> Agent:
        """Both agents anew, with nothing kept of any other."""
        del control
        self.agent, self.other_agent = map(self._start, self.sides)
        return self.agent

    def _start(self, provider: str) -> Agent:
        if provider not in self._token:
            self._token[provider] = agent_token(self.api, f"{provider}-agent", providers=[provider])
        token = self._token[provider]
        options = {**self._agent_settings, "visibility_seconds": 0.2}
        settings = AgentSettings(providers=(provider,), cycle_seconds=self.cycle_seconds, token=token, **options)
        return self._make(settings, ControlPlane("http://testserver", token, client=self.api))

    def _make(self, settings: AgentSettings, plane: ControlPlane) -> Agent:
        return Agent(settings, plane)

    def restart_agents(self) -> None:
        """Both die without a word; their keys die with them."""
        for provider, agent in zip(self.sides, (self.agent, self.other_agent), strict=True):
            agent.close()
            ControlPlane("http://testserver", self._token[provider], client=self.api).release(agent.settings.agent_id)
        self.start_agent()

    def close(self) -> None:
        """End all of it."""
        self.other_agent.close()
        super().close()

    def cycle(self, times: int = 1) -> list[CycleResult]:
        """One cycle of either agent after the other."""
        results: list[CycleResult] = []
        for _ in range(times):
            results = [*super().cycle(), *self.other_agent.run_once()]
        return results

    # --- what people see in the cluster

    def objects(self, path: str) -> list[dict[str, Any]]:
        """All objects of a kind in the namespace that links made."""
        found = self.kube.call("GET", f"{path}?labelSelector=fractal.cloud/link")["items"]
        return list(found)

    def secret(self) -> dict[str, str]:
        """The one Secret that links made, opened."""
        (found,) = self.objects(SECRETS)
        return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}

    def env(self, workload: str) -> dict[str, Any]:
        """The environment of a workload's container, by name."""
        found = self.kube.get("deployments", workload)
        assert found is not None
        return {one["name"]: one for one in found["spec"]["template"]["spec"]["containers"][0].get("env") or []}

    def assert_safe(self) -> None:
        """SAFETY on both clouds."""
        super().assert_safe()
        monitor = self.sandbox.kubernetes.monitor
        assert not monitor.violations, "\n".join(map(str, monitor.violations))
        assert not monitor.lost_races, "\n".join(map(str, monitor.lost_races))


class BesideAServer(TwoClouds):
    """A cluster, and PostgreSQL servers that somebody runs."""

    sides = ("postgres", "kubernetes")


@contextmanager
def two_clouds(sandbox: Sandbox, folder: Path, made_of: type[W], **settings: Any) -> Iterator[W]:
    """A world over clouds that were reset, with the agents' credentials in the environment."""
    sandbox.aws.reset()
    aws_rights.limit(sandbox, with_links=True)
    sandbox.kubernetes.reset()
    with pytest.MonkeyPatch.context() as patch, printed_rights(sandbox):
        for name, value in agent_env(sandbox.url, folder).items():
            patch.setenv(name, value)
        patch.setenv(kubernetes.WATCH, "0")
        made = made_of(sandbox, folder, **settings)
        try:
            yield made
        finally:
            made.close()


def workload(component_id: str, *links: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    """A workload as people declare it."""
    kind = "CustomWorkloads.CaaS.KubernetesWorkload"
    return {
        "id": component_id,
        "type": kind,
        "parameters": {"image": "nginx:1.29", "containerPort": 8080, **parameters},
        "links": list(links),
    }
