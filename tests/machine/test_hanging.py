"""The hanging calls of the random histories really hang, are given up, and come to what each kind says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from tests.machine.hanging import CALL_SECONDS, HANGS, LATE, Hanging
from tests.machine.rest import come_to_rest
from tests.world import World, vpc
from tests.world import world as make_world


@pytest.fixture
def patient(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose agent reads its watchdog's clock often."""
    with make_world(session_sandbox, tmp_path, monkeypatch, concurrency=1, call_seconds=CALL_SECONDS) as made:
        yield made


@pytest.mark.rule("S24", "S17")
@pytest.mark.parametrize("how", sorted(HANGS))
def test_a_call_that_hangs_is_given_up_and_all_comes_to_rest(patient: World, how: str) -> None:
    calls = patient.sandbox.aws.calls
    hanging = Hanging(patient.sandbox.aws.knobs)
    hanging.watch(patient.agent)
    patient.deploy("ls-a", vpc())
    hanging.begin(how, 1)
    patient.cycle()
    assert hanging.given_up == 1
    journal = patient.api.get("/livesystems/ls-a/components/net/journal").json()["items"]
    outcomes = [entry["outcome"] for entry in journal]
    assert outcomes == ([] if how == "reads hang" else ["unknown"]), "a write that was given up counts as sent"
    assert len(patient.sandbox.aws.knobs.hanging) == 1
    assert len(calls.find(operation="CreateVpc", actor="agent")) == (how == "writes hang when done")
    hanging.carry_out_late()
    assert len(patient.sandbox.aws.knobs.hanging) == (how != LATE)
    patient.cycle()
    made_before_it_was_released = len(calls.find(operation="CreateVpc", actor="agent"))
    assert made_before_it_was_released == (how in ("writes hang when done", LATE)), "nothing is called beside it"
    hanging.release()
    come_to_rest(patient)
    assert patient.status("ls-a", "net") == "Active"
    assert len(calls.find(operation="CreateVpc", actor="agent")) == 1
    assert hanging.given_up == 1, "nothing but what hung"
    patient.assert_safe()
