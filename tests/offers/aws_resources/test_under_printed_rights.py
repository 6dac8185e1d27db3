"""Types of AWS under nothing but the rights that are printed for them: whole lives, and what stays denied (A7, S16)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from fractal_sandbox import Sandbox
from fractal_sandbox.aws import AGENT_ACCESS_KEY, SECRET_KEY
from tests import aws_rights
from tests.aws_rights import ACCOUNT
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, REGION, one, queue
from tests.world import World, world

PATH = "/fractal-cloud/"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy{PATH}boundary"
READ_ONLY = "arn:aws:iam::aws:policy/ReadOnlyAccess"


def trust(service: str) -> dict[str, Any]:
    allowed = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [allowed]}


def rights(*actions: str) -> dict[str, Any]:
    allowed = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [allowed]}


def role(component_id: str = "worker", **parameters: Any) -> dict[str, Any]:
    """A role as the printed rights let the agent make it."""
    made = {"RoleName": component_id, "Path": PATH, "PermissionsBoundary": BOUNDARY}
    return one("AWS::IAM::Role", component_id, **{**made, "AssumeRolePolicyDocument": trust("lambda"), **parameters})


CODE = {"ZipFile": "def handler(event, context):\n    return 1\n"}
FUNCTION = one(
    "AWS::Lambda::Function",
    "works",
    region=REGION,
    FunctionName="works",
    Role="${worker.Arn}",
    Runtime="python3.12",
    Handler="index.handler",
    Code=CODE,
    Timeout=60,
)
IDENTITIES = (
    role(
        Policies=[{"PolicyName": "own", "PolicyDocument": rights("s3:GetObject")}],
        ManagedPolicyArns=[READ_ONLY, "${rights.PolicyArn}"],
    ),
    one("AWS::IAM::RolePolicy", "part", RoleName="${worker.RoleName}", PolicyName="p", PolicyDocument=rights("s3:*")),
    one("AWS::IAM::ManagedPolicy", "rights", ManagedPolicyName="rights", Path=PATH, PolicyDocument=rights("sqs:*")),
    role("machine", AssumeRolePolicyDocument=trust("ec2")),
    one(
        "AWS::IAM::InstanceProfile",
        "profile",
        InstanceProfileName="profile",
        Path=PATH,
        Roles=["${machine.RoleName}"],
    ),
    FUNCTION,
    queue(),
)
TAGGED = [component["id"] for component in IDENTITIES if component["id"] != "part"]


@pytest.fixture
def aws(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=0.1) as made:
        yield made
        made.assert_safe()


def _statuses(aws: World, *names: str) -> dict[str, str]:
    shown = {name: aws.component(LIVE_SYSTEM, name) for name in names}
    return {name: f"{one['status']}: {one['message']}" for name, one in shown.items() if one["status"] != "Active"}


@pytest.mark.rule("A7", "S4", "S12", "G1", "G7", "S9", "O10", "S25")
def test_identities_and_what_uses_them_live_under_the_rights_that_are_printed_for_them(aws: World) -> None:
    aws_rights.limit_to(aws.sandbox, IDENTITIES)
    aws.deploy(LIVE_SYSTEM, *IDENTITIES)
    aws.settle(at_most=25)
    assert _statuses(aws, *TAGGED, "part") == {}
    iam = aws.person.client("iam")
    made = iam.get_role(RoleName="worker")["Role"]
    assert made["Arn"] == f"arn:aws:iam::{ACCOUNT}:role{PATH}worker"
    assert made["PermissionsBoundary"]["PermissionsBoundaryArn"] == BOUNDARY

    # Drift of each is corrected: a trust, an attached policy, a profile's role, a function's setting.
    iam.update_assume_role_policy(RoleName="worker", PolicyDocument=json.dumps(trust("ec2")))
    iam.detach_role_policy(RoleName="worker", PolicyArn=READ_ONLY)
    iam.remove_role_from_instance_profile(InstanceProfileName="profile", RoleName="machine")
    aws.settle(at_most=25)
    attached = {one["PolicyArn"] for one in iam.list_attached_role_policies(RoleName="worker")["AttachedPolicies"]}
    assert attached == {READ_ONLY, aws.output(LIVE_SYSTEM, "rights", "PolicyArn")}
    [held] = iam.get_instance_profile(InstanceProfileName="profile")["InstanceProfile"]["Roles"]
    assert held["RoleName"] == "machine"

    changed = [*IDENTITIES[:2], {**IDENTITIES[2], "parameters": {**IDENTITIES[2]["parameters"]}}, *IDENTITIES[3:]]
    changed[0] = role(ManagedPolicyArns=["${rights.PolicyArn}"], AssumeRolePolicyDocument=trust("states"))
    changed[2]["parameters"]["PolicyDocument"] = rights("sqs:SendMessage")
    aws.deploy(LIVE_SYSTEM, *changed)
    aws.settle(at_most=25)
    assert _statuses(aws, *TAGGED, "part") == {}

    for name in TAGGED:
        assert aws.glass(LIVE_SYSTEM, name, "break", reason="it burns").status_code == 202
    aws.settle(at_most=25)
    assert {aws.status(LIVE_SYSTEM, name) for name in TAGGED} == {"ManualOverride"}
    iam.update_assume_role_policy(RoleName="worker", PolicyDocument=json.dumps(trust("ec2")))
    for name in TAGGED:
        assert aws.glass(LIVE_SYSTEM, name, "readopt").status_code == 202
    aws.settle(at_most=25)
    assert _statuses(aws, *TAGGED, "part") == {}

    aws.delete(LIVE_SYSTEM)
    aws.settle(at_most=30)
    assert aws.api.get(f"/livesystems/{LIVE_SYSTEM}").status_code == 404
    assert aws.cloud.owned_resources() == []


@pytest.mark.rule("A7", "S21")
@pytest.mark.parametrize(
    ("component", "refused"),
    [
        (role(PermissionsBoundary=None), "iam:CreateRole"),
        (role(PermissionsBoundary=READ_ONLY), "iam:CreateRole"),
        (role(Path="/"), "iam:CreateRole"),
        (role(Path="/fractal-clouds/"), "iam:CreateRole"),
        (
            one("AWS::IAM::ManagedPolicy", "worker", ManagedPolicyName="worker", PolicyDocument=rights("s3:*")),
            "iam:CreatePolicy",
        ),
        (
            one("AWS::IAM::InstanceProfile", "worker", InstanceProfileName="w", Path=PATH, Roles=["admin"]),
            "iam:PassRole",
        ),
        (
            one(
                "AWS::IAM::RolePolicy", "worker", RoleName="${own.RoleName}", PolicyName="p", PolicyDocument=rights("*")
            ),
            "",
        ),
    ],
    ids=["no-boundary", "wide-boundary", "no-path", "path-alike", "policy-outside", "role-not-passed", "own-role"],
)
def test_what_leads_to_more_rights_is_refused_and_nothing_of_it_is_made(
    aws: World, component: dict[str, Any], refused: str
) -> None:
    """The last is the counterpart: what is bounded is made."""
    iam = aws.person.client("iam")
    iam.create_role(RoleName="admin", AssumeRolePolicyDocument=json.dumps(trust("ec2")))
    parameters = {name: value for name, value in component["parameters"].items() if value is not None}
    components = [{**component, "parameters": parameters}, *([role("own")] if not refused else [])]
    aws_rights.limit_to(aws.sandbox, components)
    aws.deploy(LIVE_SYSTEM, *components)
    for _ in range(6):
        aws.cycle()
    shown = aws.component(LIVE_SYSTEM, "worker")
    if not refused:
        assert shown["status"] == "Active", shown["message"]
        return
    assert shown["status"] == "Failed"
    assert f"not authorized to perform: {refused}" in shown["message"]
    assert [one["RoleName"] for one in iam.list_roles()["Roles"]] == ["admin"]
    assert iam.list_policies(Scope="Local", PathPrefix="/")["Policies"][0]["PolicyName"] != "worker"


@pytest.mark.rule("A7", "S18", "S21")
def test_a_boundary_is_never_taken_off_or_widened(aws: World) -> None:
    aws_rights.limit_to(aws.sandbox, [role()])
    aws.deploy(LIVE_SYSTEM, role())
    aws.settle()
    aws.deploy(LIVE_SYSTEM, role(PermissionsBoundary=READ_ONLY))
    for _ in range(6):
        aws.cycle()
    assert aws.status(LIVE_SYSTEM, "worker") == "Failed"
    assert "iam:PutRolePermissionsBoundary" in aws.component(LIVE_SYSTEM, "worker")["message"]
    made = aws.person.client("iam").get_role(RoleName="worker")["Role"]
    assert made["PermissionsBoundary"]["PermissionsBoundaryArn"] == BOUNDARY


def _patched_without_test(aws: World, url: str, delay: int) -> dict[str, Any]:
    """What becomes of a patch of the queue alone, under the agent's key and in its name, with no `test` of the tags."""
    control = boto3.client(
        "cloudcontrol",
        region_name=REGION,
        endpoint_url=aws.person.url,
        aws_access_key_id=AGENT_ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=Config(user_agent_extra=f"ls/{LIVE_SYSTEM} component/jobs reason/drift"),
    )
    patch = json.dumps([{"op": "replace", "path": "/DelaySeconds", "value": delay}])
    begun = control.update_resource(TypeName="AWS::SQS::Queue", Identifier=url, PatchDocument=patch)["ProgressEvent"]
    ended: dict[str, Any] = control.get_resource_request_status(RequestToken=begun["RequestToken"])["ProgressEvent"]
    return ended


@pytest.mark.rule("S16", "G1", "S21")
def test_where_tags_decide_a_removal_at_the_last_moment_makes_aws_refuse_the_write(aws: World) -> None:
    """Twice over: by the patch's `test`, and by the policy alone, which refuses the same patch without one."""
    aws_rights.limit_to(aws.sandbox, [queue()])
    aws.deploy(LIVE_SYSTEM, queue())
    aws.settle()
    url, arn = (aws.output(LIVE_SYSTEM, "jobs", name) for name in ("QueueUrl", "Arn"))
    tagging, sqs = aws.person.client("resourcegroupstaggingapi"), aws.person.client("sqs")
    assert _patched_without_test(aws, url, 30)["OperationStatus"] == "SUCCESS", "while it is managed"
    without_test: list[dict[str, Any]] = []

    def release(call: Any) -> None:
        del call
        tagging.untag_resources(ResourceARNList=[arn], TagKeys=["managed-by"])
        without_test.append(_patched_without_test(aws, url, 30))

    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "60"})
    aws.cloud.knobs.before_call(release, times=1, operation="UpdateResource", actor="agent")
    for _ in range(4):
        aws.cycle()
    [refused] = without_test
    assert (refused["OperationStatus"], refused["ErrorCode"]) == ("FAILED", "AccessDenied")
    assert "not authorized to perform: sqs:SetQueueAttributes" in refused["StatusMessage"]
    assert aws.status(LIVE_SYSTEM, "jobs") == "ManualOverride"
    kept = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["DelaySeconds"])["Attributes"]
    assert kept["DelaySeconds"] == "60", "what the person set stays"
