"""`fractal discover` of types by AWS's own names: drafted from their schemas, silent when deployed (G11)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.cli.files import load
from fractal_cloud.offers.installed_types import InstalledTypes
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.validation import check
from fractal_sandbox import sandbox_env
from tests.cli.conftest import Fractal, Ran
from tests.world import REGION, World

QUEUE, TOPIC, GROUP = "AWS::SQS::Queue", "AWS::SNS::Topic", "AWS::Logs::LogGroup"
SUBSCRIPTION, ROLE = "AWS::SNS::Subscription", "AWS::IAM::Role"
STREAM, GATEWAY, TABLE = "AWS::Kinesis::Stream", "AWS::EC2::TransitGateway", "AWS::EC2::RouteTable"
APP, FUNCTION, SECRET = "AWS::Amplify::App", "AWS::Lambda::Function", "AWS::SecretsManager::Secret"
LIVE_SYSTEM = "discovered"
Json = dict[str, Any]
Discover = Callable[..., Ran]


@pytest.fixture
def discover(
    fractal: Fractal, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Discover:
    """The command, with a person's own credentials, for these types."""
    world.sandbox.aws.lift_limits()  # what an agent's rights are is tried where they are printed

    def ran(*types: str, output: str = "yaml") -> Ran:
        capsys.readouterr()
        named = [word for one in types for word in ("--type", one)]
        with monkeypatch.context() as patch:
            for name, value in sandbox_env(world.sandbox.url).items():
                patch.setenv(name, value)
            return fractal("discover", "--provider", "aws", "--region", REGION, "-o", output, *named)

    return ran


def _read(ran: Ran, folder: Path, output: str = "yaml") -> Json:
    """What the command wrote, as a deploy reads it; whole and valid."""
    assert ran.code == 0, ran.err
    file = folder / f"found.{'py' if output == 'python' else 'yaml'}"
    file.write_text(ran.out, encoding="utf-8")
    (declared,) = load(str(file))
    check(declared.document, InstalledTypes.of(installed()))
    return declared.document


def _by_id(document: Json) -> dict[str, Json]:
    return {component["id"]: component["parameters"] for component in document["components"]}


def _make_messaging(world: World) -> dict[str, str]:
    """Queues, a topic with a subscription, a log group, a role and an alarm, made by hand."""
    sqs, sns, logs = (world.person.client(one) for one in ("sqs", "sns", "logs"))
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 3})
    jobs = sqs.create_queue(QueueName="jobs", Attributes={"RedrivePolicy": redrive}, tags={"team": "x"})["QueueUrl"]
    topic = sns.create_topic(Name="News_of-day")["TopicArn"]
    _create(world, SUBSCRIPTION, TopicArn=topic, Protocol="sqs", Endpoint=arn)
    logs.create_log_group(logGroupName="/app/shop")
    logs.put_retention_policy(logGroupName="/app/shop", retentionInDays=7)
    return {"dead": arn, "jobs": jobs, "topic": topic}


def _create(world: World, component_type: str, **properties: Any) -> str:
    """Make a resource by Cloud Control, as a person; return its identifier."""
    tools = world.person.client("cloudcontrol")
    made = tools.create_resource(TypeName=component_type, DesiredState=json.dumps(properties))["ProgressEvent"]
    done = tools.get_resource_request_status(RequestToken=made["RequestToken"])["ProgressEvent"]
    assert done["OperationStatus"] == "SUCCESS", done
    return str(done["Identifier"])


def _tags(**tags: str) -> list[dict[str, str]]:
    return [{"Key": key.replace("__", ":").replace("_", "-"), "Value": value} for key, value in tags.items()]


def _deploy(world: World, document: Json) -> None:
    world.deploy(document["id"], *document["components"])
    world.settle(at_most=30)


def _assert_silent(world: World, document: Json) -> None:
    for name in _by_id(document):
        shown = world.component(LIVE_SYSTEM, name)
        assert shown["status"] == "ManualOverride", shown
        assert "drift" not in shown["outputFields"], shown


@pytest.mark.rule("G11", "S7", "G8")
@pytest.mark.parametrize("output", ["python", "yaml"])
def test_what_was_made_by_hand_is_drafted_and_its_deploy_is_silent(
    discover: Discover, world: World, tmp_path: Path, output: str
) -> None:
    _make_messaging(world)
    world.sandbox.aws.calls.clear()
    ran = discover(QUEUE, TOPIC, SUBSCRIPTION, GROUP, output=output)
    document = _read(ran, tmp_path, output)
    found = _by_id(document)
    assert set(found) == {"dead", "jobs", "news-of-day", "news-of-day-subscription", "app-shop"}, ran.out
    assert found["jobs"]["RedrivePolicy"] == {"deadLetterTargetArn": "${dead.Arn}", "maxReceiveCount": 3}
    feed = {"TopicArn": "${news-of-day.TopicArn}", "Protocol": "sqs", "Endpoint": "${dead.Arn}"}
    assert found["news-of-day-subscription"] == feed
    assert found["app-shop"] == {"region": REGION, "LogGroupName": "/app/shop", "RetentionInDays": 7}
    _deploy(world, document)
    _assert_silent(world, document)
    assert not world.sandbox.aws.calls.find(writes_only=True), "neither looking nor the deploy changes anything"
    _hand_over(world, document)


def _hand_over(world: World, document: Json) -> None:
    """Hand all of it to the agent: tags are written, and nothing else."""
    before, written = _without_tags(world, document), len(_agents_writes(world))
    assert world.api.post(f"/livesystems/{LIVE_SYSTEM}/force-push").status_code == 202
    world.settle(at_most=40)
    statuses = {name: world.status(LIVE_SYSTEM, name) for name in _by_id(document)}
    assert statuses == dict.fromkeys(statuses, "Active")
    assert set(_agents_writes(world)[written:]) <= {"TagResources", "UntagResources", "UpdateResource"}
    assert _without_tags(world, document) == before
    world.assert_safe()


def _agents_writes(world: World) -> list[str]:
    return [one.operation for one in world.sandbox.aws.calls.find(actor="agent", writes_only=True)]


def _without_tags(world: World, document: Json) -> Json:
    """The properties of everything of these types, as Cloud Control shows them, but for the tags."""
    tools, found = world.person.client("cloudcontrol"), {}
    for kind in sorted({one["type"] for one in document["components"]}):
        for one in tools.list_resources(TypeName=kind)["ResourceDescriptions"]:
            shown = tools.get_resource(TypeName=kind, Identifier=one["Identifier"])["ResourceDescription"]["Properties"]
            found[one["Identifier"]] = {name: value for name, value in json.loads(shown).items() if name != "Tags"}
    assert len(found) >= len(document["components"])
    return found


@pytest.mark.rule("G11", "S7", "G8", "T7")
def test_types_that_only_cloud_control_has_are_drafted_from_their_schemas(
    discover: Discover, world: World, tmp_path: Path
) -> None:
    allowed = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    trust = {"Version": "2012-10-17", "Statement": [allowed]}
    _create(world, ROLE, RoleName="worker", AssumeRolePolicyDocument=trust, Tags=_tags(team="x"))
    _create(world, STREAM, Name="Clicks.x", ShardCount=2)
    _create(world, GATEWAY, Description="hub of ${hub.it}", Tags=_tags(Name="Hub"))
    nameless = _create(world, GATEWAY, Description="no name")
    _create(world, GATEWAY, Description="of a stack", Tags=_tags(Name="stacked", aws__cloudformation__stack_name="web"))
    world.sandbox.aws.calls.clear()
    ran = discover(ROLE, STREAM, GATEWAY)
    document = _read(ran, tmp_path)
    assert f"{GATEWAY} {nameless}: it has no name to find it by" in ran.out
    assert "the CloudFormation stack 'web' manages it" in ran.out
    assert set(_by_id(document)) == {"worker", "clicks-x", "hub"}
    _deploy(world, document)
    _assert_silent(world, document)
    _hand_over(world, document)


@pytest.mark.rule("G11", "A8")
def test_no_secret_stands_in_a_draft(discover: Discover, world: World, tmp_path: Path) -> None:
    variables = [{"Name": "DB_PASSWORD", "Value": "hunter2"}, {"Name": "MODE", "Value": "fast"}]
    _create(world, APP, Name="site", Description="a site", EnvironmentVariables=variables)
    _create(world, APP, Name="built", Description="by a program", BuildSpec="run:\n  echo hunter2\n")
    _create(world, APP, Name="called", Description="https://me:hunter2@example.com/")
    code, role = {"S3Bucket": "code", "S3Key": "app.zip"}, "arn:aws:iam::123456789012:role/worker"
    _create(world, FUNCTION, FunctionName="run", Role=role, Code=code)
    _create(world, SECRET, Name="db", SecretString="hunter2")
    ran = discover(APP, FUNCTION, SECRET)
    assert "hunter2" not in ran.out + ran.err
    document = _read(ran, tmp_path)
    found = _by_id(document)
    assert set(found) == {"site", "built", "called", "db"}
    assert found["site"]["Description"] == "a site"
    assert "EnvironmentVariables is left out: EnvironmentVariables" in ran.out
    assert "looks like a secret by its name" in ran.out
    assert f"{FUNCTION} run: it needs Code, which the cloud never returns: declare it by hand" in ran.out
    assert "SecretString" in ran.out
    _deploy(world, document)
    _assert_silent(world, document)


@pytest.mark.rule("G11", "S25")
def test_types_with_classes_are_preferred_and_referred_to(discover: Discover, world: World, tmp_path: Path) -> None:
    ec2 = world.person.ec2
    named = [{"ResourceType": "vpc", "Tags": [{"Key": "Name", "Value": "Shop"}]}]
    net = ec2.create_vpc(CidrBlock="10.1.0.0/16", TagSpecifications=named)["Vpc"]["VpcId"]
    _create(world, TABLE, VpcId=net, Tags=_tags(Name="ways"))
    document = _read(discover("AwsVpc", "AWS::EC2::VPC", TABLE), tmp_path)
    types = {component["id"]: component["type"] for component in document["components"]}
    assert types == {"shop": "NetworkAndCompute.IaaS.AwsVpc", "ways": TABLE}
    assert _by_id(document)["ways"]["VpcId"] == "${shop.vpcId}"
    _deploy(world, document)
    _assert_silent(world, document)


@pytest.mark.rule("G11", "S25")
def test_a_part_brings_its_parent_along(discover: Discover, world: World, tmp_path: Path) -> None:
    _make_messaging(world)
    found = _by_id(_read(discover(SUBSCRIPTION), tmp_path))
    assert set(found) == {"news-of-day", "news-of-day-subscription"}
    assert found["news-of-day-subscription"]["TopicArn"] == "${news-of-day.TopicArn}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("AWS::SQS::Queu", "did you mean 'AWS::SQS::Queue'"),
        ("AWS::Nothing::AtAll", "is no type of AWS that is known here"),
        ("batch/v1/CronJob", "type of this provider"),
        ("AWS::IAM::RolePolicy", "AWS::IAM::RolePolicy cannot be discovered: it is never listed by AWS"),
        ("AWS::ApiGateway::Stage", "is listed by AWS only with RestApiId given"),
    ],
)
def test_types_that_cannot_be_discovered_are_refused(fractal: Fractal, arguments: str, words: str) -> None:
    ran = fractal("discover", "--provider", "aws", "--region", REGION, "--type", arguments)
    assert ran.code == 2
    assert words in ran.words


def test_kinds_of_a_cluster_are_refused_with_what_drafts_them(fractal: Fractal) -> None:
    ran = fractal("discover", "--provider", "kubernetes", "--namespace", "shop", "--type", "batch/v1/CronJob")
    assert ran.code == 2
    assert "batch/v1/CronJob cannot be discovered" in ran.words
    assert "fractal convert" in ran.words
