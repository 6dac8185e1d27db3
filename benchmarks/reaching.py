"""One deploy's way to the cloud: from the command of a person to the first writing call, and until all is settled.

Control plane and agent are real and run already, in one process, with the product's own cycle of 180 seconds: whoever
waited for a cycle would be seen. The command is a process of its own, its start included.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.control import TOKEN, Watched, agents_token, watched
from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result
from benchmarks.rig import Canned
from benchmarks.stock import VPC, Declared
from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings

COUNT: Final = 10
ROUNDS: Final = 3
CYCLE: Final = 180.0


def _command(plane: Watched, *arguments: str) -> tuple[float, float]:
    """When a ``fractal`` command began and ended."""
    began = time.time()
    asked = [sys.executable, "-m", "fractal_cloud.cli", *arguments, "--url", plane.url, "--token", TOKEN]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return began, time.time()


def _deploys(canned: Canned, plane: Watched, folder: Path, count: int, rounds: int) -> Iterator[tuple[float, ...]]:
    """How long a command without work, the first call, the last call and the end of ``deploy --wait`` took."""
    [components] = Declared(VPC, count).declarations().values()
    for number in range(rounds):
        name = f"reaching-{number}"
        declared = [component.to_json() for component in components]
        for one in declared:
            one["parameters"]["name"] = f"{name}-{one['id']}"
        body = {"id": name, "components": declared}
        file = folder / f"{name}.json"
        file.write_text(json.dumps(body))
        canned.stock([])
        idle = _command(plane, "status")
        began, ended = _command(plane, "deploy", str(file), "--wait")
        first, last = canned.moments()
        yield idle[1] - idle[0], first - began, last - began, ended - began


def measure(stage: Stage, count: int = COUNT, rounds: int = ROUNDS) -> Iterator[Result]:
    """The best of a few deploys: wall time shows everything else that runs on the machine."""
    stage.canned.stock([])
    with watched() as plane, tempfile.TemporaryDirectory() as folder:
        token = agents_token(plane)
        control = ControlPlane(plane.url, token)
        agent = Agent(AgentSettings(url=plane.url, token=token, providers=("aws",), cycle_seconds=CYCLE), control)
        running = threading.Thread(target=agent.run, daemon=True)
        running.start()
        try:
            found = list(_deploys(stage.canned, plane, Path(folder), count, rounds))
        finally:
            agent.stop()
            running.join(30)
            control.close()
    # The cloud is emptied before every round: an agent that was already making earlier things anew proves nothing.
    idle, first, last, settled = min((one for one in found if one[1] > 0), key=lambda one: one[1])
    figures = {"first call s": first, "last call s": last, "settled s": settled, "command alone s": idle}
    bar = Bar("settled, by a cycle nobody waits for", settled, CYCLE, "s", most=0.1)
    note = f"best of {rounds}; «command alone» is `fractal status`: starting Python and asking"
    yield Result("reaching", "fractal deploy --wait", count, figures, (bar,), note)


JOBS: Final = (Job("reaching", "from `fractal deploy` to the first call of the cloud, and to settled", measure, 55),)
