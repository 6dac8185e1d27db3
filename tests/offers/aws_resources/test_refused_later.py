"""Creations that AWS accepts and refuses later, by the type's handler: Failed until one goes through (S21)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.manual_clock import ManualClock
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, REGION, one
from tests.world import World, world

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
ROLE = one("AWS::IAM::Role", "made", RoleName="worker", AssumeRolePolicyDocument=TRUST)
GATEWAY = one("AWS::EC2::InternetGateway", "made", region=REGION, name="door")
MINUTE = 60
DENIED = {"operation": "CREATE", "code": "AccessDenied", "message": "not authorized to perform it"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    return ManualClock(monkeypatch)


@pytest.fixture
def aws(
    session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> Iterator[World]:
    with world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=MINUTE) as made:
        clock.drive(made)
        session_sandbox.aws.lift_limits()
        yield made
        made.assert_safe()


def _journal(aws: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = aws.api.get(f"/livesystems/{LIVE_SYSTEM}/components/made/journal").json()["items"]
    return found


@pytest.mark.rule("S21", "S13", "C7")
@pytest.mark.parametrize(
    ("component", "slow"),
    [
        pytest.param(ROLE, 3, id="known-by-name-slowly"),
        pytest.param(GATEWAY, 0, id="named-by-aws-at-once"),
        pytest.param(ROLE, 0, id="known-by-name-at-once", marks=pytest.mark.soak),
        pytest.param(GATEWAY, 3, id="named-by-aws-slowly", marks=pytest.mark.soak),
    ],
)
def test_what_is_accepted_and_refused_later_stays_failed_until_a_try_goes_through(
    aws: World, clock: ManualClock, component: dict[str, Any], slow: int
) -> None:
    """Three refusals at growing intervals, each said once, and then a creation: «creating» is never said in between."""
    if slow:
        aws.cloud.knobs.slow_creation(kind=component["type"], reads=slow)
    aws.cloud.knobs.refuse_request(type_name=component["type"], times=3, **DENIED)
    aws.deploy(LIVE_SYSTEM, component)
    begun, said = clock.now, []
    for _ in range(56):
        aws.agent.run_once()
        said.append(aws.component(LIVE_SYSTEM, "made"))
        clock.advance(10)
    statuses = [one["status"] for one in said]
    first, active = statuses.index("Failed"), statuses.index("Active")
    assert set(statuses[:first]) <= {"Instantiating"}
    assert set(statuses[first:active]) == {"Failed"}, "it stays Failed until a try goes through"
    assert set(statuses[active:]) == {"Active"}
    assert all("not authorized to perform it" in one["message"] for one in said[first:active])
    waiting = {one["message"] for one in said[first:active] if one["message"].endswith(" UTC")}
    assert len(waiting) == 3, "each refusal says when the next try is"
    events = [e["after"] for e in aws.events(LIVE_SYSTEM) if e["kind"] == "StatusChanged"]
    assert events[:2] == ["Active", "Failed"]
    assert events.count("Failed") == 1
    outcomes = [(one["outcome"], one["count"]) for one in _journal(aws)]
    assert sorted(outcomes) == [("done", 1), ("failed", 3)], _journal(aws)
    made = [call for call in aws.cloud.calls.find(actor="agent") if call.call.operation == "CreateResource"]
    tokens = dict.fromkeys(call.call.parameters["ClientToken"] for call in made)
    assert len(tokens) == 4, "a try begins anew only when it is due, and each is one request"
    assert clock.now - begun >= timedelta(minutes=7)


@pytest.mark.rule("S21", "S27", "C7")
@pytest.mark.parametrize("slow", [pytest.param(0, marks=pytest.mark.soak), 3])
def test_a_change_that_is_refused_later_was_set_back_by_nobody(aws: World, clock: ManualClock, slow: int) -> None:
    group = {"region": REGION, "LogGroupName": "/app/shop"}
    aws.deploy(LIVE_SYSTEM, one("AWS::Logs::LogGroup", "made", **group, RetentionInDays=7))
    for _ in range(3):
        aws.agent.run_once()
    if slow:
        aws.cloud.knobs.slow_modification(kind="AWS::Logs::LogGroup", reads=slow)
    aws.cloud.knobs.refuse_request(type_name="AWS::Logs::LogGroup", times=3, **{**DENIED, "operation": "UPDATE"})
    aws.deploy(LIVE_SYSTEM, one("AWS::Logs::LogGroup", "made", **group, RetentionInDays=30))
    said = []
    for _ in range(60):
        aws.agent.run_once()
        said.append(aws.component(LIVE_SYSTEM, "made"))
        clock.advance(10)
    messages = " ".join(one["message"] for one in said)
    assert "not authorized to perform it" in messages
    assert "next try at" in messages
    assert "set back" not in messages
    assert said[-1]["status"] == "Active", said[-1]["message"]
