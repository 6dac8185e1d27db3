"""What carries no tags lives and ends with what it belongs to (S25): one life of each part that people use most."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.tags import MANAGED_BY, OURS, RECONCILE, RECONCILE_VALUE
from fractal_cloud.offers.aws.resources.tables.places import home_region
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.testing import OfferExample
from fractal_sandbox import Sandbox
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE
from tests.offers.aws.example import component
from tests.offers.aws.examples import EXAMPLES
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, REGION, one
from tests.offers.aws_resources.examples import ACCOUNT, allowing
from tests.offers.aws_resources.sampling import described, example_of
from tests.offers.aws_resources.worlds import GenericWorld, generic_world
from tests.orphans import assert_nothing_is_orphaned

PARENT, PART, READER = "one", "part", "reader"


@dataclass(frozen=True)
class Part:
    """``names``: the property that names the parent, and the parent's output in it. ``change``: another value.

    Of a parent with a class of its own, the key says that beside the part's type.
    """

    parent: str
    names: tuple[str, str]
    parameters: Mapping[str, Any]
    change: Mapping[str, Any] = field(default_factory=dict)


PARTS: Mapping[str, Part] = {
    "AWS::EC2::Route": Part(
        "AWS::EC2::RouteTable",
        ("RouteTableId", "RouteTableId"),
        {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-0123456789abcdef0"},
        {"GatewayId": "igw-0123456789abcdef1"},
    ),
    "AWS::IAM::RolePolicy": Part(
        "AWS::IAM::Role",
        ("RoleName", "RoleName"),
        {"PolicyName": "reads", "PolicyDocument": allowing("s3:GetObject")},
        {"PolicyDocument": allowing("s3:PutObject")},
    ),
    "AWS::S3::BucketPolicy": Part(
        "AWS::S3::Bucket",
        ("Bucket", "BucketName"),
        {"PolicyDocument": allowing("s3:GetObject")},
        {"PolicyDocument": allowing("s3:PutObject")},
    ),
    f"AWS::S3::BucketPolicy of {AwsS3.type}": Part(
        AwsS3.type,
        ("Bucket", "bucketName"),
        {"PolicyDocument": allowing("s3:GetObject")},
        {"PolicyDocument": allowing("s3:PutObject")},
    ),
    "AWS::SQS::QueueInlinePolicy": Part(
        "AWS::SQS::Queue",
        ("Queue", "QueueUrl"),
        {"PolicyDocument": allowing("sqs:SendMessage")},
        {"PolicyDocument": allowing("sqs:ReceiveMessage")},
    ),
    "AWS::SNS::TopicInlinePolicy": Part(
        "AWS::SNS::Topic",
        ("TopicArn", "TopicArn"),
        {"PolicyDocument": allowing("sns:Publish")},
        {"PolicyDocument": allowing("sns:Subscribe")},
    ),
    "AWS::SNS::Subscription": Part(
        "AWS::SNS::Topic",
        ("TopicArn", "TopicArn"),
        {"Protocol": "sqs", "Endpoint": f"arn:aws:sqs:{REGION}:{ACCOUNT}:jobs", "RawMessageDelivery": True},
        {"RawMessageDelivery": False},
    ),
    "AWS::Route53::RecordSet": Part(
        "AWS::Route53::HostedZone",
        ("HostedZoneId", "Id"),
        {"Name": "www.one.example.org", "Type": "A", "TTL": "300", "ResourceRecords": ["192.0.2.1"]},
        {"TTL": "60"},
    ),
    "AWS::Lambda::Permission": Part(
        "AWS::Lambda::Function",
        ("FunctionName", "FunctionName"),
        {"Action": "lambda:InvokeFunction", "Principal": "sns.amazonaws.com"},
    ),
    "AWS::Lambda::Alias": Part(
        "AWS::Lambda::Function",
        ("FunctionName", "FunctionName"),
        {"Name": "live", "FunctionVersion": "1"},
        {"FunctionVersion": "2"},
    ),
    "AWS::KMS::Alias": Part("AWS::KMS::Key", ("TargetKeyId", "KeyId"), {"AliasName": "alias/shop"}),
}
QUICK = ("AWS::S3::BucketPolicy", f"AWS::S3::BucketPolicy of {AwsS3.type}")


def _bucket(world: GenericWorld) -> OfferExample:
    """A bucket by its class."""
    example = EXAMPLES[AwsS3]
    operator = example.operator(world.person.client, example.foreign_edit)
    return OfferExample([component(AwsS3, PARENT, region=REGION)], {}, {}, operator)


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[GenericWorld]:
    with generic_world(session_sandbox, tmp_path) as made:
        yield made


class Life:
    """A part with its parent, and people."""

    def __init__(self, world: GenericWorld, name: str) -> None:
        self.world, self.part = world, PARTS[name]
        self.name = name.partition(" of ")[0]
        of_class = self.part.parent == AwsS3.type
        self.example = _bucket(world) if of_class else example_of(self.part.parent, world.person)
        kind = described(self.name).type
        self.region = REGION if kind.place else home_region(self.name, REGION)
        self.control = replace(world.person, region=self.region).client("cloudcontrol")

    @property
    def schema(self) -> TypeSchema:
        found = catalog().find(self.name)
        assert found is not None
        return found

    def declared(self, **more: Any) -> list[dict[str, Any]]:
        own, output = self.part.names
        names = {own: f"${{{PARENT}.{output}}}"}
        parent = self.example.under_name(PARENT, **more)
        return [parent, {**one(self.name, PART, **names, **self.part.parameters), **more}]

    def shown(self) -> list[Mapping[str, Any]]:
        return [model for _, model in STORE.all(self.schema, self.region)]

    def is_as_declared(self) -> None:
        self.world.settle()
        assert self.statuses() == ["Active", "Active"], self.world._said()
        [model] = self.shown()
        assert {name: model.get(name) for name in self.part.parameters} == dict(self.part.parameters)
        self.world.assert_safe()

    def statuses(self, live_system: str = LIVE_SYSTEM) -> list[str]:
        return [self.world.status(live_system, name) for name in (PARENT, PART)]

    def edit(self) -> None:
        """Change the part by hand, or take it away where it cannot be changed."""
        [(identifier, _)] = STORE.all(self.schema, self.region)
        about = {"TypeName": self.name, "Identifier": identifier}
        if not self.part.change:
            self.control.delete_resource(**about)
            return
        patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in self.part.change.items()]
        self.control.update_resource(**about, PatchDocument=json.dumps(patch))

    def delete(self) -> None:
        [(identifier, _)] = STORE.all(self.schema, self.region)
        self.control.delete_resource(TypeName=self.name, Identifier=identifier)


@pytest.mark.timeout(300)
@pytest.mark.rule("S25", "S4", "S12", "S16", "S20", "G1", "G7", "O1", "O10")
@pytest.mark.parametrize("name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.soak) for one in PARTS])
def test_a_part_is_corrected_let_go_and_deleted_with_its_parent(world: GenericWorld, name: str) -> None:
    life = Life(world, name)
    world.deploy(LIVE_SYSTEM, *life.declared())
    life.is_as_declared()
    for spoil in (life.edit, life.delete):
        spoil()
        life.is_as_declared()
    world.assert_silent()
    world.deploy(READER, *life.declared(importOnly=True))
    world.settle()
    assert life.statuses(READER) == ["ExternallyManaged", "ExternallyManaged"], world._said()
    world.delete(READER)
    life.is_as_declared()

    [found] = life.example.operator.find(PARENT)
    life.example.operator.untag(found, MANAGED_BY)
    life.edit()
    before = len(world.writes())
    world.settle()
    assert life.statuses() == ["ManualOverride", "ManualOverride"], world._said()
    assert len(world.writes()) == before, "a part was written in override of its parent"
    life.example.operator.tag(found, {MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE})
    life.is_as_declared()

    world.delete(LIVE_SYSTEM)
    world.settle()
    assert life.shown() == []
    assert life.example.operator.find(PARENT) == []
    world.assert_safe()
    assert_nothing_is_orphaned(world)
