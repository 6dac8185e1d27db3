"""The sandbox's S3, tagging API and RDS where moto alone would differ from the real ones."""

from __future__ import annotations

import http.client

import pytest
from botocore.exceptions import ClientError

from fractal_sandbox import Sandbox
from fractal_sandbox.aws import PERSON_ACCESS_KEY
from tests.sandbox.conftest import Tools
from tests.sandbox.making import bucket_tags, error_of, make_bucket, make_db, make_service, make_vpc, tags_for

ACCOUNT = "123456789012"


def s3control(tools: Tools) -> object:
    """Return a client that does not put the account into the host name, which no loopback address resolves."""
    client = tools.client("s3control")

    def strip(request: object, **_: object) -> None:
        request.url = request.url.replace(f"//{ACCOUNT}.", "//")  # type: ignore[attr-defined]

    client.meta.events.register("before-sign.s3-control", strip, unique_id="strip")
    return client


@pytest.mark.rule("T2")
def test_tags_in_the_create_call_are_set(person: Tools) -> None:
    make_bucket(person, tags=tags_for())
    assert bucket_tags(person) == tags_for()


def test_a_bucket_is_created_once(person: Tools) -> None:
    make_bucket(person, tags=tags_for())
    with pytest.raises(ClientError) as refused:
        make_bucket(person)
    assert error_of(refused) == ("BucketAlreadyOwnedByYou", 409)
    assert bucket_tags(person) == tags_for()


def test_buckets_come_in_pages_only_if_pages_are_asked_for(sandbox: Sandbox, person: Tools) -> None:
    for number in range(5):
        make_bucket(person, f"bucket-{number}")
    assert len(person.s3.list_buckets()["Buckets"]) == 5
    pages = list(person.s3.get_paginator("list_buckets").paginate(PaginationConfig={"PageSize": 2}))
    assert [len(page["Buckets"]) for page in pages] == [2, 2, 1]
    sandbox.aws.knobs.page_size = 3
    assert "ContinuationToken" not in person.s3.list_buckets()
    assert len(person.s3.list_buckets(MaxBuckets=10)["Buckets"]) == 3


@pytest.mark.rule("T10")
def test_single_tags_of_a_bucket_are_written_through_s3control(person: Tools) -> None:
    arn = make_bucket(person, tags={"cost": "42", "managed-by": "fractal-cloud"})
    control: object = s3control(person)
    control.tag_resource(AccountId=ACCOUNT, ResourceArn=arn, Tags=[{"Key": "a", "Value": "b"}])  # type: ignore[attr-defined]
    assert bucket_tags(person) == {"cost": "42", "managed-by": "fractal-cloud", "a": "b"}
    control.untag_resource(AccountId=ACCOUNT, ResourceArn=arn, TagKeys=["managed-by"])  # type: ignore[attr-defined]
    shown = control.list_tags_for_resource(AccountId=ACCOUNT, ResourceArn=arn)["Tags"]  # type: ignore[attr-defined]
    assert {tag["Key"] for tag in shown} == {"cost", "a"}


def test_s3control_answers_whatever_host_it_is_called_by(sandbox: Sandbox, person: Tools) -> None:
    arn = make_bucket(person, tags={"cost": "42"})
    connection = http.client.HTTPConnection("127.0.0.1", sandbox.port, timeout=10)
    scope = f"AWS4-HMAC-SHA256 Credential={PERSON_ACCESS_KEY}/20260101/eu-central-1/s3/aws4_request, SignedHeaders=host"
    headers = {"Host": f"{ACCOUNT}.127.0.0.1:{sandbox.port}", "Authorization": scope, "x-amz-account-id": ACCOUNT}
    connection.request("GET", f"/v20180820/tags/{arn.replace(':', '%3A')}", headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 200
    assert b"<Key>cost</Key>" in body


def test_a_bucket_that_does_not_exist_cannot_be_tagged(person: Tools) -> None:
    control: object = s3control(person)
    with pytest.raises(ClientError, match="NoSuchBucket"):
        control.tag_resource(  # type: ignore[attr-defined]
            AccountId=ACCOUNT, ResourceArn="arn:aws:s3:::nothing", Tags=[{"Key": "a", "Value": "b"}]
        )


@pytest.mark.rule("G12")
def test_the_tagging_api_changes_single_tags_of_every_service_it_knows(person: Tools) -> None:
    bucket = make_bucket(person, tags={"other": "stays"})
    vpc = make_vpc(person)
    make_db(person)
    service = make_service(person)
    arns = [
        bucket,
        f"arn:aws:ec2:eu-central-1:{ACCOUNT}:vpc/{vpc}",
        f"arn:aws:rds:eu-central-1:{ACCOUNT}:db:data",
        service,
    ]
    answer = person.tagging.tag_resources(ResourceARNList=arns, Tags=tags_for())
    assert answer["FailedResourcesMap"] == {}
    answer = person.tagging.untag_resources(ResourceARNList=arns, TagKeys=["managed-by"])
    assert answer["FailedResourcesMap"] == {}
    shown = person.tagging.get_resources()["ResourceTagMappingList"]
    tags = {one["ResourceARN"]: {tag["Key"] for tag in one["Tags"]} for one in shown}
    assert tags[bucket] == {"other", "fractal-cloud-owner"}
    assert all("fractal-cloud-owner" in tags[arn] and "managed-by" not in tags[arn] for arn in arns)


@pytest.mark.rule("O15")
def test_a_database_is_deleted_only_with_a_word_about_its_final_snapshot(person: Tools) -> None:
    make_db(person)
    for choice in ({}, {"SkipFinalSnapshot": True, "FinalDBSnapshotIdentifier": "last"}):
        with pytest.raises(ClientError) as refused:
            person.rds.delete_db_instance(DBInstanceIdentifier="data", **choice)
        assert error_of(refused) == ("InvalidParameterCombination", 400)
    person.rds.delete_db_instance(DBInstanceIdentifier="data", FinalDBSnapshotIdentifier="last")
    assert len(person.rds.describe_db_snapshots()["DBSnapshots"]) >= 1
    assert person.rds.describe_db_instances()["DBInstances"] == []


def test_storage_grows_and_never_shrinks(person: Tools) -> None:
    make_db(person)
    person.rds.modify_db_instance(DBInstanceIdentifier="data", AllocatedStorage=40, ApplyImmediately=True)
    with pytest.raises(ClientError, match="InvalidParameterCombination"):
        person.rds.modify_db_instance(DBInstanceIdentifier="data", AllocatedStorage=30, ApplyImmediately=True)
    assert person.rds.describe_db_instances()["DBInstances"][0]["AllocatedStorage"] == 40


def test_without_apply_immediately_a_change_waits_among_the_pending_ones(person: Tools) -> None:
    make_db(person)
    person.rds.modify_db_instance(DBInstanceIdentifier="Data", AllocatedStorage=40, DeletionProtection=True)
    (shown,) = person.rds.describe_db_instances(DBInstanceIdentifier="DATA")["DBInstances"]
    assert (shown["AllocatedStorage"], shown["DeletionProtection"]) == (20, True)
    assert shown["PendingModifiedValues"] == {"AllocatedStorage": 40}
    person.rds.modify_db_instance(DBInstanceIdentifier="data", DBInstanceClass="db.t3.small", ApplyImmediately=True)
    (shown,) = person.rds.describe_db_instances()["DBInstances"]
    assert (shown["AllocatedStorage"], shown["DBInstanceClass"]) == (40, "db.t3.small")
    assert shown["PendingModifiedValues"] == {}


def test_a_database_that_does_not_exist_cannot_be_tagged(person: Tools) -> None:
    arn = f"arn:aws:rds:eu-central-1:{ACCOUNT}:db:nothing"
    with pytest.raises(ClientError) as refused:
        person.rds.add_tags_to_resource(ResourceName=arn, Tags=[{"Key": "a", "Value": "b"}])
    assert error_of(refused) == ("DBInstanceNotFound", 404)


@pytest.mark.rule("O15")
def test_deletion_protection_holds_also_while_deletions_are_slow(sandbox: Sandbox, person: Tools) -> None:
    make_db(person)
    person.rds.modify_db_instance(DBInstanceIdentifier="data", DeletionProtection=True, ApplyImmediately=True)
    sandbox.aws.knobs.slow_deletion(reads=1)
    with pytest.raises(ClientError, match="InvalidParameterCombination"):
        person.rds.delete_db_instance(DBInstanceIdentifier="data", SkipFinalSnapshot=True)
    assert person.rds.describe_db_instances()["DBInstances"][0]["DBInstanceStatus"] == "available"
