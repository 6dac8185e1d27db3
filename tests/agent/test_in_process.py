"""The control plane that tests have in their own process ends also while other threads still wait for its answer."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.testing.in_process import InProcessClient
from fractal_cloud.testing.tokens import agent_token, bearer

WAITERS = 4
TOKEN = "t" * 32
AGENT = {"agentId": "a-1", "environment": "default", "reaches": [], "types": [], "cycleSeconds": 60}


@pytest.mark.parametrize("attempt", range(5))
def test_a_long_poll_under_way_is_answered_before_the_control_plane_ends(tmp_path: Path, attempt: int) -> None:
    app = create_app(ControlSettings(database_url=f"sqlite:///{tmp_path / 'control.db'}", admin_token=TOKEN))
    answers: list[int] = []
    with InProcessClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        client.headers.update(bearer(agent_token(client)))
        assert client.post("/agent/register", json=AGENT).status_code == 200

        def poll() -> None:
            answers.append(client.post("/agent/wait", json={"agentId": "a-1", "wake": 0, "seconds": 45}).status_code)

        threads = [threading.Thread(target=poll, daemon=True) for _ in range(WAITERS)]
        for thread in threads:
            thread.start()
        while client.calls_under_way < WAITERS:
            time.sleep(0.001)
    for thread in threads:
        thread.join(30)
    assert answers == [200] * WAITERS
