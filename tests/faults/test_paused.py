"""SIGSTOP to a real agent in the middle of a cycle, for longer than its lease: when it wakes up, it is nobody."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from tests.faults.effects import Fault
from tests.faults.processes import PATIENCE, KilledWorld, killed_world
from tests.world import vpc


def _holder(world: KilledWorld) -> int:
    """The process that holds the only scope there is."""
    with world.store.read() as tx:
        holder = tx.connection.exec_driver_sql("SELECT holder FROM scopes WHERE holder IS NOT NULL").scalar_one()
    return world.pid_of(holder)


def _await(world: KilledWorld, status: str) -> None:
    until = time.monotonic() + PATIENCE
    while world.status("ls-a", "net") != status:
        assert time.monotonic() < until, f"net is {world.status('ls-a', 'net')}, not {status}"
        time.sleep(0.1)


@pytest.mark.rule("S17")
@pytest.mark.timeout(120)
def test_a_holder_paused_past_its_deadline_writes_nothing_and_reports_nothing(
    session_sandbox: Sandbox, tmp_path: Path
) -> None:
    """Stopped between the answer that let its intent stand and the write; another one did the work meanwhile."""
    with killed_world(session_sandbox, tmp_path) as world:
        stopped: list[int] = []

        def stop() -> None:
            stopped.append(_holder(world))
            os.kill(stopped[0], signal.SIGSTOP)

        world.gun.aim(stop)
        world.gun.arm(0, Fault.KILLED_AFTER)
        world.deploy("ls-a", vpc())
        try:
            _await(world, "Active")
            assert len(stopped) == 1
            assert _holder(world) != stopped[0], "another agent has taken over"
            writes = session_sandbox.aws.calls.count(actor="agent", writes_only=True)
            refused = world.refused_reports
        finally:
            os.kill(stopped[0], signal.SIGCONT)
        until = time.monotonic() + PATIENCE
        while world.refused_reports == refused:
            assert time.monotonic() < until, "its report was not refused"
            time.sleep(0.1)
        world.survive()
        assert session_sandbox.aws.calls.count(actor="agent", writes_only=True) == writes
        assert len(world.person.ec2.describe_vpcs(Filters=[{"Name": "tag:Name", "Values": ["net"]}])["Vpcs"]) == 1
        assert world.status("ls-a", "net") == "Active"
        world.assert_safe()
