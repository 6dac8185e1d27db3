"""Secrets on other clouds: a variable of a workload, user data, and a password that is never returned (A8)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.cli import logs
from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.offers.registry import Registry
from fractal_cloud.testing.in_process import InProcessClient
from fractal_cloud.testing.tokens import agent_token
from fractal_sandbox import Sandbox
from tests import library_caches
from tests.agent_answers import answered_by_agent
from tests.offers.hetzner.examples import server
from tests.offers.hetzner.worlds import hetzner_world
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world
from tests.secret_references import canaries, vault

pytestmark = [pytest.mark.rule("A8"), pytest.mark.timeout(120)]
FIRST, SECOND, BY_HAND = map(canaries.canary, ("first", "second", "hand"))
REFERENCE = {"$secret": "pin"}
ADMIN_TOKEN = "the-admin-token"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the agent finds secrets; everything else is searched."""
    made = tmp_path / "secrets"
    (made / "ls-a").mkdir(parents=True)
    _keep(made, FIRST)
    return made


@pytest.fixture(autouse=True)
def detailed_logs() -> Iterator[None]:
    """Logs as detailed as they can be."""
    before = structlog.get_config()
    logs.set_up(logging.DEBUG)
    yield
    structlog.configure(**before)


def _keep(folder: Path, value: str) -> None:
    (folder / "ls-a" / "pin").write_text(value)


def _all_texts(world: Any, tmp_path: Path, folder: Path, capfd: pytest.CaptureFixture[str]) -> dict[str, bytes]:
    logged = capfd.readouterr()
    assert "event=cycle" in logged.err
    texts = canaries.pages(world.api, world.app, "web") | canaries.files(tmp_path, folder)
    return texts | {"log": (logged.out + logged.err).encode(), "agent": repr(vars(world.agent)).encode()}


def test_a_variable_of_a_workload_is_in_the_cluster_and_found_nowhere_else(
    session_sandbox: Sandbox, tmp_path: Path, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kind = "CustomWorkloads.CaaS.KubernetesWorkload"
    workload = {"id": "web", "type": kind, "parameters": {"image": "web:1", "env": {"LEVEL": "info", "DB": REFERENCE}}}
    settings: dict[str, Any] = {"secrets_dir": folder, "agent_id": "agent-1", "state_dir": tmp_path / "state"}
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld, **settings) as world:

        def value() -> str:
            found = world.kube.get("deployments", "web")
            assert found is not None
            [one] = [e for e in found["spec"]["template"]["spec"]["containers"][0]["env"] if e["name"] == "DB"]
            return str(one["value"])

        quoted = f"bad variable: {FIRST}"
        world.cloud.knobs.fail(operation="*reate*", code="Invalid", message=quoted, status=422, times=1)
        world.deploy("ls-a", workload)
        world.cycle()
        assert world.component("ls-a", "web")["status"] == "Failed"
        world.deploy("ls-a", workload)
        world.settle()
        assert value() == FIRST, "it is where it belongs"
        world.restart_agent()
        _keep(folder, SECOND)
        world.settle(at_most=30)
        assert value() == SECOND, "a new value is written"
        body = {"id": "ls-a", "components": [workload]}
        plan = answered_by_agent(lambda: world.api.post("/livesystems/ls-a/plan", json=body), world.agent.run_once)
        assert plan.status_code == 200, plan.text
        texts = _all_texts(world, tmp_path, folder, capfd)
        canaries.assert_silent(texts | {"plan": plan.content}, FIRST, SECOND)
        world.assert_safe()


def test_user_data_that_a_cloud_never_returns_is_sent_once_and_found_nowhere_else(
    session_sandbox: Sandbox, tmp_path: Path, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Any] = {"secrets_dir": folder, "agent_id": "agent-1", "state_dir": tmp_path / "state"}
    with hetzner_world(session_sandbox, tmp_path, **settings) as world:
        machine = server("web", userData=REFERENCE)
        quoted = f"invalid input in field 'user_data': {FIRST}"
        refused = world.cloud.knobs.fail(operation="*reate*", code="invalid_input", message=quoted, status=422, times=1)
        world.deploy("ls-a", machine)
        world.cycle()
        assert world.component("ls-a", "web")["status"] == "Failed"
        world.cloud.knobs.remove(refused)
        world.deploy("ls-a", machine)
        world.settle(at_most=30)
        assert world.component("ls-a", "web")["status"] == "Active"
        _keep(folder, SECOND)
        world.settle(at_most=30)
        body = {"id": "ls-a", "components": [machine]}
        plan = answered_by_agent(lambda: world.api.post("/livesystems/ls-a/plan", json=body), world.agent.run_once)
        texts = _all_texts(world, tmp_path, folder, capfd)
        canaries.assert_silent(texts | {"plan": plan.content}, FIRST, SECOND)
        world.assert_safe()


# --- a password that must be a reference, and is never returned


class VaultWorld:
    """A control plane, and an agent of the third party's cloud."""

    def __init__(self, tmp_path: Path, folder: Path) -> None:
        vault.SERVICE.things.clear()
        vault.WRITES.clear()
        self._folders: dict[str, Any] = {"secrets_dir": folder, "state_dir": tmp_path / "state"}
        settings = ControlSettings(
            database_url=library_caches.database(tmp_path / "control.db"), admin_token=ADMIN_TOKEN, cycle_seconds=0.01
        )
        self.app = create_app(settings)
        self.api = InProcessClient(self.app, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        self.api.__enter__()
        self._token = agent_token(self.api, "vault-agent", providers=["vault"])
        self.agent = self._start()

    def _start(self, **more: Any) -> Agent:
        settings = AgentSettings(
            providers=("vault",), cycle_seconds=0.01, token=self._token, agent_id="agent-1", **self._folders, **more
        )
        agent = Agent(settings, ControlPlane("http://testserver", self._token, client=self.api), Registry([vault]))
        agent._register()
        return agent

    def restart_agent(self, state: Path | None = None) -> None:
        """Another process takes its place, with the same state on disk or with another."""
        self.agent.close()
        if state is not None:
            self._folders["state_dir"] = state
        self.agent = self._start()

    def deploy(self, **parameters: Any) -> Any:
        """Deploy a login."""
        login = {"id": "web", "type": vault.VaultLogin.type, "parameters": parameters}
        return self.api.put("/livesystems/ls-a", json={"id": "ls-a", "components": [login]})

    def cycle(self, times: int = 4) -> None:
        """Some cycles."""
        for _ in range(times):
            self.agent.run_once()

    @property
    def password(self) -> str:
        """What the cloud has."""
        return str(vault.SERVICE.named("web").actual["password"])

    def close(self) -> None:
        """End all of it."""
        self.agent.close()
        self.api.__exit__(None, None, None)


@pytest.fixture
def logins(tmp_path: Path, folder: Path) -> Iterator[VaultWorld]:
    """A control plane with logins."""
    made = VaultWorld(tmp_path, folder)
    yield made
    made.close()


def test_a_password_must_be_a_reference_and_is_found_nowhere_else(
    logins: VaultWorld, tmp_path: Path, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    logins.cycle(1)
    refused = logins.deploy(password=BY_HAND)
    assert refused.status_code == 422
    assert 'write {"$secret": "NAME"}' in refused.json()["errors"][0]["message"]
    assert logins.deploy(password=REFERENCE, title="one").status_code == 202
    logins.cycle()
    assert logins.password == FIRST
    assert vault.WRITES == [], "it was given at the creation, and is as it was"
    _keep(folder, SECOND)
    logins.cycle()
    assert logins.password == SECOND
    assert [{"password"}] == vault.WRITES, "exactly what changed was written, once"
    texts = _all_texts(logins, tmp_path, folder, capfd)
    canaries.assert_silent(texts | {"refused": refused.content}, FIRST, SECOND, BY_HAND)


def test_a_restarted_agent_recognises_what_was_written_and_one_without_its_key_writes_it_once_more(
    logins: VaultWorld, tmp_path: Path
) -> None:
    logins.cycle(1)
    assert logins.deploy(password=REFERENCE).status_code == 202
    logins.cycle()
    logins.restart_agent()
    logins.cycle()
    assert vault.WRITES == []
    logins.restart_agent(tmp_path / "another")
    logins.cycle()
    assert [{"password"}] == vault.WRITES
    assert logins.password == FIRST
