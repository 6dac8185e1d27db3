"""The product and a third party's database as real processes: a control plane that has not the third party's package,
the database's own server, and two agents, each with a token of its own that opens nothing of the other's.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import httpx2 as httpx

from fractal_cloud.testing.tokens import agent_token
from fractal_sandbox import Sandbox, agent_env
from tests.offers.kubernetes.person import KubernetesPerson
from tests.ports import free_port

ADMIN = "token-of-the-admin"
ACME_AGENT, ACME_PERSON = "of-the-agent", "of-a-person"
SECRETS = "/api/v1/namespaces/default/secrets"
CYCLE = "0.3"
PATIENCE = 40.0
FRACTAL = (sys.executable, "-m", "fractal_cloud.cli")


class Stage:
    """What is running, what people can do to it, and what they see."""

    patience = PATIENCE

    def __init__(self, sandbox: Sandbox, with_package: Mapping[str, str], folder: Path) -> None:
        self.sandbox = sandbox
        self.kube = KubernetesPerson(sandbox.url, folder)
        self.with_package = with_package
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = free_port(), free_port()
        self.url, self.acme_url = (f"http://127.0.0.1:{port}" for port in self._ports)
        self.api = httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {ADMIN}"}, timeout=20.0)

    # --- the processes

    def start(self) -> None:
        """Start all of it; the agents wait for nobody but the control plane."""
        self.start_servers()
        self._start_agent("acme", {"ACMEDB_URL": self.acme_url, "ACMEDB_TOKEN": ACME_AGENT})
        self._start_agent("kubernetes", agent_env(self.sandbox.url, self._folder))
        self.wait_for(lambda: self._serving() == {"acme", "kubernetes"}, "both agents register")

    def start_servers(self) -> None:
        """Start the control plane, and AcmeDB's own server."""
        port, acme_port = map(str, self._ports)
        tokens = ("--token", ACME_AGENT, "--token", ACME_PERSON)
        server = [sys.executable, "-m", "acmedb.server", "--port", acme_port, *tokens]
        self._start("acmedb", server, self.with_package)
        serve = [*FRACTAL, "serve", "--port", port, "--data-dir", str(self._folder / "data")]
        self._start("control plane", serve, {**os.environ, "FRACTAL_TOKEN": ADMIN, "FRACTAL_CYCLE_SECONDS": CYCLE})
        self.wait_for(self._is_ready, "the control plane")

    def _start(self, name: str, command: list[str], env: Mapping[str, str]) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(command, env=dict(env), stdout=log, stderr=subprocess.STDOUT)

    def _start_agent(self, provider: str, credentials: Mapping[str, str]) -> None:
        token = agent_token(self.api, f"{provider}-agent", providers=[provider])
        own = {"FRACTAL_URL": self.url, "FRACTAL_TOKEN": token, "FRACTAL_CYCLE_SECONDS": CYCLE}
        self._start(
            f"{provider} agent",
            [*FRACTAL, "agent", "--provider", provider],
            {**self.with_package, **own, **credentials},
        )

    def _serving(self) -> set[str]:
        return {reach["provider"] for agent in self.api.get("/agents").json()["items"] for reach in agent["reaches"]}

    def _is_ready(self) -> bool:
        try:
            return self.api.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def close(self) -> None:
        """End every process that was started here."""
        self.api.close()
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def wait_for(self, is_so: Callable[[], bool], what: str) -> None:
        """Ask again and again until something is so; nothing here takes long."""
        deadline = time.monotonic() + self.patience
        while not is_so():
            ended = [name for name, process in self._processes.items() if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"{what}: {f'{ended} ended' if ended else 'not in time'}\n{self._logs()}")
            time.sleep(0.05)

    def _logs(self) -> str:
        return "\n".join(f"--- {path.stem}\n{path.read_text()[-3000:]}" for path in self._folder.glob("*.log"))

    # --- what people do

    def fractal(self, *arguments: str) -> str:
        """Run a command of the program, as somebody who has not the package; returns what it printed."""
        env = {**os.environ, "FRACTAL_URL": self.url, "FRACTAL_TOKEN": ADMIN}
        done = subprocess.run([*FRACTAL, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{self._logs()}"
        return done.stdout

    def discover(self) -> str:
        """What somebody who has the package, and a person's credentials, finds at AcmeDB."""
        env = {**self.with_package, "ACMEDB_URL": self.acme_url, "ACMEDB_TOKEN": ACME_PERSON}
        command = [*FRACTAL, "discover", "--provider", "acme", "--output", "yaml"]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout

    def deploy(self, document: Mapping[str, Any]) -> httpx.Response:
        """Send a declaration."""
        return self.api.put(f"/livesystems/{document['id']}", json=document)

    def type_in_shell(self, command: str) -> str:
        """Type a command in a shell that has a person's credentials for AcmeDB."""
        env = {**os.environ, "ACMEDB_URL": self.acme_url, "ACMEDB_TOKEN": ACME_PERSON}
        done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, timeout=20, check=True)
        return done.stdout

    def can_log_in(self, env: Mapping[str, str]) -> bool:
        """Whether AcmeDB lets somebody in who has what the workload has in its environment."""
        body = {name: env[f"ORDERS_{name.upper()}"] for name in ("database", "user", "password")}
        address = f"http://{env['ORDERS_HOST']}:{env['ORDERS_PORT']}/login"
        try:
            with urlopen(Request(address, json.dumps(body).encode(), method="POST"), timeout=10) as answer:
                return bool(answer.status == 200)
        except HTTPError as refusal:
            if refusal.code == 401:
                return False
            raise

    # --- what people see

    def component(self, live_system: str, component: str) -> dict[str, Any]:
        """One component as the API shows it."""
        found: dict[str, Any] = self.api.get(f"/livesystems/{live_system}/components/{component}").json()
        return found

    def wait_for_status(self, live_system: str, component: str, status: str) -> dict[str, Any]:
        """A component, once it has that status."""
        self.wait_for(
            lambda: self.component(live_system, component).get("status") == status, f"{component} becomes {status}"
        )
        return self.component(live_system, component)

    def secrets(self) -> list[dict[str, Any]]:
        """The Secrets that links made."""
        return list(self.kube.call("GET", f"{SECRETS}?labelSelector=fractal.cloud/link")["items"])

    def environment(self, workload: str) -> dict[str, str]:
        """What the workload's container would find in its environment, Secrets opened."""
        kept = {item["metadata"]["name"]: item["data"] for item in self.secrets()}
        item = self.kube.get("deployments", workload)
        assert item is not None
        found = {}
        for entry in item["spec"]["template"]["spec"]["containers"][0].get("env") or []:
            reference = (entry.get("valueFrom") or {}).get("secretKeyRef")
            sealed = kept.get(reference["name"], {}).get(reference["key"], "") if reference else ""
            found[entry["name"]] = base64.b64decode(sealed).decode() if reference else entry["value"]
        return found


@contextmanager
def staged(sandbox: Sandbox, with_package: Mapping[str, str], folder: Path) -> Iterator[Stage]:
    """A stage on which everything runs, and from which everything is gone at the end."""
    made = Stage(sandbox, with_package, folder)
    try:
        made.start()
        yield made
    finally:
        made.close()
