"""The program as a whole: how it starts, how it fails, and that nothing it starts outlives it."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

import fractal_cloud
from fractal_cloud.cli.client import ControlPlane
from fractal_cloud.cli.errors import CommandError
from fractal_cloud.cli.files import load
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.validation import check
from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane
from tests.ports import free_port

PATIENCE = 120
"""Seconds that anything may take on a machine with much else to do."""

COMMANDS = ["up", "serve", "agent", "sandbox", "plan", "deploy", "status", "drift", "events", "glass", "force-push"]


def test_help_names_every_command_at_once() -> None:
    """Measured in processor time: how long a busy machine lets it wait is not the program's doing."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    done = subprocess.run(
        [sys.executable, "-m", "fractal_cloud.cli", "--help"], capture_output=True, text=True, check=True
    )
    assert spent() - before < 0.5
    assert all(f"  {command} " in done.stdout for command in [*COMMANDS, "delete", "token"])


def test_the_version_is_printed(fractal: Fractal) -> None:
    assert fractal("--version").out == f"{fractal_cloud.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["status", "--output", "xml"], ["deploy"], ["agent", "--provider", "nowhere"], ["agent"]],
)
def test_bad_usage_ends_with_two(fractal: Fractal, arguments: list[str]) -> None:
    assert fractal(*arguments).code == 2


def test_an_agent_without_a_token_says_where_to_get_one(fractal: Fractal) -> None:
    ran = fractal("agent", "--provider", "aws")
    assert ran.code == 2
    assert "fractal token create --role agent" in ran.err


def test_nobody_there_says_what_to_start(fractal: Fractal, control: FakeControlPlane) -> None:
    control.down = httpx2.ConnectError
    ran = fractal("status", "--url", "http://127.0.0.1:1")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "error: no control plane answers at http://127.0.0.1:1",
        "Start one with `fractal up` or `fractal serve`, or give its address with --url or FRACTAL_URL.",
    ]


def test_a_closed_port_is_nobody_there(fractal: Fractal) -> None:
    ran = fractal("status", "--url", "http://127.0.0.1:1")
    assert (ran.code, "no control plane answers" in ran.err) == (1, True)


def test_a_refused_token_says_where_tokens_come_from(fractal: Fractal, control: FakeControlPlane) -> None:
    control.refuse("GET", "/livesystems", 401, "the token is unknown")
    ran = fractal("status")
    assert ran.code == 1
    assert "refuses the token: the token is unknown" in ran.err
    assert "FRACTAL_TOKEN" in ran.err


def test_a_role_that_may_not_gets_the_reason(fractal: Fractal, control: FakeControlPlane) -> None:
    control.refuse("GET", "/tokens", 403, "a reader may not do this")
    assert fractal("token", "list").err.startswith("error: a reader may not do this\n")


def test_what_is_no_control_plane_is_reported_as_such() -> None:
    html = httpx2.MockTransport(lambda _: httpx2.Response(200, text="<html>"))
    with pytest.raises(CommandError, match="is no control plane: what answers there does not speak JSON"):
        ControlPlane("http://somewhere", "", html).get("/livesystems")
    broken = httpx2.MockTransport(lambda _: httpx2.Response(502, text="<html>bad gateway"))
    with pytest.raises(CommandError, match="HTTP 502: <html>bad gateway"):
        ControlPlane("http://somewhere", "", broken).get("/livesystems")


def test_an_address_that_is_none_is_reported(fractal: Fractal) -> None:
    assert fractal("status", "--url", "nonsense").code == 1


def test_the_agents_policy_is_json(fractal: Fractal) -> None:
    several = json.loads(fractal("agent", "policy", "--provider", "aws", "--with-links").out)
    assert [one["Version"] for one in several] == ["2012-10-17"] * 3
    assert json.loads(fractal("agent", "policy", "--provider", "aws").out) == several[:2]
    last = fractal("agent", "policy", "--provider", "aws", "--with-links", "--document", "3")
    assert json.loads(last.out) == several[2]
    assert fractal("agent", "policy", "--provider", "nowhere").code == 2
    assert fractal("agent", "policy", "--provider", "../x").code == 2


def test_an_option_of_the_policy_that_cannot_be_meant_is_refused_with_its_flag(fractal: Fractal) -> None:
    foreign = fractal("agent", "policy", "--provider", "hetzner", "--pass-role", "x")
    assert foreign.code == 2
    assert "--pass-role means nothing for 'hetzner': leave it out" in foreign.err
    assert "there is no document 3" in fractal("agent", "policy", "--provider", "aws", "--document", "3").err


def test_sandbox_env_prints_exports(fractal: Fractal, tmp_path: Path) -> None:
    ran = fractal("sandbox", "env", "--sandbox-port", "8999", "--data-dir", str(tmp_path))
    assert ran.code == 0
    assert "export AWS_ENDPOINT_URL=http://127.0.0.1:8999\n" in ran.out
    assert all(line.startswith("export ") for line in ran.out.splitlines())
    assert f"export KUBECONFIG={tmp_path / 'kubeconfig-person'}\n" in ran.out
    assert "http://127.0.0.1:8999/kubernetes/" in (tmp_path / "kubeconfig-person").read_text()


def test_the_sample_is_a_good_declaration() -> None:
    import fractal_cloud.cli

    [sample] = load(str(Path(fractal_cloud.cli.__file__).with_name("sample.py")))
    checked = check(sample.document, installed().catalog())
    assert [component.id for component in checked.components] == [
        "net",
        "public",
        "private",
        "firewall",
        "web",
        "stock",
        "shop",
    ]


def test_up_refuses_a_port_in_use_and_a_database_that_is_not_its_own(fractal: Fractal, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = fractal("up", "--port", str(taken.getsockname()[1]), "--data-dir", str(tmp_path))
        assert ran.code == 1
        assert "--port or FRACTAL_PORT" in ran.err
    ports = ["--port", str(free_port()), "--sandbox-port", str(free_port())]
    ran = fractal("up", *ports, "--data-dir", str(tmp_path), "--database-url", "postgresql://db/x")
    assert ran.code == 2
    assert "--keep" in ran.err


@pytest.mark.parametrize("command", ["up", "serve"])
def test_a_data_folder_that_cannot_be_made_is_reported(
    fractal: Fractal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("FRACTAL_SANDBOX_PORT", str(free_port()))
    (tmp_path / "file").write_text("")
    ran = fractal(command, "--port", str(free_port()), "--data-dir", str(tmp_path / "file" / "below"))
    assert ran.code == 1
    assert "FRACTAL_DATA_DIR" in ran.err


PARENT = """
import os, sys, time
from pathlib import Path
from fractal_cloud.cli.children import Children
with Children(Path(sys.argv[1])) as children:
    children.start("sandbox", ["sandbox"], {**os.environ, "FRACTAL_SANDBOX_PORT": sys.argv[2]})
    print(children._children[0].process.pid, flush=True)
    children.watch()
"""


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_child_outlives_its_parent_however_that_ends(tmp_path: Path, how: signal.Signals) -> None:
    arguments = [sys.executable, "-c", PARENT, str(tmp_path), str(free_port())]
    parent = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert parent.stdout is not None
    with parent.stdout as out:
        child = int(out.readline())
    log = tmp_path / "sandbox.log"
    _wait_until(lambda: "sandbox:" in log.read_text())
    assert is_alive(child)
    os.kill(parent.pid, how)
    parent.wait(PATIENCE)
    _wait_until(lambda: not is_alive(child))
    assert not is_alive(child)


def _wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for as long as the busiest machine may take."""
    deadline = time.monotonic() + PATIENCE
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.05)


def test_a_child_that_ends_by_itself_is_named_with_its_last_lines(tmp_path: Path) -> None:
    from fractal_cloud.cli.children import Children

    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with Children(tmp_path) as children:
            children.start("agent", ["agent"], dict(os.environ))
            with pytest.raises(CommandError) as caught:
                children.wait_for("agent", lambda: False, 20)
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    assert "the agent ended unexpectedly with exit code 2" in caught.value.cause
    assert any("no cloud is named" in line for line in caught.value.details)
