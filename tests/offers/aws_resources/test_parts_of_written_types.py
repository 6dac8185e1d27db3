"""Parts of what has a class of its own: a bucket or a network by hand is their parent as one by AWS's name is (S25)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.component import Component
from fractal_cloud.model.tags import MANAGED_BY, OURS, RECONCILE, RECONCILE_VALUE
from fractal_cloud.offers.aws.resources.tables.parts import PARTS
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.aws.vpc import AwsVpc
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from fractal_sandbox.aws.cloudcontrol.schemas import catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE
from tests.offers.aws.example import component
from tests.offers.aws.examples import EXAMPLES
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, REGION, one
from tests.offers.aws_resources.examples import allowing
from tests.offers.aws_resources.worlds import GenericWorld, generic_world

PARENT, PART = "files-of-team-a", "part"
WRITTEN_FIRST = "AWS::EC2::VPCGatewayAttachment"


@dataclass(frozen=True)
class Written:
    """``names``: the property of the part that names its parent, and the output of the parent's class in it."""

    kind: type[Component]
    more: Mapping[str, Any]
    names: tuple[str, str]
    parameters: Mapping[str, Any]
    beside: tuple[dict[str, Any], ...] = ()

    @property
    def parent(self) -> dict[str, Any]:
        return component(self.kind, PARENT, region=REGION, **self.more)


WRITTEN: Mapping[str, Written] = {
    "AWS::EC2::VPCGatewayAttachment": Written(
        AwsVpc,
        {"cidrBlock": "10.0.0.0/16"},
        ("VpcId", "vpcId"),
        {"InternetGatewayId": "${door.InternetGatewayId}"},
        (one("AWS::EC2::InternetGateway", "door", region=REGION),),
    ),
    "AWS::S3::BucketPolicy": Written(AwsS3, {}, ("Bucket", "bucketName"), {"PolicyDocument": allowing("s3:GetObject")}),
}


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[GenericWorld]:
    with generic_world(session_sandbox, tmp_path) as made:
        yield made


@pytest.mark.timeout(300)
@pytest.mark.rule("S25", "G1", "O1")
@pytest.mark.parametrize(
    "name", [WRITTEN_FIRST, *(pytest.param(name, marks=pytest.mark.soak) for name in WRITTEN if name != WRITTEN_FIRST)]
)
def test_a_part_of_a_written_type_is_made_let_go_and_deleted_with_it(world: GenericWorld, name: str) -> None:
    part = WRITTEN[name]
    own, output = part.names
    declared = one(name, PART, **{own: f"${{{PARENT}.{output}}}"}, **part.parameters)
    world.deploy(LIVE_SYSTEM, part.parent, *part.beside, declared)
    _settles(world, "Active")
    schema = catalog().find(name)
    assert schema is not None
    [(identifier, _)] = STORE.all(schema, REGION)

    example = EXAMPLES[part.kind]
    operator = example.operator(world.person.client, example.foreign_edit)
    [found] = operator.find(PARENT)
    operator.untag(found, MANAGED_BY)
    world.person.client("cloudcontrol").delete_resource(TypeName=name, Identifier=identifier)
    before = len(world.writes())
    _settles(world, "ManualOverride")
    assert len(world.writes()) == before, "a part was written in override of its parent"
    operator.tag(found, {MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE})
    _settles(world, "Active")
    assert len(list(STORE.all(schema, REGION))) == 1

    world.delete(LIVE_SYSTEM)
    world.settle()
    assert not list(STORE.all(schema, REGION))
    assert operator.find(PARENT) == []
    world.assert_safe()


def _settles(world: GenericWorld, status: str) -> None:
    world.settle()
    assert [world.status(LIVE_SYSTEM, name) for name in (PARENT, PART)] == [status, status], world._said()


@pytest.mark.rule("S25")
def test_every_part_accepts_the_written_type_of_its_parent() -> None:
    """Of every written type that has parts: its id, as its class publishes it, is an output that names it."""
    by_vendor = {offer.vendor_type: offer for offer in installed().of_provider("aws") if offer.vendor_type}
    known = {vendor: offer.facts() for vendor, offer in by_vendor.items()}
    tried = set()
    for name, part in PARTS.items():
        if part.parent_type in by_vendor:
            named = {output.casefold() for output in known[part.parent_type].outputs}
            wanted = {output.casefold() for output in (part.output, *part.also)}
            assert named & wanted, f"{name}: {sorted(named)} hold none of {sorted(wanted)}"
            tried.add(part.parent_type)
    assert tried >= {"AWS::S3::Bucket", "AWS::EC2::VPC", "AWS::EC2::SecurityGroup", "AWS::ECS::Cluster"}
