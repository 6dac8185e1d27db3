"""Resources of AWS by their own type names, through control plane, agent and sandbox: their whole lives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, REGION, one, queue
from tests.world import World, vpc, world

TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
READ = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
HANDSHAKE = [{"Key": "managed-by", "Value": "fractal-cloud"}, {"Key": "fractal-cloud", "Value": "reconcile"}]


@pytest.fixture(scope="module")
def running() -> Iterator[Sandbox]:
    with Sandbox(port=0) as sandbox:
        yield sandbox


@pytest.fixture
def aws(running: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world(running, tmp_path, monkeypatch, cycle_seconds=0.02) as made:
        running.aws.lift_limits()  # what its rights are is tried where they are printed
        yield made
        made.assert_safe()


def tags(aws: World, arn: str) -> dict[str, str]:
    found = aws.person.client("resourcegroupstaggingapi").get_resources(ResourceARNList=[arn])
    return {tag["Key"]: tag["Value"] for one in found["ResourceTagMappingList"] for tag in one["Tags"]}


@pytest.mark.rule("S4", "T2", "S12", "S20")
def test_a_queue_is_created_corrected_and_deleted(aws: World) -> None:
    aws.deploy(LIVE_SYSTEM, queue())
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "jobs") == "Active", aws.component(LIVE_SYSTEM, "jobs")
    arn = aws.output(LIVE_SYSTEM, "jobs", "Arn")
    assert tags(aws, arn) == {"managed-by": "fractal-cloud", "fractal-cloud-owner": LIVE_SYSTEM}
    url = aws.output(LIVE_SYSTEM, "jobs", "QueueUrl")
    sqs = aws.person.client("sqs")
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "60"})
    aws.settle()
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["DelaySeconds"])["Attributes"]["DelaySeconds"] == "5"
    results = aws.cycle()
    assert not any(result.writes or result.changes for result in results)
    aws.delete(LIVE_SYSTEM)
    aws.settle()
    assert "QueueUrls" not in sqs.list_queues()


@pytest.mark.rule("G1", "G3", "G7", "S9", "T3")
def test_the_glass_is_broken_and_handed_back_by_the_vendors_command_line(aws: World) -> None:
    aws.deploy(LIVE_SYSTEM, queue())
    aws.settle()
    arn = aws.output(LIVE_SYSTEM, "jobs", "Arn")
    url = aws.output(LIVE_SYSTEM, "jobs", "QueueUrl")
    tagging = aws.person.client("resourcegroupstaggingapi")
    tagging.untag_resources(ResourceARNList=[arn], TagKeys=["managed-by"])
    aws.person.client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "60"})
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "jobs") == "ManualOverride"
    assert aws.drift(LIVE_SYSTEM, "jobs") == {"DelaySeconds": {"declared": 5, "actual": 60}}
    tagging.tag_resources(ResourceARNList=[arn], Tags={"managed-by": "fractal-cloud", "fractal-cloud": "reconcile"})
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "jobs") == "Active"
    assert aws.drift(LIVE_SYSTEM, "jobs") is None
    assert tags(aws, arn) == {"managed-by": "fractal-cloud", "fractal-cloud-owner": LIVE_SYSTEM}


@pytest.mark.rule("S25", "S17")
def test_resources_with_parts_refer_to_each_other(aws: World) -> None:
    aws.deploy(
        LIVE_SYSTEM,
        queue(),
        one("AWS::SNS::Topic", "news", region=REGION, TopicName="news"),
        one(
            "AWS::SNS::Subscription",
            "feed",
            TopicArn="${news.TopicArn}",
            Protocol="sqs",
            Endpoint="${jobs.Arn}",
            RawMessageDelivery=True,
        ),
        one("AWS::IAM::Role", "worker", RoleName="worker", AssumeRolePolicyDocument=TRUST),
        one("AWS::IAM::RolePolicy", "reads", RoleName="${worker.RoleName}", PolicyName="reads", PolicyDocument=READ),
        vpc(),
        one("AWS::EC2::InternetGateway", "gate", region=REGION),
        one(
            "AWS::EC2::VPCGatewayAttachment",
            "door",
            VpcId="${net.vpcId}",
            InternetGatewayId="${gate.InternetGatewayId}",
        ),
        one("AWS::EC2::RouteTable", "ways", region=REGION, VpcId="${net.vpcId}"),
        one(
            "AWS::EC2::Route",
            "out",
            "door",
            RouteTableId="${ways.RouteTableId}",
            DestinationCidrBlock="0.0.0.0/0",
            GatewayId="${gate.InternetGatewayId}",
        ),
        one("AWS::Logs::LogGroup", "logs", region=REGION, LogGroupName="/app/shop", RetentionInDays=7),
        one(
            "AWS::DynamoDB::Table",
            "orders",
            region=REGION,
            TableName="orders",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        ),
    )
    aws.settle(at_most=25)
    for component in (
        "jobs",
        "news",
        "feed",
        "worker",
        "reads",
        "net",
        "gate",
        "door",
        "ways",
        "out",
        "logs",
        "orders",
    ):
        assert aws.status(LIVE_SYSTEM, component) == "Active", aws.component(LIVE_SYSTEM, component)
    aws.restart_agent()
    results = aws.cycle(2)
    assert not any(result.writes for result in results)
    aws.delete(LIVE_SYSTEM)
    aws.settle(at_most=25)
    left = aws.person.client("resourcegroupstaggingapi").get_resources()["ResourceTagMappingList"]
    assert left == []


@pytest.mark.rule("G11", "G10", "T4")
def test_what_exists_is_found_by_its_name_and_taken_over_on_request(aws: World) -> None:
    sqs = aws.person.client("sqs")
    sqs.create_queue(QueueName="jobs", Attributes={"DelaySeconds": "60"}, tags={"team": "blue"})
    aws.deploy(LIVE_SYSTEM, queue())
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "jobs") == "ManualOverride"
    assert aws.drift(LIVE_SYSTEM, "jobs") == {"DelaySeconds": {"declared": 5, "actual": 60}}
    aws.force_push(LIVE_SYSTEM, "jobs")
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "jobs") == "Active"
    expected = {"team": "blue", "managed-by": "fractal-cloud", "fractal-cloud-owner": LIVE_SYSTEM}
    assert tags(aws, aws.output(LIVE_SYSTEM, "jobs", "Arn")) == expected


@pytest.mark.rule("S18")
def test_what_cannot_change_in_place_destroys_nothing(aws: World) -> None:
    aws.deploy(LIVE_SYSTEM, queue())
    aws.settle()
    aws.deploy(LIVE_SYSTEM, queue(FifoQueue=True, DelaySeconds=7))
    aws.settle()
    component = aws.component(LIVE_SYSTEM, "jobs")
    assert component["status"] == "Failed"
    assert "FifoQueue" in component["message"]
    sqs = aws.person.client("sqs")
    [url] = sqs.list_queues()["QueueUrls"]
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["DelaySeconds"])["Attributes"]["DelaySeconds"] == "7"


@pytest.mark.rule("T7")
def test_what_belongs_to_a_stack_is_left_to_it(aws: World) -> None:
    sqs = aws.person.client("sqs")
    sqs.create_queue(
        QueueName="jobs", tags={"aws:cloudformation:stack-name": "billing", "fractal-cloud-owner": LIVE_SYSTEM}
    )
    aws.deploy(LIVE_SYSTEM, queue())
    aws.settle()
    component = aws.component(LIVE_SYSTEM, "jobs")
    assert component["status"] == "ManualOverride"
    assert "CloudFormation stack billing" in component["message"]


@pytest.mark.rule("S13", "S17")
def test_a_slow_creation_is_made_once(aws: World) -> None:
    """Whether AWS names it only in the end (the queue) or from the beginning: until it shows, it is being created."""
    aws.cloud.knobs.slow_creation(kind="AWS::*", reads=16)
    logs = one("AWS::Logs::LogGroup", "logs", region=REGION, LogGroupName="/app/shop")
    aws.deploy(LIVE_SYSTEM, queue(), logs)
    for _ in range(2):
        aws.cycle()
        assert {aws.status(LIVE_SYSTEM, name) for name in ("jobs", "logs")} <= {"Instantiating", "Active"}
        aws.restart_agent()
    aws.settle(at_most=25)
    assert {aws.status(LIVE_SYSTEM, name) for name in ("jobs", "logs")} == {"Active"}
    assert len(aws.person.client("sqs").list_queues()["QueueUrls"]) == 1


@pytest.mark.rule("S21")
def test_a_request_that_fails_later_says_why(aws: World) -> None:
    aws.cloud.knobs.refuse_request(
        type_name="AWS::SQS::Queue", operation="CREATE", code="ServiceLimitExceeded", message="too many queues"
    )
    aws.deploy(LIVE_SYSTEM, queue())
    aws.cycle()
    assert "too many queues" in aws.component(LIVE_SYSTEM, "jobs")["message"]
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "jobs") == "Active"


@pytest.mark.rule("S4a", "S17", "S21")
def test_what_never_came_to_be_is_not_called_gone(aws: World) -> None:
    rule = {"type_name": "AWS::Logs::LogGroup", "operation": "CREATE", "code": "AccessDenied", "times": 2}
    aws.cloud.knobs.refuse_request(**rule, message="not authorized to perform logs:CreateLogGroup")
    aws.deploy(LIVE_SYSTEM, one("AWS::Logs::LogGroup", "logs", region=REGION, LogGroupName="/app/shop"))
    said = set()
    for _ in range(12):
        aws.cycle()
        component = aws.component(LIVE_SYSTEM, "logs")
        said.add(component["message"])
        assert component["status"] != "Missing", component["message"]
        assert "held data" not in component["message"]
    assert any("not authorized to perform logs:CreateLogGroup" in message for message in said)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "logs") == "Active"


def _patches(aws: World, identifier: str) -> list[Any]:
    """The patches that the agent sent of a resource."""
    found = aws.cloud.calls.find(actor="agent", operation="UpdateResource")
    return [call for call in found if call.call.parameters["Identifier"] == identifier]


@pytest.mark.rule("S16", "G1", "T10")
def test_where_tags_cannot_be_written_behind_a_test_a_lost_race_is_reported(aws: World) -> None:
    """A patch of a function must bring its code, which no read shows: single tags go by the tagging API."""
    role = one("AWS::IAM::Role", "worker", RoleName="worker", AssumeRolePolicyDocument=TRUST)
    code = {"ZipFile": "def handler(event, context):\n    return 1\n"}
    own = {"FunctionName": "works", "Runtime": "python3.12", "Handler": "index.handler", "Code": code}
    function = one("AWS::Lambda::Function", "works", region=REGION, Role="${worker.Arn}", **own)
    aws.deploy(LIVE_SYSTEM, role, function)
    aws.settle()
    arn = aws.output(LIVE_SYSTEM, "works", "Arn")
    tagging = aws.person.client("resourcegroupstaggingapi")

    def release(call: Any) -> None:
        del call
        tagging.untag_resources(ResourceARNList=[arn], TagKeys=["managed-by"])

    tagging.untag_resources(ResourceARNList=[arn], TagKeys=["managed-by"])
    aws.settle()
    aws.cloud.knobs.before_call(release, times=1, operation="UntagResources", actor="agent")
    tagging.tag_resources(ResourceARNList=[arn], Tags={"managed-by": "fractal-cloud", "fractal-cloud": "reconcile"})
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "works") == "ManualOverride"
    assert "managed-by" not in tags(aws, arn), "what the person took off stays off"
    said = [event["message"] for event in aws.events(LIVE_SYSTEM) if event["kind"] == "RaceLost"]
    assert len(said) == 1, said


@pytest.mark.rule("A8", "T1", "G1", "G7", "S9")
def test_what_no_read_shows_and_every_patch_needs_stops_neither_tags_nor_corrections(aws: World) -> None:
    role = one("AWS::IAM::Role", "worker", RoleName="worker", AssumeRolePolicyDocument=TRUST)
    code = {"ZipFile": "def handler(event, context):\n    return 1\n"}
    function = one(
        "AWS::Lambda::Function",
        "works",
        region=REGION,
        FunctionName="works",
        Role="${worker.Arn}",
        Runtime="python3.12",
        Handler="index.handler",
        Code=code,
        Timeout=60,
    )
    aws.deploy(LIVE_SYSTEM, role, function)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "works") == "Active", aws.component(LIVE_SYSTEM, "works")
    control = aws.person.client("cloudcontrol")
    patch = json.dumps(
        [{"op": "replace", "path": "/Timeout", "value": 5}, {"op": "add", "path": "/Code", "value": code}]
    )
    where = {"TypeName": "AWS::Lambda::Function", "Identifier": "works"}
    assert aws.glass(LIVE_SYSTEM, "works", "break", reason="it burns").status_code == 202
    control.update_resource(**where, PatchDocument=patch)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "works") == "ManualOverride"
    assert aws.drift(LIVE_SYSTEM, "works") == {"Timeout": {"declared": 60, "actual": 5}}
    assert aws.glass(LIVE_SYSTEM, "works", "readopt").status_code == 202
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "works") == "Active"
    held = json.loads(control.get_resource(**where)["ResourceDescription"]["Properties"])
    assert held["Timeout"] == 60
    patches = [json.loads(call.call.parameters["PatchDocument"]) for call in _patches(aws, "works")]
    assert patches, "the value was corrected by a patch"
    assert all(patch[0]["op"] == "test" and patch[0]["path"] == "/Tags" for patch in patches), patches
    assert tags(aws, held["Arn"]) == {"managed-by": "fractal-cloud", "fractal-cloud-owner": LIVE_SYSTEM}


@pytest.mark.rule("S17", "T2", "G1", "G7", "O10")
def test_a_launch_template_whose_tags_its_own_service_keeps_lives_like_all_others(aws: World) -> None:
    data = {"InstanceType": "t3.micro"}
    template = one(
        "AWS::EC2::LaunchTemplate", "template", region=REGION, LaunchTemplateName="template", LaunchTemplateData=data
    )
    aws.deploy(LIVE_SYSTEM, template)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "template") == "Active", aws.component(LIVE_SYSTEM, "template")
    resource_id = aws.component(LIVE_SYSTEM, "template")["resourceId"]
    aws.person.break_glass(resource_id)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "template") == "ManualOverride"
    aws.person.hand_back(resource_id)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "template") == "Active"
    aws.delete(LIVE_SYSTEM)
    aws.settle()
    control = aws.person.client("cloudcontrol")
    assert control.list_resources(TypeName="AWS::EC2::LaunchTemplate")["ResourceDescriptions"] == []


@pytest.mark.rule("S17", "G1", "G7", "O10")
def test_a_managed_policy_is_tagged_right_after_its_creation(aws: World) -> None:
    policy = one("AWS::IAM::ManagedPolicy", "rights", ManagedPolicyName="rights", PolicyDocument=READ)
    aws.deploy(LIVE_SYSTEM, policy)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "rights") == "Active", aws.component(LIVE_SYSTEM, "rights")
    iam = aws.person.client("iam")
    arn = aws.output(LIVE_SYSTEM, "rights", "PolicyArn")
    iam.untag_policy(PolicyArn=arn, TagKeys=["managed-by"])
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "rights") == "ManualOverride"
    iam.tag_policy(PolicyArn=arn, Tags=HANDSHAKE)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "rights") == "Active"
    aws.delete(LIVE_SYSTEM)
    aws.settle()
    assert arn not in [one["Arn"] for one in iam.list_policies(Scope="Local")["Policies"]]


@pytest.mark.rule("S17", "G1", "G7", "O10")
def test_an_instance_profile_is_tagged_right_after_its_creation(aws: World) -> None:
    role = one("AWS::IAM::Role", "worker", RoleName="worker", AssumeRolePolicyDocument=TRUST)
    profile = one(
        "AWS::IAM::InstanceProfile", "profile", InstanceProfileName="profile", Roles=["${worker.RoleName}"], Path="/"
    )
    aws.deploy(LIVE_SYSTEM, role, profile)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "profile") == "Active", aws.component(LIVE_SYSTEM, "profile")
    iam = aws.person.client("iam")
    named = {"InstanceProfileName": "profile"}
    iam.remove_role_from_instance_profile(RoleName="worker", **named)
    aws.settle()
    assert [one["RoleName"] for one in iam.get_instance_profile(**named)["InstanceProfile"]["Roles"]] == ["worker"]
    iam.untag_instance_profile(TagKeys=["managed-by"], **named)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "profile") == "ManualOverride"
    iam.tag_instance_profile(Tags=HANDSHAKE, **named)
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "profile") == "Active"
    aws.delete(LIVE_SYSTEM)
    aws.settle()
    assert iam.list_instance_profiles()["InstanceProfiles"] == []


@pytest.mark.rule("S25", "O10")
def test_two_things_whose_parts_name_each_other_are_deleted(aws: World) -> None:
    code = {"ZipFile": "def handler(event, context):\n    return event\n"}
    aws.deploy(
        LIVE_SYSTEM,
        one("AWS::SNS::Topic", "news", region=REGION, TopicName="news"),
        one("AWS::IAM::Role", "reader-role", RoleName="reader", AssumeRolePolicyDocument=TRUST),
        one(
            "AWS::Lambda::Function",
            "reader",
            region=REGION,
            FunctionName="reader",
            Role="${reader-role.Arn}",
            Runtime="python3.12",
            Handler="index.handler",
            Code=code,
        ),
        one(
            "AWS::Lambda::Permission",
            "may-call",
            FunctionName="${reader.FunctionName}",
            Action="lambda:InvokeFunction",
            Principal="sns.amazonaws.com",
            SourceArn="${news.TopicArn}",
        ),
        one("AWS::SNS::Subscription", "feed", TopicArn="${news.TopicArn}", Protocol="lambda", Endpoint="${reader.Arn}"),
    )
    aws.settle()
    assert {aws.status(LIVE_SYSTEM, name) for name in ("news", "reader", "may-call", "feed")} == {"Active"}
    aws.delete(LIVE_SYSTEM)
    aws.settle()
    assert aws.api.get(f"/livesystems/{LIVE_SYSTEM}").status_code == 404
    assert aws.cloud.owned_resources() == []


@pytest.mark.rule("A8", "S18", "C2")
def test_what_only_the_creation_sets_and_no_read_returns_is_no_drift_to_an_agent_that_knows_no_digest_of_it(
    aws: World,
) -> None:
    def authority(name: str) -> dict[str, Any]:
        return one(
            "AWS::ACMPCA::CertificateAuthority",
            "authority",
            region=REGION,
            Type="ROOT",
            KeyAlgorithm="RSA_2048",
            SigningAlgorithm="SHA256WITHRSA",
            Subject={"CommonName": name},
        )

    aws.deploy(LIVE_SYSTEM, authority("shop.example.org"))
    aws.settle()
    aws.deploy(LIVE_SYSTEM, authority("other.example.org"))
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "authority") == "Failed", "whoever made it knows that it is another"
    aws.deploy(LIVE_SYSTEM, authority("shop.example.org"))
    aws.restart_agent()
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "authority") == "Active", aws.component(LIVE_SYSTEM, "authority")


@pytest.mark.rule("S23", "S20")
def test_an_idle_cycle_lists_in_bulk_and_sweeps_within_its_budget(
    running: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(running, tmp_path, monkeypatch, cycle_seconds=0.02, sweep_budget=2) as aws:
        running.aws.lift_limits()
        aws.deploy(LIVE_SYSTEM, *(queue(f"jobs-{number}", QueueName=f"jobs-{number}") for number in range(6)))
        aws.settle()
        before = len(aws.cloud.calls.find(actor="agent"))
        aws.cycle()
        calls = [one.operation for one in aws.cloud.calls.find(actor="agent")[before:]]
        assert calls.count("GetResources") == 1
        assert calls.count("GetResource") == 2, "the budget of sweeps, not one for each of the six"
