"""`fractal sandbox`: runs the simulated clouds, and prints the settings that lead the vendors' own tools to them.

The sandbox is a package beside the product and found by its entry point, so that nothing of the product imports it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, Protocol, cast

import typer

from fractal_cloud.cli.errors import CommandError
from fractal_cloud.cli.lifeline import hold_lifeline
from fractal_cloud.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_HOST,
    DEFAULT_SANDBOX_PORT,
    DataDir,
    Host,
    SandboxPort,
)
from fractal_cloud.cli.programs import make_folder, url_of

__all__ = ["SimulatedCloud", "installed_sandbox", "sandbox_app"]

ENTRY_POINT_GROUP: Final = "fractal_cloud.sandbox"

sandbox_app = typer.Typer(invoke_without_command=True, help="Run the sandbox clouds: they forget when they stop.")


class SimulatedCloud(Protocol):
    """One cloud of the sandbox: whose agent serves it, and what people call it."""

    @property
    def provider(self) -> str: ...

    @property
    def title(self) -> str: ...


class SandboxPackage(Protocol):
    """What the command line needs of the sandbox, whoever provides it."""

    def serve(self, host: str, port: int) -> None:
        """Run all clouds on one port until SIGINT or SIGTERM."""

    def clouds(self) -> Sequence[SimulatedCloud]:
        """Every cloud of the sandbox."""

    def sandbox_env(self, url: str, folder: Path | None = None) -> Mapping[str, str]:
        """The settings that point a person's tools at the sandbox; files that they need go into the folder."""

    def agent_env(self, url: str, folder: Path | None = None) -> Mapping[str, str]:
        """The same for the agent."""

    def without_real_clouds(self, environment: Mapping[str, str]) -> dict[str, str]:
        """An environment without anything that could lead a program to a real cloud."""


def installed_sandbox() -> SandboxPackage:
    """Load the sandbox through its entry point; where it or a package it needs is missing, say how to install it."""
    found = entry_points(group=ENTRY_POINT_GROUP)
    if not found:
        raise _not_installed("the sandbox clouds are not installed")
    try:
        return cast("SandboxPackage", next(iter(found)).load())
    except ModuleNotFoundError as error:
        raise _not_installed(f"the sandbox clouds are not installed: {error.name!r} is missing") from None


@sandbox_app.callback()
def sandbox(
    context: typer.Context, host: Host = DEFAULT_HOST, sandbox_port: SandboxPort = DEFAULT_SANDBOX_PORT
) -> None:
    """Run the sandbox clouds: they forget when they stop."""
    if context.invoked_subcommand is not None:
        return
    hold_lifeline()
    package = installed_sandbox()
    try:
        package.serve(host, sandbox_port)
    except ModuleNotFoundError as error:
        raise _not_installed(f"the sandbox clouds are not installed: {error.name!r} is missing") from None


@sandbox_app.command("env")
def sandbox_env(
    host: Host = DEFAULT_HOST,
    sandbox_port: SandboxPort = DEFAULT_SANDBOX_PORT,
    data_dir: DataDir = DEFAULT_DATA_DIR,
) -> None:
    """Print the exports that point the vendors' own tools at the sandbox: eval "$(fractal sandbox env)".

    Some tools want files: they are written into the data folder.
    """
    package = installed_sandbox()
    make_folder(data_dir)
    for name, value in package.sandbox_env(url_of(host, sandbox_port), data_dir).items():
        typer.echo(f"export {name}={shlex.quote(value)}")


def _not_installed(cause: str) -> CommandError:
    return CommandError(cause, advice="Install them: pip install 'fractal-cloud[sandbox]'")
