"""Every setting is an environment variable and a flag of the same name, with the default the API page says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.control.limits import ClientLimits
from tests.cli.conftest import Fractal


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The settings of programs that would have been started."""
    found: list[Any] = []
    monkeypatch.setattr("fractal_cloud.agent.main.run", found.append)
    monkeypatch.setattr("fractal_cloud.control.serve.run", found.append)
    monkeypatch.setattr("fractal_sandbox.server.main", lambda host, port: found.append((host, port)))
    monkeypatch.chdir(tmp_path)
    for name in ("HOST", "PORT", "SANDBOX_PORT", "DATA_DIR", "DATABASE_URL", "CYCLE_SECONDS"):
        monkeypatch.delenv(f"FRACTAL_{name}", raising=False)
    return found


@pytest.mark.rule("G2")
def test_the_cycle_is_180_seconds_and_a_setting_that_accepts_fractions(
    fractal: Fractal, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = ("agent", "--provider", "aws", "--token", "t")
    assert fractal(*agent).code == 0
    assert fractal(*agent, "--cycle-seconds", "0.25").code == 0
    monkeypatch.setenv("FRACTAL_CYCLE_SECONDS", "2.5")
    assert fractal(*agent).code == 0
    assert [settings.cycle_seconds for settings in started] == [180.0, 0.25, 2.5]
    assert fractal(*agent, "--cycle-seconds", "0").code == 2


def test_an_agent_gets_all_it_needs(fractal: Fractal, started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRACTAL_URL", "http://control:1")
    monkeypatch.setenv("FRACTAL_TOKEN", "secret")
    ran = fractal("agent", "--provider", "aws", "--environment", "prod")
    [settings] = started
    assert (settings.url, settings.token, settings.environment) == ("http://control:1", "secret", "prod")
    assert settings.providers == ("aws",)
    assert "secret" not in ran.words


def test_the_control_plane_makes_a_token_and_prints_it_unless_it_is_given_one(
    fractal: Fractal, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = fractal("serve")
    assert ran.code == 0
    assert len(started[0].admin_token) > 20
    assert started[0].admin_token in ran.out
    assert (started[0].host, started[0].port, started[0].cycle_seconds) == ("127.0.0.1", 8600, 180.0)
    assert started[0].data_dir.is_dir()
    monkeypatch.setenv("FRACTAL_TOKEN", "given-by-hand")
    assert "given-by-hand" not in fractal("serve").words
    assert started[1].admin_token == "given-by-hand"


@pytest.mark.parametrize("way", ["environment", "flags"])
def test_the_control_planes_settings_come_either_way(
    fractal: Fractal, started: list[Any], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    given = {"host": "0.0.0.0", "port": "9000", "database-url": "postgresql://db/x", "data-dir": "kept"}
    flags = []
    for name, value in given.items():
        if way == "environment":
            monkeypatch.setenv(f"FRACTAL_{name.upper().replace('-', '_')}", value)
        else:
            flags += [f"--{name}", value]
    assert fractal("serve", *flags).code == 0
    [settings] = started
    assert (settings.host, settings.port) == ("0.0.0.0", 9000)
    assert (settings.database_url, settings.data_dir) == ("postgresql://db/x", Path("kept"))


def test_the_sandbox_listens_where_the_settings_say(
    fractal: Fractal, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fractal("sandbox")
    monkeypatch.setenv("FRACTAL_SANDBOX_PORT", "9700")
    fractal("sandbox")
    assert started == [("127.0.0.1", 8700), ("127.0.0.1", 9700)]


@pytest.mark.rule("A9")
@pytest.mark.parametrize("way", ["environment", "flags"])
def test_the_limits_of_clients_come_either_way_and_are_else_those_of_the_server(
    fractal: Fractal, started: list[Any], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    assert fractal("serve").code == 0
    assert started.pop().clients == ClientLimits()
    given = {
        "max-header-bytes": "8192",
        "header-seconds": "5",
        "max-body-bytes": "100000",
        "max-report-bytes": "200000",
        "max-bodies-bytes": "300000",
        "stall-seconds": "7.5",
        "idle-seconds": "61",
        "max-connections": "500",
        "streams-per-token": "3",
        "waits-per-token": "4",
        "requests-per-token": "5",
        "failures-per-minute": "6",
        "trusted-proxies": "10.0.0.0/8, 192.0.2.1",
    }
    flags = []
    for name, value in given.items():
        if way == "environment":
            monkeypatch.setenv(f"FRACTAL_{name.upper().replace('-', '_')}", value)
        else:
            flags += [f"--{name}", value]
    assert fractal("serve", *flags).code == 0
    expected = ClientLimits(
        *(8192, 5.0, 100_000, 200_000, 300_000, 7.5, 61.0, 500, 3, 4, 5, 6), trusted_proxies="10.0.0.0/8, 192.0.2.1"
    )
    assert started[0].clients == expected
    assert fractal("serve", *flags, "--trusted-proxies", "*").code == 2
