"""Buckets: what is peculiar to them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fractal_cloud.model.errors import CloudError, Conflict, DeclarationError, Denied
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags, stamp
from fractal_cloud.offers.aws import s3 as buckets
from fractal_cloud.offers.aws.policy import documents
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.aws.s3_lifecycle import canonical, from_answer, to_request
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.offer import Query, Wanted
from fractal_cloud.offers.registry import installed
from fractal_cloud.rules.drift import ComparedType
from fractal_sandbox import Sandbox
from tests.offers.aws.conftest import LIVE_SYSTEM, World
from tests.offers.aws.example import REGION
from tests.offers.aws.examples import EXAMPLES
from tests.offers.aws.examples.s3 import RULES

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
    swept = ComparedType(OFFER.facts()).swept
    assert set(OFFER.sweep(world.cloud("global"), seen, swept)) == set(swept)
    assert len(sandbox.aws.calls) == OFFER.sweep_calls(swept) == 6, "encryption is one call, whatever of it is asked"
    sandbox.aws.calls.clear()
    assert set(OFFER.sweep(world.cloud("global"), seen, ["kmsMasterKeyID"])) == {"kmsMasterKeyID"}
    assert len(sandbox.aws.calls) == OFFER.sweep_calls(["kmsMasterKeyID"]) == 1


_OLD = {"status": "Enabled", "prefix": "tmp/", "expiration": {"days": 7}}
_SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (_OLD, {"filter": {"prefix": "tmp/"}}),
    (_OLD, {"filter": {"and": {"prefix": "tmp/"}}}),
    ({**_OLD, "prefix": ""}, {}),
    ({**_OLD, "prefix": ""}, {"filter": {}}),
    ({**_OLD, "prefix": ""}, {"filter": {"prefix": ""}}),
]


@pytest.mark.rule("G3")
@pytest.mark.parametrize(("one", "other"), _SAME)
def test_a_rule_is_compared_as_what_it_means(one: dict[str, Any], other: dict[str, Any]) -> None:
    rest = {key: value for key, value in one.items() if key != "prefix"}
    assert canonical(one) == canonical({**rest, **other})


def test_days_tags_and_transitions_are_compared_as_what_they_are() -> None:
    tags = [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": ""}]
    shown = {
        "ID": "x",
        "Status": "Enabled",
        "Filter": {"And": {"Prefix": "", "Tags": tags[::-1], "ObjectSizeGreaterThan": 0}},
        "Expiration": {"Date": datetime(2030, 1, 31, tzinfo=UTC), "ExpiredObjectDeleteMarker": False},
        "Transitions": [{"Days": 90, "StorageClass": "GLACIER"}, {"Days": 30, "StorageClass": "STANDARD_IA"}],
    }
    wanted = {
        "id": "x",
        "status": "Enabled",
        "filter": {"and": {"tags": [{"key": "a", "value": "1"}, {"key": "b"}], "objectSizeGreaterThan": 0}},
        "expiration": {"date": "2030-01-31"},
        "transitions": [{"days": 30, "storageClass": "STANDARD_IA"}, {"storageClass": "GLACIER", "days": 90}],
    }
    declared = AwsS3.from_parameters("files", {"region": REGION, "lifecycleRules": [wanted]})
    [rule] = declared.parameters()["lifecycleRules"]
    assert from_answer(shown) == rule
    assert from_answer(to_request(rule)) == rule


_RULE = {"status": "Enabled", "expiration": {"days": 7}}


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ({"lifecycleRules": [{"status": "Enabled"}]}, "a rule does something"),
        ({"lifecycleRules": [{**_RULE, "prefix": "a", "filter": {}}]}, "a prefix or a filter, not both"),
        ({"lifecycleRules": [{**_RULE, "filter": {"prefix": "a", "objectSizeGreaterThan": 1}}]}, "one condition"),
        ({"lifecycleRules": [{**_RULE, "expiration": {"days": 1, "date": "2030-01-01"}}]}, "one of days, date"),
        ({"lifecycleRules": [{**_RULE, "expiration": {"date": "2030-01-01T12:00:00"}}]}, "not midnight"),
        ({"lifecycleRules": [{**_RULE, "id": "a"}, {**_RULE, "id": "a"}]}, "several rules have the id 'a'"),
        ({"logging": {"targetPrefix": "a/"}}, "a log needs a targetBucket"),
        ({"logging": {"targetBucket": "Logs"}}, "'Logs' is no bucket name"),
        ({"kmsMasterKeyID": "alias/files", "sseAlgorithm": "AES256"}, "goes with sseAlgorithm aws:kms"),
        ({"kmsMasterKeyID": "files", "sseAlgorithm": "aws:kms"}, "'files' is no KMS key"),
    ],
)
def test_what_s3_always_refuses_is_refused_before_deploy(declared: dict[str, Any], text: str) -> None:
    with pytest.raises(DeclarationError, match=text):
        AwsS3(id="files", region=REGION, **declared)


@pytest.mark.rule("G3", "S12")
def test_rules_are_replaced_and_removed_and_the_least_size_beside_them_stays(world: World) -> None:
    world.bring(EXAMPLE)
    s3 = world.person("s3")
    rules = s3.get_bucket_lifecycle_configuration(Bucket=NAME)["Rules"]
    s3.put_bucket_lifecycle_configuration(
        Bucket=NAME,
        LifecycleConfiguration={"Rules": [*rules, {**rules[0], "ID": "of-a-person"}]},
        TransitionDefaultMinimumObjectSize="varies_by_storage_class",
    )
    assert set(world.drift(BUCKET)[1]) == {"lifecycleRules"}
    assert world.correct(BUCKET) == 1
    shown = s3.get_bucket_lifecycle_configuration(Bucket=NAME)
    assert len(shown["Rules"]) == len(RULES)
    assert shown["TransitionDefaultMinimumObjectSize"] == "varies_by_storage_class"
    world.correct(BUCKET, lifecycleRules=[])
    with pytest.raises(ClientError, match="NoSuchLifecycleConfiguration"):
        s3.get_bucket_lifecycle_configuration(Bucket=NAME)


@pytest.mark.rule("G3")
def test_encryption_without_kms_drops_the_key_and_keeps_what_is_not_declared(world: World) -> None:
    world.bring(EXAMPLE)
    names = ("kmsMasterKeyID", "bucketKeyEnabled", "blockedEncryptionTypes")
    plain = {**BUCKET, "parameters": {k: v for k, v in BUCKET["parameters"].items() if k not in names}}
    world.correct(plain, sseAlgorithm="AES256")
    encryption = world.person("s3").get_bucket_encryption(Bucket=NAME)["ServerSideEncryptionConfiguration"]
    assert encryption["Rules"] == [
        {
            "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"},
            "BucketKeyEnabled": True,
            "BlockedEncryptionTypes": {"EncryptionType": ["SSE-C"]},
        }
    ]


@pytest.mark.rule("G3")
def test_a_log_is_switched_off_and_its_form_compared(world: World) -> None:
    world.bring(EXAMPLE)
    by_day = {"targetBucket": "logs-a", "targetObjectKeyFormat": {"partitionedPrefix": {}}}
    world.correct(BUCKET, logging=by_day)
    assert world.drift(BUCKET, logging=by_day)[1] == {}
    usual = {"targetBucket": "logs-a", "targetPrefix": "a/", "targetObjectKeyFormat": {"simplePrefix": {}}}
    assert set(world.drift(BUCKET, logging=usual)[1]) == {"logging"}
    world.correct(BUCKET, logging=usual)
    assert world.drift(BUCKET)[1] == {}
    world.correct(BUCKET, logging={})
    assert "LoggingEnabled" not in world.person("s3").get_bucket_logging(Bucket=NAME)


@pytest.mark.rule("S0")
@pytest.mark.parametrize("name", ["sseAlgorithm", "blockPublicAccess", "objectOwnership", "lifecycleRules"])
def test_the_settings_of_a_bucket_that_is_gone_are_not_unset(world: World, name: str) -> None:
    seen = world.bring(EXAMPLE)
    world.person("s3").delete_bucket(Bucket=NAME)
    with pytest.raises(CloudError):
        OFFER.sweep(world.cloud("global"), seen, [name])


@pytest.mark.rule("A7")
def test_a_refused_rule_says_how_its_right_is_given(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    sandbox.aws.limit_agent(documents())
    with pytest.raises(Denied, match=rf"--bucket {NAME}.*ABAC"):
        world.correct(BUCKET, lifecycleRules=[])


def test_a_plan_says_that_s3_will_delete_objects() -> None:
    assert OFFER.warnings(["versioning"]) == []
    assert "deletes" in OFFER.warnings(["lifecycleRules"])[0]
