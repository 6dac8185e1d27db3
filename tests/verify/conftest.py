"""The program as its user runs it on an account: with a person's credentials, here of the sandbox's clouds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from fractal_cloud.verifying import checks
from fractal_sandbox import Sandbox, sandbox_env
from tests.cli.conftest import Fractal, Ran, fractal

__all__ = ["SCOPES", "Verify", "fractal", "not_held"]

SCOPES = {
    "aws": ("--scope", "region=eu-west-1"),
    "azure": ("--scope", "resourceGroup=sandbox", "--scope", "location=westeurope"),
    "hetzner": (),
    "kubernetes": ("--scope", "namespace=default"),
}
Verify = Callable[..., Ran]


@pytest.fixture
def account(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """Empty clouds, and a person's credentials in the environment."""
    for name in SCOPES:
        getattr(session_sandbox, name).reset()
    for name, value in sandbox_env(session_sandbox.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(checks, "AGREEMENT_SECONDS", 0.3)
    monkeypatch.setattr(checks, "LISTED_SECONDS", 1.0)
    logging = structlog.get_config()
    yield session_sandbox
    structlog.configure(**logging)
    for name in SCOPES:
        getattr(session_sandbox, name).knobs.reset()


@pytest.fixture
def verify(fractal: Fractal, account: Sandbox) -> Verify:  # pytest finds the fixture by its name
    """The command, in the place that each sandbox cloud has from the start."""
    del account

    def ran(provider: str, *arguments: str) -> Ran:
        return fractal("verify", "--provider", provider, *SCOPES[provider], *arguments)

    return ran


def not_held(ran: Ran) -> dict[tuple[str, str], str]:
    """What did not hold by a report in JSON: the assumption and its parameter, and what was found instead."""
    report: dict[str, Any] = json.loads(ran.out)
    return {
        (one["assumption"], one["parameter"] or ""): one["detail"]
        for one in report["findings"]
        if one["verdict"] == "not held"
    }
