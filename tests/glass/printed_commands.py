"""The commands that the product prints to break the glass and to hand back, and a terminal to type them in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.world import World

Run = Callable[[str], str]


def commands(world: World, component: str, live_system: str = "ls-a") -> tuple[list[str], list[str]]:
    """The commands that the product prints: to break the glass, and to hand the resource back."""
    answer: dict[str, Any] = world.api.get(f"/livesystems/{live_system}/components/{component}/glass").json()
    assert not answer["missing"], answer
    return answer["break"], answer["readopt"]


def break_and_hand_back(
    world: World,
    run: Run,
    component: str,
    settle: Callable[[], object],
    check_in_override: Callable[[], object] = lambda: None,
) -> None:
    """Type the printed commands: the first put the component into override, the others make it Active again.

    ``settle`` runs cycles until the hand-back is complete; ``check_in_override`` asserts what else holds in between.
    """
    break_glass, readopt = commands(world, component)
    for command in break_glass:
        run(command)
    world.cycle()
    assert world.status("ls-a", component) == "ManualOverride"
    check_in_override()
    for command in readopt:
        run(command)
    settle()
    assert world.status("ls-a", component) == "Active"


def terminal(home: Path, env: Mapping[str, str], seconds: float = 60) -> Run:
    """Return a function that runs one line in a shell with nothing but these settings, and returns its output."""
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
