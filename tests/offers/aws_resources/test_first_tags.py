"""The first tags of what has none: nothing can be tested in a patch, so no set of tags may be written (T10)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.calls import Call
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, one
from tests.world import World, world

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
ROLE = {"RoleName": "made", "AssumeRolePolicyDocument": TRUST}
KIND = "AWS::IAM::Role"


@pytest.fixture
def aws(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=0.02) as made:
        session_sandbox.aws.lift_limits()
        yield made
        made.assert_safe()


@pytest.mark.rule("T1", "T10", "G10")
def test_a_tag_that_somebody_adds_right_before_a_force_push_stays(aws: World) -> None:
    control = aws.person.client("cloudcontrol")
    control.create_resource(TypeName=KIND, DesiredState=json.dumps(ROLE))
    aws.deploy(LIVE_SYSTEM, one(KIND, "made", **ROLE))
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "made") == "ManualOverride"
    added: list[str] = []

    def add_a_tag(call: Call) -> None:
        if call.is_write and call.origin.component == "made" and not added:
            added.append(call.operation)
            patch = [{"op": "add", "path": "/Tags", "value": [{"Key": "team", "Value": "shop"}]}]
            control.update_resource(TypeName=KIND, Identifier="made", PatchDocument=json.dumps(patch))

    hook = aws.cloud.knobs.before_call(add_a_tag, actor="agent")
    aws.api.post(f"/livesystems/{LIVE_SYSTEM}/components/made/force-push", json={})
    aws.settle()
    aws.cloud.knobs.remove(hook)
    assert added, "nobody was ever in the way"
    assert aws.status(LIVE_SYSTEM, "made") == "Active"
    shown = control.get_resource(TypeName=KIND, Identifier="made")["ResourceDescription"]["Properties"]
    assert {tag["Key"] for tag in json.loads(shown)["Tags"]} == {"team", "managed-by", "fractal-cloud-owner"}
