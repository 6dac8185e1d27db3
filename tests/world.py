"""The whole product in one process, for tests: sandbox cloud, control plane, agent, and people with their own keys.

Nothing here is a double: the control plane is the real application on a real SQLite file, the agent is the real agent,
and it meets the sandbox over HTTP. Only time is short: a cycle is a fraction of a second.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.cycle import CycleResult
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.offers.aws.cloud import AwsSession
from fractal_cloud.testing.in_process import InProcessClient
from fractal_cloud.testing.tokens import agent_token
from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.aws import PERSON_ACCESS_KEY, SECRET_KEY
from tests import aws_rights, library_caches
from tests.live_systems import LiveSystems

ADMIN_TOKEN = "test-admin-token"
CYCLE = 0.05
REGION = "eu-west-1"

Declaration = dict[str, Any]


@dataclass
class Person:
    """Somebody with a console of their own: plain boto3, another access key than the agent's."""

    url: str
    region: str = REGION

    def client(self, service: str) -> Any:
        """A boto3 client for one service."""
        return library_caches.client(service, self.region, self.url, PERSON_ACCESS_KEY, SECRET_KEY)

    @property
    def ec2(self) -> Any:
        """The service most things are in."""
        return self.client("ec2")

    def tags(self, resource_id: str) -> dict[str, str]:
        """All tags of an EC2 resource."""
        found = self.ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [resource_id]}])["Tags"]
        return {tag["Key"]: tag["Value"] for tag in found}

    def tag(self, resource_id: str, **tags: str) -> None:
        """Put tags on an EC2 resource; underscores stand for dashes."""
        pairs = [{"Key": key.replace("_", "-"), "Value": value} for key, value in tags.items()]
        self.ec2.create_tags(Resources=[resource_id], Tags=pairs)

    def untag(self, resource_id: str, *keys: str) -> None:
        """Remove tags from an EC2 resource, whatever their value."""
        self.ec2.delete_tags(Resources=[resource_id], Tags=[{"Key": key} for key in keys])

    def break_glass(self, resource_id: str) -> None:
        """What an engineer does at 3 a.m."""
        self.untag(resource_id, "managed-by")

    def hand_back(self, resource_id: str) -> None:
        """The two-tag handshake."""
        self.ec2.create_tags(
            Resources=[resource_id],
            Tags=[{"Key": "managed-by", "Value": "fractal-cloud"}, {"Key": "fractal-cloud", "Value": "reconcile"}],
        )


class AnyOf:
    """The way to several control planes on one database: each request goes through any of them."""

    def __init__(self, planes: Sequence[InProcessClient], dice: random.Random) -> None:
        self._ways = [plane._transport for plane in planes]
        self._dice = dice

    def handle_request(self, request: Any) -> Any:
        """Let one of them answer."""
        return self._dice.choice(self._ways).handle_request(request)

    def close(self) -> None:
        """The planes are closed by whoever opened them."""


class World(LiveSystems):
    """One sandbox, one control plane, one agent at a time; ``providers`` are those the agent serves.

    ``shared``: the address of a database on which several control planes run, ``dice`` choosing among them. Without
    one there is a single plane, on a file of the world's folder.
    """

    api: InProcessClient
    providers: tuple[str, ...] = ("aws",)

    def __init__(
        self, sandbox: Sandbox, folder: Path, cycle_seconds: float = CYCLE, shared: str = "", **agent: Any
    ) -> None:
        self.sandbox = sandbox
        self.cycle_seconds = cycle_seconds
        self.shared = shared
        self.dice = random.Random(0)
        self._folder = folder
        self._agent_settings: dict[str, Any] = {"visibility_seconds": 3 * cycle_seconds, **agent}
        self.person = Person(sandbox.url)
        self._tokens: dict[Path, str] = {}
        self.open_control_plane()

    @property
    def cloud(self) -> Any:
        """The sandbox's cloud whose monitor and knobs are meant."""
        return self.sandbox.aws

    # --- the processes

    def open_control_plane(self, name: str = "control.db") -> None:
        """Start a control plane on a database file of the world's folder."""
        self._database = self._folder / name
        self._settings = ControlSettings(
            database_url=self.shared or library_caches.database(self._database),
            admin_token=ADMIN_TOKEN,
            cycle_seconds=self.cycle_seconds,
        )
        self._serve()
        self.agent_token = self._token_of_agents()
        self.start_agent()

    def _token_of_agents(self) -> str:
        """The agents' token at this control plane; one that was opened before still has theirs."""
        kept = self._tokens.get(self._database)
        if kept is None or not self.api.get("/tokens").json()["items"]:
            kept = self._tokens[self._database] = agent_token(self.api)
        return kept

    def _serve(self) -> None:
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        apps = [create_app(self._settings) for _ in range(2 if self.shared else 1)]
        self._planes = [InProcessClient(app, headers=headers) for app in apps]
        self.app, self.api = apps[0], self._planes[0]
        for plane in self._planes:
            plane.__enter__()
        if self.shared:
            self.api = InProcessClient(self.app, headers=headers)
            self.api._transport = AnyOf(self._planes, self.dice)  # type: ignore[assignment]

    def _end_serving(self) -> None:
        for plane in self._planes:
            plane.end_calls()
        self.api.end_calls()  # with several planes, it is the one that knows which calls are under way
        for plane in self._planes:
            plane.__exit__(None, None, None)

    def backup(self, name: str = "backup.db") -> None:
        """Copy the database as it is now, beside the running control plane."""
        # Closed at once: whatever closes the last connection to a database deletes its log, by the log's name.
        with closing(sqlite3.connect(self._database)) as here, closing(sqlite3.connect(self._folder / name)) as there:
            here.backup(there)

    def restore(self, name: str = "backup.db") -> None:
        """Stop the control plane, put a backup in the place of its database, and start it; the agent lives on."""
        self._end_serving()
        for left in self._folder.glob(f"{self._database.name}*"):
            left.unlink()
        shutil.copyfile(self._folder / name, self._database)
        self._serve()
        self._plane._client = self.api

    def confirm_tokens(self) -> None:
        """Let the agents' tokens of a restored backup in again, as an admin does (C9)."""
        waiting = [one["id"] for one in self.api.get("/recovery").json()["tokens"]]
        if waiting:
            answer = self.api.post("/recovery/tokens/confirm", json={"tokens": waiting})
            assert answer.status_code == 200, answer.text

    def close(self) -> None:
        """End all of it."""
        self.agent.close()
        self._end_serving()

    def start_agent(self, control: Callable[[ControlPlane], ControlPlane] = lambda plane: plane) -> Agent:
        """A new agent process, with nothing kept of any other; ``control`` may wrap its way to the control plane."""
        settings = AgentSettings(
            providers=self.providers, cycle_seconds=self.cycle_seconds, token=self.agent_token, **self._agent_settings
        )
        self._plane = self.plane()
        self.agent = Agent(settings, control(self._plane))
        return self.agent

    def plane(self) -> ControlPlane:
        """The control plane as the agents see it, with their token."""
        return ControlPlane("http://testserver", self.agent_token, client=self.api)

    def release(self, agent: Agent) -> None:
        """Give all scopes of an agent back, in its place."""
        if agent._registered:  # else it holds nothing, and nobody knows it
            self.plane().release(agent.settings.agent_id)

    def restart_agent(self) -> Agent:
        """The agent died without a word; another one takes its scopes over."""
        self.agent.close()
        self.release(self.agent)
        return self.start_agent()

    # --- what people do

    def deploy(self, live_system: str, *components: Mapping[str, Any], **more: Any) -> str:
        """Deploy a LiveSystem; returns the mutation's id."""
        body = {"id": live_system, "components": list(components), **more}
        response = self.api.put(f"/livesystems/{live_system}", json=body)
        assert response.status_code == 202, response.text
        return str(response.json()["mutationId"])

    def delete(self, live_system: str) -> dict[str, Any]:
        """Delete a LiveSystem; returns the answer."""
        response = self.api.delete(f"/livesystems/{live_system}")
        assert response.status_code == 202, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def force_push(self, live_system: str, component: str) -> Any:
        """Ask for a Force Push of one component; returns the response."""
        return self.api.post(f"/livesystems/{live_system}/components/{component}/force-push")

    def glass(self, live_system: str, component: str, action: str, **more: Any) -> Any:
        """Break the glass (or hand back) through the product; returns the response."""
        path = f"/livesystems/{live_system}/components/{component}/glass"
        return self.api.post(path, json={"action": action, **more})

    def transfer(self, live_system: str, component: str, to: str, **more: Any) -> Any:
        """Ask for another owner of a component's resource; returns the response."""
        return self.api.post(f"/livesystems/{live_system}/components/{component}/transfer", json={"to": to, **more})

    # --- what the agent does

    def cycle(self, times: int = 1) -> list[CycleResult]:
        """One settled cycle after the other: the time between two is a whole cycle."""
        results: list[CycleResult] = []
        for _ in range(times):
            time.sleep(self.cycle_seconds * 1.05)
            results = self.agent.run_once()
        return results

    def settle(self, at_most: int = 12) -> int:
        """Cycles until one does nothing and has nothing left to do; returns how many it took."""
        for count in range(1, at_most + 1):
            results = self.cycle()
            if all(result.settled and not result.writes and not result.changes for result in results):
                return count
        raise AssertionError(f"not settled after {at_most} cycles: {self.agent.run_once()}")

    # --- what can be seen

    def drift(self, live_system: str, component: str) -> dict[str, Any] | None:
        """The drift of one component, or None."""
        drift: dict[str, Any] | None = self.component(live_system, component)["outputFields"].get("drift")
        return drift

    def output(self, live_system: str, component: str, name: str) -> Any:
        """One output field of a component."""
        return self.component(live_system, component)["outputFields"].get(name)

    def events(self, live_system: str) -> list[dict[str, Any]]:
        """The events of a LiveSystem, newest first."""
        body = self.api.get(f"/livesystems/{live_system}/events", params={"limit": 200}).json()
        items: list[dict[str, Any]] = body["items"] if isinstance(body, dict) else body
        return items

    def assert_safe(self) -> None:
        """SAFETY: the monitor saw no write that was forbidden already at the agent's last read (S16)."""
        violations = self.cloud.monitor.violations
        assert not violations, "\n".join(map(str, violations))


@contextmanager
def world(sandbox: Sandbox, folder: Path, monkeypatch: Any, **settings: Any) -> Iterator[World]:
    """A world over a sandbox that was reset, with the agent's credentials in the environment and its printed rights."""
    sandbox.aws.reset()
    aws_rights.limit(sandbox)
    for name, value in agent_env(sandbox.url).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(AwsSession, "__init__", library_caches.connect_once)
    made = World(sandbox, folder, **settings)
    try:
        yield made
    finally:
        made.close()


def vpc(component_id: str = "net", **parameters: Any) -> Declaration:
    """A VPC as people declare it."""
    values = {"region": REGION, "cidrBlock": "10.0.0.0/16", **parameters}
    return {"id": component_id, "type": "NetworkAndCompute.IaaS.AwsVpc", "provider": "aws", "parameters": values}


def subnet(component_id: str = "subnet", vpc: str = "net", **parameters: Any) -> Declaration:
    """A subnet as people declare it."""
    values = {"vpc": vpc, "cidrBlock": "10.0.1.0/24", **parameters}
    return {"id": component_id, "type": "NetworkAndCompute.IaaS.AwsSubnet", "provider": "aws", "parameters": values}


def security_group(component_id: str = "group", vpc: str = "net", **parameters: Any) -> Declaration:
    """A security group as people declare it."""
    values = {"vpc": vpc, **parameters}
    kind = "NetworkAndCompute.IaaS.AwsSecurityGroup"
    return {"id": component_id, "type": kind, "provider": "aws", "parameters": values}
