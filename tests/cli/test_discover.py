"""`fractal discover`: what people made by hand becomes a declaration whose deploy changes nothing (G11)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.cli.files import load
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.validation import check
from fractal_sandbox import sandbox_env
from tests.agent_answers import answered_by_agent
from tests.cli.conftest import Fractal, Ran
from tests.offers.aws.cases import example_of, prepare
from tests.offers.aws.examples import EXAMPLES
from tests.world import REGION, Person, World

# One of each way of being found in the quick run: by name in a region, by name in a network, by name in the world.
QUICK = ("AwsVpc", "AwsSecurityGroup", "AwsS3")
KINDS = [
    pytest.param(kind, id=kind.__name__, marks=() if kind.__name__ in QUICK else pytest.mark.soak) for kind in EXAMPLES
]
LIVE_SYSTEM = "discovered"
IMAGE = "ami-03cf127a"
Json = dict[str, Any]
Discover = Callable[..., Ran]


@pytest.fixture
def discover(
    fractal: Fractal, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Discover:
    """The command, with a person's own credentials."""

    def ran(*arguments: str) -> Ran:
        capsys.readouterr()  # the agent, which runs in the same process here, has its log there
        with monkeypatch.context() as patch:
            for name, value in sandbox_env(world.sandbox.url).items():
                patch.setenv(name, value)
            return fractal("discover", "--provider", "aws", "--region", REGION, *arguments)

    return ran


def _read(ran: Ran, folder: Path, output: str = "python") -> Json:
    """What the command wrote, as a deploy reads it; whole and valid."""
    assert ran.code == 0, ran.err
    file = folder / f"found.{'py' if output == 'python' else 'yaml'}"
    file.write_text(ran.out, encoding="utf-8")
    (declared,) = load(str(file))
    check(declared.document, installed().catalog())
    return declared.document


def _by_id(document: Json) -> dict[str, Json]:
    return {component["id"]: component for component in document["components"]}


def _deploy(world: World, document: Json) -> None:
    more = {key: value for key, value in document.items() if key not in ("id", "components")}
    world.deploy(document["id"], *document["components"], **more)


def _plan(world: World, document: Json) -> Json:
    path = f"/livesystems/{document['id']}/plan?timeout=30"
    world.agent.run_once()
    found: Json = answered_by_agent(lambda: world.api.post(path, json=document), world.agent.run_once).json()
    return found


def _named(kind: str, name: str, **tags: str) -> list[Json]:
    pairs = [{"Key": "Name", "Value": name}, *({"Key": key, "Value": value} for key, value in tags.items())]
    return [{"ResourceType": kind, "Tags": pairs}]


def _make_a_shop(world: World) -> dict[str, str]:
    """A VPC with a subnet, a group, a machine and a bucket, made by hand; their ids."""
    ec2, s3 = world.person.ec2, world.person.client("s3")
    net = ec2.create_vpc(CidrBlock="10.1.0.0/16", TagSpecifications=_named("vpc", "Shop VPC", team="x"))["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=net, EnableDnsHostnames={"Value": True})
    web = ec2.create_subnet(VpcId=net, CidrBlock="10.1.1.0/24", TagSpecifications=_named("subnet", "web"))
    subnet = web["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="web", Description="web servers", VpcId=net)["GroupId"]
    ranges = [{"CidrIp": "10.0.0.0/8", "Description": "ops"}]
    pairs = [{"GroupId": group}]
    rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": ranges, "UserIdGroupPairs": pairs}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    where = {"SubnetId": subnet, "SecurityGroupIds": [group], "UserData": "password=secret"}
    made = ec2.run_instances(
        ImageId=IMAGE,
        InstanceType="t3.micro",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=_named("instance", "Web 1"),
        **where,
    )
    s3.create_bucket(Bucket="my.logs", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_bucket_versioning(Bucket="my.logs", VersioningConfiguration={"Status": "Enabled"})
    Person(world.sandbox.url, "us-east-1").client("s3").create_bucket(Bucket="elsewhere")
    return {"net": net, "subnet": subnet, "group": group, "machine": made["Instances"][0]["InstanceId"]}


@pytest.mark.rule("G11", "S7", "G3")
@pytest.mark.parametrize("output", ["python", "yaml"])
def test_what_was_made_by_hand_is_discovered_and_its_deploy_changes_nothing(
    discover: Discover, world: World, tmp_path: Path, output: str
) -> None:
    made = _make_a_shop(world)
    world.sandbox.aws.calls.clear()
    document = _read(discover("--output", output), tmp_path, output)
    assert not world.sandbox.aws.calls.find(writes_only=True), "looking changes nothing"
    found = _by_id(document)
    assert set(found) == {"shop-vpc", "web", "web-security-group", "web-1", "my-logs"}
    assert found["shop-vpc"]["parameters"]["name"] == "Shop VPC"
    assert found["shop-vpc"]["parameters"]["enableDnsHostnames"] is True
    assert found["web"]["parameters"]["vpc"] == "shop-vpc"
    assert found["web-1"]["parameters"]["subnet"] == "web"
    assert found["web-1"]["parameters"]["securityGroups"] == ["web-security-group"]
    assert found["my-logs"]["parameters"] == {"name": "my.logs", "region": REGION, "versioning": "Enabled"} | {
        key: found["my-logs"]["parameters"][key]
        for key in ("blockPublicAccess", "blockedEncryptionTypes", "bucketKeyEnabled", "lifecycleRules", "logging")
    }
    assert "secret" not in json.dumps(document), "what a machine gets at its start may be a secret"
    planned = _plan(world, document)
    assert {part["action"] for part in planned["components"]} == {"leave"}
    assert not planned["hasChanges"]
    assert all(not part["changes"] for part in planned["components"])
    _deploy(world, document)
    world.settle()
    for name in found:
        shown = world.component(LIVE_SYSTEM, name)
        assert shown["status"] == "ManualOverride", shown
        assert "drift" not in shown["outputFields"], shown
    assert not _plan(world, document)["hasChanges"]
    assert not world.sandbox.aws.calls.find(writes_only=True), "nor does the deploy"
    assert world.person.tags(made["net"]) == {"Name": "Shop VPC", "team": "x"}


@pytest.mark.rule("G11", "G8", "G10")
def test_what_was_discovered_can_be_handed_over_without_a_change(
    discover: Discover, world: World, tmp_path: Path
) -> None:
    made = _make_a_shop(world)
    document = _read(discover(), tmp_path)
    _deploy(world, document)
    world.settle()
    world.sandbox.aws.calls.clear()
    assert world.api.post(f"/livesystems/{LIVE_SYSTEM}/force-push").status_code == 202
    world.settle(at_most=30)
    assert {world.status(LIVE_SYSTEM, name) for name in _by_id(document)} == {"Active"}
    written = {one.operation for one in world.sandbox.aws.calls.find(actor="agent", writes_only=True)}
    assert written == {"CreateTags", "DeleteTags", "TagResource", "UntagResource"}, "tags, and nothing else"
    assert world.person.tags(made["net"])["fractal-cloud-owner"] == LIVE_SYSTEM
    world.assert_safe()


@pytest.mark.rule("G11", "O1", "S6")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", KINDS)
def test_every_type_is_discovered_as_it_is_and_imported_where_it_has_an_owner(
    discover: Discover, world: World, tmp_path: Path, kind: Any
) -> None:
    example = example_of(kind, world.person.client)
    prepare(kind, world.person.client)
    world.deploy("ls-a", *example.components)
    world.settle(at_most=40)
    world.close()
    world.open_control_plane("after.db")
    ran = discover("-o", "yaml", "--type", kind.type)
    document = _read(ran, tmp_path, "yaml")
    assert "fractal-cloud-owner is 'ls-a': this LiveSystem will import it, read only" in ran.out
    subject = str(example.declaration["id"])
    assert subject in _by_id(document), ran.out
    _deploy(world, document)
    world.settle()
    by_hand = set(_by_id(document)) - {one["id"] for one in example.components}  # what stood there before
    for name in _by_id(document):
        shown = world.component(LIVE_SYSTEM, name)
        assert shown["status"] == ("ManualOverride" if name in by_hand else "ExternallyManaged"), shown
        assert "drift" not in shown["outputFields"], shown
    world.assert_safe()


@pytest.mark.rule("G11", "S14")
def test_what_cannot_be_found_again_by_its_name_is_left_out_and_said_so(
    discover: Discover, world: World, tmp_path: Path
) -> None:
    ec2 = world.person.ec2
    nameless = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    inside = ec2.create_subnet(VpcId=nameless, CidrBlock="10.1.1.0/24", TagSpecifications=_named("subnet", "inside"))
    twins = [
        ec2.create_vpc(CidrBlock=f"10.{n}.0.0/16", TagSpecifications=_named("vpc", "twin"))["Vpc"]["VpcId"]
        for n in (2, 3)
    ]
    ran = discover("--type", "AwsVpc", "--type", "awssubnet")
    assert _read(ran, tmp_path)["components"] == []
    assert f"AwsVpc {nameless}: it has no name to find it by; give it one" in ran.out
    assert f"AwsSubnet {inside['Subnet']['SubnetId']}: AwsVpc {nameless} is left out" in ran.out
    assert all(f"AwsVpc {one}: several are named 'twin'; rename all but one" in ran.out for one in twins)
    assert "nothing was found that can be declared" in ran.err


@pytest.mark.rule("G11")
def test_what_a_chosen_type_refers_to_comes_along(discover: Discover, world: World, tmp_path: Path) -> None:
    _make_a_shop(world)
    assert set(_by_id(_read(discover("--type", "AwsSubnet"), tmp_path))) == {"shop-vpc", "web"}
    with_machine = _by_id(_read(discover("--type", "AwsEc2Instance"), tmp_path))
    assert set(with_machine) == {"shop-vpc", "web", "web-security-group", "web-1"}


@pytest.mark.rule("G11", "T7", "S8")
def test_comments_say_whose_a_resource_is(discover: Discover, world: World) -> None:
    made = _make_a_shop(world)
    world.person.tag(made["net"], fractal_cloud_owner="ls-team-a")
    world.person.tag(made["subnet"], managed_by="terraform")
    out = discover().out
    assert f"# {made['net']}\n# fractal-cloud-owner is 'ls-team-a': this LiveSystem will import it" in out
    assert (
        f"# {made['subnet']}\n# managed-by is 'terraform': Fractal changes nothing here until that tag is gone" in out
    )


@pytest.mark.rule("G11")
@pytest.mark.parametrize("output", ["python", "yaml"])
@pytest.mark.parametrize("name", ["1e3", "no", "Überbau «#1»", 'quo"te', "new\\nline", "*", "- x", "class"])
def test_any_name_survives(discover: Discover, world: World, tmp_path: Path, name: str, output: str) -> None:
    world.person.ec2.create_vpc(CidrBlock="10.1.0.0/16", TagSpecifications=_named("vpc", name))
    (component,) = _read(discover("--type", "AwsVpc", "-o", output), tmp_path, output)["components"]
    assert component["parameters"].get("name", component["id"]) == name


@pytest.mark.rule("G11", "S0")
def test_what_could_not_be_read_is_reported_and_the_command_fails(discover: Discover, world: World) -> None:
    _make_a_shop(world)
    denied: Json = {"code": "UnauthorizedOperation", "status": 403, "times": None}
    world.sandbox.aws.knobs.fail(operation="DescribeSubnets", **denied)
    world.sandbox.aws.knobs.fail(operation="DescribeVpcAttribute", **denied)
    ran = discover()
    assert ran.code == 1
    assert f"NetworkAndCompute.IaaS.AwsSubnet in {REGION}" in ran.words
    assert "# enableDnsHostnames, enableDnsSupport could not be read" in ran.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--provider", "nowhere", "--region", "x"), "provider 'nowhere' is not installed here"),
        (("--provider", "aws"), "Name a region"),
        (("--provider", "aws", "--region", REGION, "--type", "AwsVcp"), "did you mean 'AwsVpc'"),
        (("--provider", "aws", "--region", REGION, "--id", "No_Id"), "is no id"),
    ],
)
def test_bad_usage_is_reported(fractal: Fractal, arguments: tuple[str, ...], words: str) -> None:
    ran = fractal("discover", *arguments)
    assert ran.code == 2
    assert words in ran.words
