"""Buckets: what is peculiar to them."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import Conflict, Denied
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags, stamp
from fractal_cloud.offers.aws import s3 as buckets
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.offer import Query, Wanted
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.aws.conftest import LIVE_SYSTEM, World
from tests.offers.aws.example import REGION
from tests.offers.aws.examples import EXAMPLES

EXAMPLE = EXAMPLES[AwsS3]
BUCKET = EXAMPLE.components[-1]
NAME = BUCKET["id"]
OFFER = installed()[AwsS3.type]


def _create(world: World, name: str, region: str) -> None:
    OFFER.create(world.cloud("global"), Wanted(AwsS3(id=name, region=region), LIVE_SYSTEM), stamp(LIVE_SYSTEM))


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1", "ap-south-1"])
def test_a_bucket_lies_in_its_region_whatever_the_agents_is(world: World, region: str) -> None:
    _create(world, "somewhere", region)
    found = OFFER.read(world.cloud("global"), "somewhere")
    assert found is not None
    assert (found.actual["region"], found.protocol) == (region, stamp(LIVE_SYSTEM))
    OFFER.tag(world.cloud("global"), found, ProtocolTags(reconcile=True), NO_TAGS)
    assert [one.protocol.reconcile for one in all_sightings(OFFER.sightings(world.cloud("global"), Query()))] == [True]
    OFFER.delete(world.cloud("global"), found)


def test_only_regions_with_declared_buckets_are_asked_for_tags(world: World, sandbox: Sandbox) -> None:
    for name, region in (("ours", REGION), ("theirs", REGION), ("elsewhere", "us-east-1")):
        _create(world, name, region)
    sandbox.aws.calls.clear()
    found = list(OFFER.sightings(world.cloud("global"), Query(frozenset({"ours", "not-there-yet"}))))
    assert {one.name for one in found} == {"ours", "theirs"}
    assert [call.call.region for call in sandbox.aws.calls.find(operation="GetResources")] == [REGION]
    assert sandbox.aws.calls.count(operation="GetBucketTagging") == 0


def test_without_names_all_buckets_are_listed(world: World) -> None:
    for name, region in (("ours", REGION), ("elsewhere", "us-east-1")):
        _create(world, name, region)
    found = {one.name: one.protocol for one in all_sightings(OFFER.sightings(world.cloud("global"), Query()))}
    assert found == {"ours": stamp(LIVE_SYSTEM), "elsewhere": stamp(LIVE_SYSTEM)}


@pytest.mark.rule("S7")
def test_a_bulk_read_that_lags_behind_is_no_override(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.bring(EXAMPLE)
    monkeypatch.setattr(buckets, "_bulk_tags", lambda _: {})
    [found] = world.listed(OFFER, BUCKET)
    assert found.protocol == stamp(LIVE_SYSTEM)


@pytest.mark.rule("S0")
def test_tags_that_may_not_be_read_are_not_absent(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    sandbox.aws.knobs.fail(operation="GetResources", code="AccessDeniedException", status=400, times=None)
    with pytest.raises(Denied):
        world.listed(OFFER, BUCKET)
    sandbox.aws.knobs.fail(operation="GetBucketTagging", code="AccessDenied", status=403, times=None)
    with pytest.raises(Denied):
        OFFER.read(world.cloud("global"), NAME)


def test_a_bucket_without_any_tags_is_present(world: World) -> None:
    world.person("s3").create_bucket(Bucket=NAME, CreateBucketConfiguration={"LocationConstraint": REGION})
    world.seen[NAME] = next(iter(world.listed(OFFER, BUCKET)))
    assert world.seen[NAME].tags == {}
    found = OFFER.read(world.cloud("global"), NAME)
    assert found is not None
    assert found.protocol == NO_TAGS


@pytest.mark.rule("T10")
def test_the_whole_set_of_tags_is_never_written(world: World, sandbox: Sandbox) -> None:
    seen = world.bring(EXAMPLE)
    OFFER.tag(world.cloud("global"), seen, ProtocolTags(reconcile=True), NO_TAGS)
    OFFER.tag(world.cloud("global"), seen, NO_TAGS, ProtocolTags(reconcile=True))
    assert sandbox.aws.calls.count(operation="PutBucketTagging") == 0
    assert sandbox.aws.calls.count(operation="DeleteBucketTagging") == 0


@pytest.mark.rule("O15")
def test_a_bucket_that_holds_something_is_kept_and_never_emptied(world: World) -> None:
    seen = world.bring(EXAMPLE)
    s3 = world.person("s3")
    for _ in range(2):
        s3.put_object(Bucket=NAME, Key="letter", Body=b"dear")
    s3.delete_object(Bucket=NAME, Key="letter")
    with pytest.raises(Conflict, match=r"holds 2 object versions and 1 delete marker \(") as refused:
        OFFER.delete(world.cloud("global"), seen)
    assert "empty it yourself" in refused.value.message


@pytest.mark.rule("O15")
def test_a_single_object_is_counted_in_the_singular(world: World) -> None:
    seen = world.bring(EXAMPLE)
    world.person("s3").put_object(Bucket=NAME, Key="letter", Body=b"dear")
    with pytest.raises(Conflict, match=r"holds 1 object version \("):
        OFFER.delete(world.cloud("global"), seen)


def test_some_of_the_four_blocks_are_not_all(world: World) -> None:
    world.bring(EXAMPLE)
    world.person("s3").put_public_access_block(Bucket=NAME, PublicAccessBlockConfiguration={"BlockPublicAcls": True})
    assert set(world.drift(BUCKET)[1]) == {"blockPublicAccess"}
    world.person("s3").delete_public_access_block(Bucket=NAME)
    assert set(world.drift(BUCKET)[1]) == {"blockPublicAccess"}


def test_settings_cost_one_call_each(world: World, sandbox: Sandbox) -> None:
    seen = world.bring(EXAMPLE)
    sandbox.aws.calls.clear()
    swept = ["versioning", "sseAlgorithm", "blockPublicAccess", "objectOwnership"]
    assert set(OFFER.sweep(world.cloud("global"), seen, swept)) == set(swept)
    assert len(sandbox.aws.calls) == OFFER.sweep_calls(swept) == 4
