"""A control plane in-process, with the types that are installed here, and an agent that says what the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from fractal_cloud.control.app import create_app
from fractal_cloud.control.notifying.sender import Sender
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.testing.tokens import agent_token, bearer
from tests.last_seen import last_seen_json

Json = dict[str, Any]
TOKEN = "the-admin-token"
VPC = "NetworkAndCompute.IaaS.AwsVpc"
SUBNET = "NetworkAndCompute.IaaS.AwsSubnet"
BUCKET = "Storage.PaaS.AwsS3"


@pytest.fixture(autouse=True)
def _nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep notifications in their queue: the receivers that these tests name are not on this machine."""

    async def wait_for_ever(_: Sender) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Sender, "run_forever", wait_for_ever)


def vpc(component_id: str = "net", **more: Any) -> Json:
    """A VPC as people declare it."""
    parameters = {"region": "eu-west-1", "cidrBlock": "10.0.0.0/16", **more.pop("parameters", {})}
    return {"id": component_id, "type": VPC, "parameters": parameters, **more}


def subnet(component_id: str = "sub", of: str = "net") -> Json:
    """A subnet as people declare it."""
    return {"id": component_id, "type": SUBNET, "parameters": {"cidrBlock": "10.0.1.0/24", "vpc": of}}


@dataclass
class Api:
    """The API as an operator and as an agent use it; ``token``: the agent's, which is bound to everything."""

    client: TestClient
    token: str = ""
    scopes: dict[str, Json] = field(default_factory=dict)
    work: dict[tuple[str, str], Json] = field(default_factory=dict)
    wake: int = 0

    def put(self, live_system_id: str, *parts: Json, **more: Any) -> Response:
        """Deploy."""
        headers = more.pop("headers", {})
        body = {"id": live_system_id, "components": list(parts), **more}
        return self.client.put(f"/livesystems/{live_system_id}", json=body, headers=headers)

    def get(self, path: str, **more: Any) -> Json:
        """Read what must be there."""
        answer = self.client.get(path, **more)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def register(self, agent_id: str = "a1", cycle: float = 60.0, environment: str = "default", key: str = "") -> None:
        """Introduce an agent that reaches AWS."""
        reach = {"provider": "aws", "realm": "123456789012"}
        body = {"agentId": agent_id, "environment": environment, "reaches": [reach], "cycleSeconds": cycle}
        body["publicKey"] = key
        registered = self.as_agent("register", body)
        assert registered.status_code == 200, registered.text

    def as_agent(self, path: str, body: Json) -> Response:
        """Call a route of the agents with their token."""
        self.token = self.token or agent_token(self.client)
        return self.client.post(f"/agent/{path}", json=body, headers=bearer(self.token))

    def claim(self, agent_id: str = "a1") -> Json:
        """Claim everything, and take in the work."""
        answer = self.as_agent("claim", {"agentId": agent_id, "lastSeen": last_seen_json(self.client)})
        assert answer.status_code == 200, answer.text
        claimed: Json = answer.json()
        self.wake = claimed["wake"]
        for lease in claimed["leases"]:
            self.scopes[lease["scope"]] = lease
            for part in lease["work"]["components"]:
                self.work[part["liveSystemId"], part["declaration"]["id"]] = {**part, "scope": lease["scope"]}
        return claimed

    def report(self, live_system_id: str, component_id: str, **change: Any) -> Response:
        """Report one change; by default the component is managed and active."""
        part = self.work[live_system_id, component_id]
        values = {
            "uid": part["uid"],
            "stance": "managed",
            "status": "Active",
            "owner": live_system_id,
            "resourceId": f"id-{component_id}",
            "established": True,
            "observedGeneration": part["generation"],
        }
        resources = change.pop("resources", [])
        lease = self.scopes[part["scope"]]
        scope = {
            "scope": lease["scope"],
            "token": lease["token"],
            "version": lease["work"]["version"],
            "changes": [{**values, **change}],
            "resources": resources,
        }
        sent = {"agentId": "a1", "lastSeen": last_seen_json(self.client), "scopes": [scope]}
        return self.as_agent("report", sent)

    def settle(self, *ids: tuple[str, str]) -> None:
        """Register, claim, and report these components as active."""
        self.register()
        self.claim()
        for live_system_id, component_id in ids:
            assert self.report(live_system_id, component_id).status_code == 200


def make_client(folder: Path, **more: Any) -> TestClient:
    """A client of a new control plane whose data lies in a folder."""
    settings = ControlSettings(data_dir=folder, admin_token=TOKEN, cycle_seconds=60.0)
    return TestClient(create_app(settings), headers={"Authorization": f"Bearer {TOKEN}"}, **more)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    """A control plane that nobody has used yet."""
    with make_client(tmp_path) as client:
        yield Api(client)
