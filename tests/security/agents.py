"""Agents that say whatever a test has them say, honest or not, each with a token of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from httpx2 import Response
from starlette.testclient import TestClient

from fractal_cloud.offers.registry import installed
from fractal_cloud.testing.tokens import agent_token, bearer
from tests.api.conftest import VPC
from tests.last_seen import last_seen_json

Json = dict[str, Any]
WORKLOAD = "CustomWorkloads.CaaS.KubernetesWorkload"
EKS = "NetworkAndCompute.PaaS.AwsEks"
KNOWN = {"aws": VPC, "kubernetes": WORKLOAD}
"""The type that agents of a provider know."""


def workload(component_id: str = "web", **parameters: Any) -> Json:
    """A workload in a cluster: the one named, or the one meant where none is."""
    return {"id": component_id, "type": WORKLOAD, "parameters": {"image": "nginx:1.29", **parameters}}


@dataclass
class SomeAgent:
    """One agent: its token, what it says to reach, and what it was given."""

    client: TestClient
    token: str
    id: str
    environment: str = "prod"
    leases: dict[str, Json] = field(default_factory=dict)
    work: dict[str, Json] = field(default_factory=dict)
    hosts: list[Json] = field(default_factory=list)
    plans: list[Json] = field(default_factory=list)

    def post(self, path: str, **body: Any) -> Response:
        """Call a route of the agents."""
        return self.client.post(f"/agent/{path}", json={"agentId": self.id, **body}, headers=bearer(self.token))

    def register(self, *reaches: Json, **more: Any) -> Response:
        """Introduce itself; ``more`` may say another environment, or what it has seen last."""
        known = {reach["provider"]: KNOWN[reach["provider"]] for reach in reaches}
        types = [installed().catalog()[name].to_json() for name in known.values()]
        said = {"environment": self.environment, "reaches": list(reaches), "types": types, "cycleSeconds": 600}
        said |= more
        return self.post("register", **said)

    def enters(self, *reaches: Json, **more: Any) -> SomeAgent:
        """Introduce itself, which must be accepted; what it held before is gone."""
        answer = self.register(*reaches, **more)
        assert answer.status_code == 200, answer.text
        self.leases = {}
        return self

    def claim(self, **more: Any) -> list[str]:
        """Claim all it can get; the scopes it holds afterwards."""
        answer = self.post("claim", lastSeen=last_seen_json(self.client), hosts=-1, **more)
        assert answer.status_code == 200, answer.text
        claimed = answer.json()
        self.leases = {lease["scope"]: lease for lease in claimed["leases"]}
        for lease in claimed["leases"]:
            for part in (lease["work"] or {}).get("components", ()):
                self.work[f"{part['liveSystemId']}/{part['declaration']['id']}"] = {**part, "scope": lease["scope"]}
        self.hosts = (claimed["hosts"] or {}).get("hosts", [])
        self.plans = claimed["plans"]
        return sorted(self.leases)

    def beat(self, **more: Any) -> Response:
        """Say that it lives."""
        held = {key: lease["token"] for key, lease in self.leases.items()}
        return self.post("heartbeat", lastSeen=last_seen_json(self.client), held=held, **more)

    def report(self, full_id: str, **change: Any) -> Response:
        """Report one component of its work as managed and active."""
        part = self.work[full_id]
        lease = self.leases[part["scope"]]
        said = {
            "uid": part["uid"],
            "stance": "managed",
            "status": "Active",
            "owner": part["liveSystemId"],
            "resourceId": "id-1",
            "established": True,
            "observedGeneration": part["generation"],
            **change,
        }
        scope = {"scope": lease["scope"], "token": lease["token"], "version": lease["work"]["version"]}
        return self.post("report", lastSeen=last_seen_json(self.client), scopes=[{**scope, "changes": [said]}])


@dataclass
class Stage:
    """A control plane in which people deploy, and to which agents come."""

    client: TestClient

    def agent(self, name: str, *, at: str = "prod", **bound: Sequence[str]) -> SomeAgent:
        """An agent of an environment with a new token of its name, bound to what is given, else to everything."""
        return SomeAgent(self.client, agent_token(self.client, name, **bound), f"agent-{name}", at)

    def deploy(self, live_system: str, *components: Json, environment: str = "prod") -> Json:
        """Deploy a LiveSystem."""
        body = {"id": live_system, "environment": environment, "components": list(components)}
        answer = self.client.put(f"/livesystems/{live_system}", json=body)
        assert answer.status_code == 202, answer.text
        found: Json = answer.json()
        return found

    def get(self, path: str) -> Json:
        """Read what must be there."""
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def events(self, kind: str) -> list[Json]:
        """The events of a kind, newest first."""
        return [event for event in self.get("/events?limit=1000")["items"] if event["kind"] == kind]

    @property
    def agents(self) -> set[str]:
        """Who has registered."""
        return {agent["id"] for agent in self.get("/agents")["items"]}

    @property
    def realms(self) -> Mapping[str, str]:
        """What every name is bound to."""
        return {bound["id"]: bound["realm"] for bound in self.get("/realms")["items"]}


def aws(realm: str, name: str = "") -> Json:
    """An account that is reached."""
    return {"provider": "aws", "realm": realm, "name": name}


def cluster(realm: str, name: str = "") -> Json:
    """A cluster that is reached by the name of its context."""
    return {"provider": "kubernetes", "realm": realm, "name": name}


def refused(answer: Response, *words: str) -> None:
    """That a registration was refused, with these words in the reason."""
    assert answer.status_code == 403, answer.text
    for word in words:
        assert word in answer.json()["detail"], answer.json()["detail"]
