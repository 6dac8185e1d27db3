"""Creations that AWS accepts and refuses later, by the type's handler: Failed until one goes through (S21)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests import library_caches
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


TAGS_DENIED = {**DENIED, "operation": "UPDATE", "code": "UnauthorizedTaggingOperation", "message": "no right to tag it"}
GROUP = one("AWS::Logs::LogGroup", "made", region=REGION, LogGroupName="/app/shop", RetentionInDays=7)


def _deployed(aws: World, component: dict[str, Any]) -> None:
    aws.deploy(LIVE_SYSTEM, component)
    for _ in range(4):
        aws.agent.run_once()
    assert aws.status(LIVE_SYSTEM, "made") == "Active"


def _refuse_tags(aws: World, component: dict[str, Any], slow: int, times: int = 1) -> None:
    if slow:
        aws.cloud.knobs.slow_modification(kind=component["type"], reads=slow)
    aws.cloud.knobs.refuse_request(type_name=component["type"], times=times, **TAGS_DENIED)


def _watch(aws: World, clock: ManualClock, seconds: int) -> list[dict[str, Any]]:
    """What the component says, cycle by cycle."""
    said = []
    for _ in range(seconds // 20):
        aws.agent.run_once()
        said.append(aws.component(LIVE_SYSTEM, "made"))
        clock.advance(20)
    return said


def _released(aws: World) -> None:
    arn = aws.output(LIVE_SYSTEM, "made", "Arn")
    tagging = aws.person.client("resourcegroupstaggingapi")
    tagging.untag_resources(ResourceARNList=[arn.removesuffix(":*")], TagKeys=["managed-by"])


@pytest.mark.rule("G10", "S21")
@pytest.mark.parametrize("slow", [0, 3, pytest.param(12, marks=pytest.mark.soak)])
def test_a_force_push_that_is_refused_later_says_that_it_is_used_up(aws: World, clock: ManualClock, slow: int) -> None:
    _deployed(aws, GROUP)
    _released(aws)
    _watch(aws, clock, 120)
    assert aws.status(LIVE_SYSTEM, "made") == "ManualOverride"
    _refuse_tags(aws, GROUP, slow)
    assert aws.force_push(LIVE_SYSTEM, "made").status_code == 202
    said = _watch(aws, clock, 400)
    assert {one["status"] for one in said} == {"ManualOverride"}
    assert said[-1]["message"].startswith("Force Push failed and is used up"), [one["message"] for one in said]
    assert "no right to tag it" in said[-1]["message"]
    assert "ask again" in said[-1]["message"]
    [event] = [one for one in aws.events(LIVE_SYSTEM) if one["kind"] == "ForcePushRefused"]
    assert "no right to tag it" in event["message"]
    assert [one["outcome"] for one in _journal(aws) if one["reason"] == "force-push"] == ["failed"]
    assert aws.force_push(LIVE_SYSTEM, "made").status_code == 202
    _watch(aws, clock, 400)
    assert aws.status(LIVE_SYSTEM, "made") == "Active"


@pytest.mark.rule("G10", "C7")
@pytest.mark.parametrize("is_over", [False, True], ids=["under-way", "over"])
def test_another_agent_says_that_an_accepted_force_push_was_not_done(
    aws: World, clock: ManualClock, is_over: bool
) -> None:
    """By the journal's open entry; and why, where the request is still under way when it first asks."""
    _deployed(aws, GROUP)
    _released(aws)
    _watch(aws, clock, 120)
    _refuse_tags(aws, GROUP, 12)
    assert aws.force_push(LIVE_SYSTEM, "made").status_code == 202
    aws.agent.run_once()
    [entry] = [one for one in _journal(aws) if one["reason"] == "force-push"]
    assert entry["outcome"] == "unknown", "nothing is called done that the cloud only accepted"
    control = aws.person.client("cloudcontrol")
    [busy] = control.list_resource_requests()["ResourceRequestStatusSummaries"][:1]
    for _ in range(15 if is_over else 0):
        busy = control.get_resource_request_status(RequestToken=busy["RequestToken"])["ProgressEvent"]
    assert busy["OperationStatus"] == ("FAILED" if is_over else "IN_PROGRESS")
    aws.restart_agent()
    library_caches.lose_memories()
    said = _watch(aws, clock, 400)
    assert said[-1]["message"].startswith("Force Push failed and is used up"), [one["message"] for one in said]
    assert ("why is not known" if is_over else "no right to tag it") in said[-1]["message"]
    assert [e["kind"] for e in aws.events(LIVE_SYSTEM)].count("ForcePushRefused") == 1


@pytest.mark.rule("G10")
@pytest.mark.parametrize("slow", [pytest.param(0, marks=pytest.mark.soak), 3])
def test_a_force_push_that_goes_through_later_is_no_refusal(aws: World, clock: ManualClock, slow: int) -> None:
    _deployed(aws, GROUP)
    _released(aws)
    _watch(aws, clock, 120)
    if slow:
        aws.cloud.knobs.slow_modification(kind=GROUP["type"], reads=slow)
    assert aws.force_push(LIVE_SYSTEM, "made").status_code == 202
    _watch(aws, clock, 400)
    assert aws.status(LIVE_SYSTEM, "made") == "Active"
    assert "ForcePushRefused" not in [e["kind"] for e in aws.events(LIVE_SYSTEM)]
    assert {one["outcome"] for one in _journal(aws)} == {"done"}


@pytest.mark.rule("O8", "S21")
@pytest.mark.parametrize("slow", [pytest.param(0, marks=pytest.mark.soak), 3])
def test_a_transfer_that_is_refused_later_says_that_it_is_used_up(aws: World, clock: ManualClock, slow: int) -> None:
    _deployed(aws, GROUP)
    aws.deploy("next", GROUP)
    _watch(aws, clock, 120)
    _refuse_tags(aws, GROUP, slow)
    answer = aws.transfer(LIVE_SYSTEM, "made", "next")
    assert answer.status_code == 202, answer.text
    said = _watch(aws, clock, 400)
    assert any("the transfer failed and is used up: no right to tag it" in one["message"] for one in said)
    [event] = [one for one in aws.events(LIVE_SYSTEM) if one["kind"] == "TransferRefused"]
    assert event["message"].startswith("the owner tag was not moved: no right to tag it")
    assert [one["outcome"] for one in _journal(aws) if one["reason"] == "transfer"] == ["failed"]


@pytest.mark.rule("S9", "S21", "T6")
@pytest.mark.parametrize("slow", [pytest.param(0, marks=pytest.mark.soak), 3])
def test_the_end_of_a_handover_that_is_refused_later_says_why_until_it_goes_through(
    aws: World, clock: ManualClock, slow: int
) -> None:
    _deployed(aws, GROUP)
    _refuse_tags(aws, GROUP, slow, times=2)
    arn = aws.output(LIVE_SYSTEM, "made", "Arn").removesuffix(":*")
    tags = aws.person.client("resourcegroupstaggingapi")
    tags.tag_resources(ResourceARNList=[arn], Tags={"fractal-cloud": "reconcile"})
    said = _watch(aws, clock, 900)
    assert any("no right to tag it" in one["message"] for one in said), [one["message"] for one in said]
    assert said[-1]["status"] == "Active", said[-1]["message"]
    [mapping] = tags.get_resources(ResourceARNList=[arn])["ResourceTagMappingList"]
    assert "fractal-cloud" not in {tag["Key"] for tag in mapping["Tags"]}


@pytest.mark.rule("G13", "S21")
@pytest.mark.parametrize("slow", [pytest.param(0, marks=pytest.mark.soak), 3])
def test_glass_whose_breaking_is_refused_later_says_why_until_it_goes_through(
    aws: World, clock: ManualClock, slow: int
) -> None:
    _deployed(aws, GROUP)
    _refuse_tags(aws, GROUP, slow, times=2)
    assert aws.glass(LIVE_SYSTEM, "made", "break", reason="it burns").status_code == 202
    said = _watch(aws, clock, 900)
    assert any("no right to tag it" in one["message"] for one in said), [one["message"] for one in said]
    assert said[-1]["status"] == "ManualOverride", said[-1]["message"]
