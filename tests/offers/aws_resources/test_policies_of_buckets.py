"""The policy of a bucket by its class: a part that is observed for all regions, as its parent is, and lies in one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.aws.vpc import AwsVpc
from fractal_sandbox import Sandbox
from fractal_sandbox.aws.cloudcontrol.schemas import catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE
from tests.offers.aws.example import component
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, REGION, one
from tests.offers.aws_resources.examples import allowing
from tests.offers.aws_resources.worlds import GenericWorld, generic_world

POLICY = "AWS::S3::BucketPolicy"
OTHER_REGION = "eu-central-1"


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[GenericWorld]:
    with generic_world(session_sandbox, tmp_path) as made:
        yield made


def _bucket(name: str = "files", region: str = REGION) -> dict[str, Any]:
    return component(AwsS3, name, region=region)


def _policy(bucket: str = "files", **parameters: Any) -> dict[str, Any]:
    document = {"PolicyDocument": allowing("s3:GetObject"), **parameters}
    return one(POLICY, f"{bucket}-policy", Bucket=f"${{{bucket}.bucketName}}", **document)


def _policies(region: str) -> dict[str, Any]:
    schema = catalog().find(POLICY)
    assert schema is not None
    return dict(STORE.all(schema, region))


@pytest.mark.rule("S25", "S20")
def test_policies_of_buckets_are_made_and_deleted_where_their_buckets_lie(world: GenericWorld) -> None:
    regions = {"files-here": REGION, "files-there": OTHER_REGION}
    buckets = [_bucket(name, region) for name, region in regions.items()]
    world.deploy(LIVE_SYSTEM, *buckets, *map(_policy, regions))
    world.settle()
    assert [list(_policies(region)) for region in regions.values()] == [["files-here"], ["files-there"]]
    world.assert_silent()
    for name, region in regions.items():
        shown = world.component(LIVE_SYSTEM, f"{name}-policy")
        assert (shown["status"], shown["outputFields"]["region"]) == ("Active", region), shown
    world.deploy(LIVE_SYSTEM, *buckets)
    world.settle()
    assert [list(_policies(region)) for region in regions.values()] == [[], []]
    world.assert_safe()


@pytest.mark.rule("S0", "S25")
@pytest.mark.parametrize("operation", ["ListBuckets", "GetResource"])
def test_nothing_is_written_while_its_region_or_itself_cannot_be_read(world: GenericWorld, operation: str) -> None:
    world.deploy(LIVE_SYSTEM, _bucket(), _policy())
    world.settle()
    world.person.client("cloudcontrol").delete_resource(TypeName=POLICY, Identifier="files")
    denied: dict[str, Any] = {"code": "AccessDenied", "status": 403, "message": "not yours"}
    rule = world.sandbox.aws.knobs.fail(operation=operation, times=None, actor="agent", **denied)
    before = len(world.writes())
    for _ in range(3):
        world.cycle()
    assert len(world.writes()) == before
    assert "cannot be read" in world.component(LIVE_SYSTEM, "files-policy")["message"]
    world.sandbox.aws.knobs.remove(rule)
    world.settle()
    assert list(_policies(REGION)) == ["files"]
    world.assert_safe()


@pytest.mark.rule("S25", "S4a")
def test_nothing_is_made_where_the_bucket_is_gone(world: GenericWorld) -> None:
    world.deploy(LIVE_SYSTEM, _bucket(), _policy())
    world.settle()
    world.person.client("s3").delete_bucket(Bucket="files")
    before = len(world.writes())
    for _ in range(3):
        world.cycle()
    assert world.status(LIVE_SYSTEM, "files") == "Missing"
    assert "waits for 'files'" in world.component(LIVE_SYSTEM, "files-policy")["message"]
    assert (len(world.writes()), _policies(REGION)) == (before, {})
    world.delete(LIVE_SYSTEM)
    world.settle()
    assert len(world.writes()) == before, "there was nothing left to delete"
    world.assert_safe()


@pytest.mark.rule("S25")
def test_it_says_no_other_region_than_its_bucket(world: GenericWorld) -> None:
    body = {"id": LIVE_SYSTEM, "components": [_bucket(), _policy(region=OTHER_REGION)]}
    [error] = world.api.put(f"/livesystems/{LIVE_SYSTEM}", json=body).json()["errors"]
    assert error["path"] == "components[files-policy].parameters.region"
    assert "leave it out" in error["message"]
    world.deploy(LIVE_SYSTEM, _bucket(), _policy(region=REGION))
    world.settle()
    assert world.status(LIVE_SYSTEM, "files-policy") == "Active"


@pytest.mark.rule("S25", "C12")
def test_its_lookups_are_answered_in_the_region_of_its_bucket(world: GenericWorld) -> None:
    theirs = {}
    for region in (REGION, OTHER_REGION):
        ec2 = replace(world.person, region=region).client("ec2")
        theirs[region] = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
        ec2.create_tags(Resources=[theirs[region]], Tags=[{"Key": "tier", "Value": "private"}])
    found = {"$find": {"type": AwsVpc.type, "tags": {"tier": "private"}, "output": "vpcId"}}
    document = allowing("s3:GetObject")
    document["Statement"][0]["Condition"] = {"StringEquals": {"aws:SourceVpc": found}}
    world.deploy(LIVE_SYSTEM, _bucket(region=OTHER_REGION), _policy(PolicyDocument=document))
    world.settle()
    assert world.status(LIVE_SYSTEM, "files-policy") == "Active", world._said()
    shown = str(_policies(OTHER_REGION)["files"])
    assert theirs[OTHER_REGION] in shown
    assert theirs[REGION] not in shown
