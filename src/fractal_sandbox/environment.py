"""The settings that point the vendors' own tools, and our agent, at the sandbox: those of all its clouds together.

People and the agent use different keys, because the safety monitor checks only the agent. Each cloud brings its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from fractal_sandbox.calls import Actor
from fractal_sandbox.registry import mounts

__all__ = ["agent_env", "sandbox_env", "without_real_clouds"]


def sandbox_env(url: str, folder: Path | None = None) -> dict[str, str]:
    """Return the environment in which a person's tools (`aws`, `kubectl`, …) talk to the sandbox at `url`.

    Some tools want files: they are written into `folder`, and left out where none is given.
    """
    return _settings(url, "person", folder)


def agent_env(url: str, folder: Path | None = None) -> dict[str, str]:
    """Return the environment for the agent: as a person's, with the keys that the safety monitor watches."""
    return _settings(url, "agent", folder)


def without_real_clouds(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """An environment without anything that could lead an agent past the sandbox."""
    clears = tuple(beginning for mount in mounts() for beginning in mount.clears)
    return {name: value for name, value in environment.items() if not name.startswith(clears)}


def _settings(url: str, actor: Actor, folder: Path | None) -> dict[str, str]:
    return {name: value for mount in mounts() for name, value in mount.environment(url, actor, folder).items()}
