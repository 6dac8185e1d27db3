"""The very words that the product prints for whoever takes a resource over, and a terminal to type them in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.world import World

Run = Callable[[str], str]


def commands(world: World, component: str, live_system: str = "ls-a") -> tuple[list[str], list[str]]:
    """What the product tells an operator to type: to break the glass, and to hand the resource back."""
    answer: dict[str, Any] = world.api.get(f"/livesystems/{live_system}/components/{component}/glass").json()
    assert not answer["missing"], answer
    return answer["break"], answer["readopt"]


def terminal(home: Path, env: Mapping[str, str], seconds: float = 60) -> Run:
    """Runs one line in a shell, as a person would who has nothing but these settings; what it printed."""
    settings = {"PATH": os.environ["PATH"], "HOME": str(home), **env}

    def run(command: str) -> str:
        result = subprocess.run(
            ["/bin/sh", "-c", command],
            env=settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
        return result.stdout

    return run
