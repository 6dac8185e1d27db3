"""The role that `fractal agent policy --provider azure` prints, in force."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial

from typer.testing import CliRunner

from fractal_cloud.cli.app import app
from fractal_sandbox import Sandbox
from fractal_sandbox.azure.permissions import missing


@cache
def actions(*flags: str) -> frozenset[str]:
    """What the printed role allows: no patterns stand in it."""
    result = CliRunner().invoke(app, ["agent", "policy", "--provider", "azure", *flags])
    assert result.exit_code == 0, result.output
    role = json.loads(result.output)
    assert not role["DataActions"]
    assert not any("*" in one for one in role["Actions"])
    return frozenset(role["Actions"])


@contextmanager
def printed_rights(sandbox: Sandbox, *flags: str) -> Iterator[None]:
    """Let the agent do what is printed for it, and nothing else."""
    with sandbox.azure.restrict_agent(partial(missing, actions(*flags))):
        yield
