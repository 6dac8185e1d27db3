"""`fractal restored` as the real program, on a real control plane in processes of their own (C9)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.ports import free_port

TOKEN = "the-admins-own"
DECLARED = {
    "id": "ls-a",
    "components": [
        {
            "id": "net",
            "type": "NetworkAndCompute.IaaS.AwsVpc",
            "provider": "aws",
            "parameters": {"region": "eu-west-1", "cidrBlock": "10.0.0.0/16"},
        }
    ],
}


class Program:
    """The program with its data folder and its port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{free_port()}"
        self.env = {
            **os.environ,
            "FRACTAL_TOKEN": TOKEN,
            "FRACTAL_URL": self.url,
            "FRACTAL_PORT": self.url.rpartition(":")[2],
            "FRACTAL_DATA_DIR": str(folder / "data"),
            "NO_PROXY": "127.0.0.1",
            "COLUMNS": "200",
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fractal_cloud.cli", *arguments]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)

    @contextmanager
    def serving(self) -> Iterator[None]:
        command = [sys.executable, "-m", "fractal_cloud.cli", "serve"]
        server = subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._wait(server)
            yield
        finally:
            server.terminate()
            server.wait(30)

    def _wait(self, server: subprocess.Popen[bytes]) -> None:
        while server.poll() is None:
            try:
                if httpx2.get(f"{self.url}/readyz").status_code == 200:
                    return
            except httpx2.TransportError:
                time.sleep(0.1)
        raise AssertionError("the control plane ended by itself")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Speak to the control plane without the program, which takes a while to start."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = httpx2.request(method, f"{self.url}{path}", json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", "/recovery")
        return found


BOUND = {"providers": ["aws"], "environments": ["*"], "realms": ["*"]}


@pytest.mark.rule("C9")
def test_the_command_begins_a_recovery_and_what_waits_is_confirmed_or_deployed_again(tmp_path: Path) -> None:
    program = Program(tmp_path)
    with program.serving():
        program.ask("PUT", "/livesystems/ls-a", DECLARED)
        program.ask(
            "POST",
            "/tokens",
            {"name": "west", "role": "agent", **BOUND},
        )
        assert not program.status()["inRecovery"]
    database = tmp_path / "data" / "fractal.db"
    shutil.copyfile(database, tmp_path / "backup.db")
    shutil.copyfile(tmp_path / "backup.db", database)
    begun = program.run("restored", "--offline")
    assert begun.returncode == 0, begun.stderr
    assert "ls-a" in begun.stdout
    assert "fractal restored confirm-tokens" in begun.stdout
    with program.serving():
        first = json.loads(program.run("restored", "--status", "--output", "json").stdout)
        assert first == program.status()
        assert [one["id"] for one in first["liveSystems"]] == ["ls-a"]
        unseen = program.run("restored", "confirm", "ls-a", "--yes")
        assert unseen.returncode == 1, "no agent can say what would be done, so nothing is confirmed"
        assert "net" in unseen.stderr
        nobody = program.run("restored", "confirm-tokens")
        assert nobody.returncode == 2
        assert "west" in nobody.stdout
        assert program.status()["tokens"] != []
        assert program.run("restored", "confirm-tokens", "--yes").returncode == 0
        assert program.status()["tokens"] == []
        program.ask("PUT", "/livesystems/ls-a", DECLARED)
        assert not program.status()["inRecovery"]
        again = program.run("restored")
        assert again.returncode == 0, again.stderr
        second = program.status()
        assert [one["id"] for one in second["liveSystems"]] == ["ls-a"]
        assert second["incarnation"] != first["incarnation"]


@pytest.mark.rule("C9")
def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    program = Program(tmp_path)
    asked = program.run("restored", "--offline")
    assert asked.returncode == 1
    assert "there is no database" in asked.stderr
    assert not (tmp_path / "data" / "fractal.db").exists()
