"""The rights that `fractal agent policy --provider oci` prints, in force: read by the sandbox's own policy language."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from typer.testing import CliRunner

from fractal_cloud.cli.app import app
from fractal_cloud.offers.oci.policy import GROUP
from fractal_sandbox import Sandbox
from fractal_sandbox.oci.permissions import missing
from fractal_sandbox.oci.policies import Statement, read_statement
from fractal_sandbox.rest import Draft, Request, Route

FLAGS: Final = ("--with-links", "--compartment", "team")


@cache
def statements(*flags: str) -> tuple[Statement, ...]:
    """What is printed, as it is understood."""
    result = CliRunner().invoke(app, ["agent", "policy", "--provider", "oci", *flags])
    assert result.exit_code == 0, result.output
    return tuple(read_statement(text) for text in json.loads(result.output))


@contextmanager
def printed_rights(sandbox: Sandbox, *flags: str) -> Iterator[None]:
    """Let the agent do what is printed for it, and nothing else."""
    granted = list(statements(*(flags or FLAGS)))

    def lacks(request: Request, route: Route, draft: Draft) -> str:
        return missing(granted, frozenset({GROUP}), request, route, draft)

    with sandbox.oci.restrict_agent(lacks):
        yield
