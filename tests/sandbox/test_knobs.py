"""The knobs: the cloud becomes slow, refuses, forgets to answer, and shows things late, exactly as set."""

from __future__ import annotations

import time
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fractal_sandbox import Sandbox
from fractal_sandbox.calls import Call
from tests.sandbox.conftest import Tools
from tests.sandbox.making import error_of, instance_state, make_db, make_eks, make_instance, make_vpc, vpc_ids


def make_one_of_everything(tools: Tools, service: str, number: int) -> None:
    if service in ("ec2", "tagging"):
        vpc = make_vpc(tools, f"net-{number}")
        tools.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")
        tools.ec2.create_security_group(VpcId=vpc, GroupName="group", Description="d")
        make_instance(tools)
    elif service == "rds":
        make_db(tools, f"data-{number}")
    elif service == "ecs":
        tools.ecs.create_cluster(clusterName=f"cluster-{number}")
    else:
        make_eks(tools, f"kube-{number}")


def timeless(items: list[Any]) -> list[Any]:
    for item in items:
        if isinstance(item, dict):
            item.pop("LatestRestorableTime", None)  # moves with the clock
    return items


def test_latency_delays_only_the_calls_that_fit(sandbox: Sandbox, person: Tools) -> None:
    person.ec2.describe_vpcs()
    person.s3.list_buckets()
    sandbox.aws.knobs.latency(0.3, operation="DescribeVpcs")
    started = time.monotonic()
    person.s3.list_buckets()
    assert time.monotonic() - started < 0.3
    started = time.monotonic()
    person.ec2.describe_vpcs()
    assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize(
    ("service", "operation", "expected"),
    [
        ("ec2", "describe_vpcs", ("RequestLimitExceeded", 503)),
        ("s3", "list_buckets", ("SlowDown", 503)),
        ("rds", "describe_db_instances", ("ThrottlingException", 400)),
        ("ecs", "list_clusters", ("ThrottlingException", 400)),
        ("eks", "list_clusters", ("ThrottlingException", 400)),
        ("tagging", "get_resources", ("ThrottlingException", 400)),
    ],
)
def test_each_service_throttles_in_its_own_words(
    sandbox: Sandbox, person: Tools, service: str, operation: str, expected: tuple[str, int]
) -> None:
    sandbox.aws.knobs.throttle(next_calls=1)
    client = getattr(person, service)
    with pytest.raises(ClientError) as refused:
        getattr(client, operation)()
    assert error_of(refused) == expected
    getattr(client, operation)()


def test_the_vendors_own_retries_get_through_a_throttled_call(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.throttle(next_calls=1, service="ec2")
    retrying = person.client("ec2", retries={"mode": "standard", "total_max_attempts": 3})
    assert retrying.describe_vpcs()["Vpcs"]
    assert sandbox.aws.calls.count(operation="DescribeVpcs") == 2


def test_a_rate_lets_a_burst_through_and_throttles_the_rest(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.throttle(rate=0.5, burst=3)
    outcomes = []
    for _ in range(5):
        try:
            person.ec2.describe_vpcs()
            outcomes.append("ok")
        except ClientError:
            outcomes.append("throttled")
    assert outcomes == ["ok", "ok", "ok", "throttled", "throttled"]


def test_the_nth_fitting_write_fails_before_it_has_any_effect(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.fail(nth=2, writes_only=True, service="ec2", code="Unavailable", status=503)
    make_vpc(person, "one")
    with pytest.raises(ClientError) as refused:
        make_vpc(person, "two")
    assert error_of(refused) == ("Unavailable", 503)
    make_vpc(person, "three")
    assert len(vpc_ids(person)) == 2


def test_a_write_can_have_its_effect_and_lose_its_answer(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.fail(when="after", cut=True, operation="CreateVpc")
    with pytest.raises(ConnectionClosedError):
        make_vpc(person)
    assert len(vpc_ids(person)) == 1
    (call,) = sandbox.aws.calls.find(operation="CreateVpc")
    assert (call.status, call.effect) == (0, True)


def test_a_connection_can_be_cut_before_anything_happens(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.fail(when="before", cut=True, operation="CreateVpc")
    with pytest.raises(ConnectionClosedError):
        make_vpc(person)
    assert vpc_ids(person) == []


def test_an_effect_can_be_answered_with_an_error(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.fail(when="after", operation="CreateCluster", service="ecs", code="ServerException", status=500)
    with pytest.raises(ClientError) as refused:
        person.ecs.create_cluster(clusterName="c")
    assert error_of(refused) == ("ServerException", 500)
    assert len(person.ecs.list_clusters()["clusterArns"]) == 1


def test_a_failure_without_end_lasts_until_it_is_removed(sandbox: Sandbox, person: Tools) -> None:
    rule = sandbox.aws.knobs.fail(times=None, operation="ListBuckets", status=500)
    for _ in range(3):
        with pytest.raises(ClientError):
            person.s3.list_buckets()
    sandbox.aws.knobs.remove(rule)
    person.s3.list_buckets()


@pytest.mark.rule("S0")
def test_the_second_page_of_a_listing_can_fail(sandbox: Sandbox, person: Tools) -> None:
    for number in range(5):
        make_vpc(person, f"net-{number}")
    sandbox.aws.knobs.page_size = 2
    sandbox.aws.knobs.fail_page(2, operation="DescribeVpcs")
    pages = iter(person.ec2.get_paginator("describe_vpcs").paginate())
    assert len(next(pages)["Vpcs"]) == 2
    with pytest.raises(ClientError, match="InternalError"):
        next(pages)
    assert len(list(person.ec2.get_paginator("describe_vpcs").paginate())) == 3


@pytest.mark.parametrize(
    ("service", "operation", "key"),
    [
        ("ec2", "describe_vpcs", "Vpcs"),
        ("ec2", "describe_subnets", "Subnets"),
        ("ec2", "describe_security_groups", "SecurityGroups"),
        ("ec2", "describe_instances", "Reservations"),
        ("rds", "describe_db_instances", "DBInstances"),
        ("ecs", "list_clusters", "clusterArns"),
        ("eks", "list_clusters", "clusters"),
        ("tagging", "get_resources", "ResourceTagMappingList"),
    ],
)
def test_a_small_page_size_makes_every_listing_page(
    sandbox: Sandbox, person: Tools, service: str, operation: str, key: str
) -> None:
    for number in range(3):
        make_one_of_everything(person, service, number)
    client = getattr(person, service)
    whole = timeless(getattr(client, operation)()[key])
    assert len(whole) >= 3
    sandbox.aws.knobs.page_size = 2
    pages = [timeless(page[key]) for page in client.get_paginator(operation).paginate()]
    assert len(pages) > 1
    assert [item for page in pages for item in page] == whole
    assert all(len(page) <= 2 for page in pages)


def test_a_page_can_be_asked_for_again_and_skips_what_was_deleted_since(sandbox: Sandbox, person: Tools) -> None:
    ids = [make_vpc(person, f"net-{number}") for number in range(5)]
    sandbox.aws.knobs.page_size = 2
    token = person.ec2.describe_vpcs(VpcIds=ids)["NextToken"]
    first = person.ec2.describe_vpcs(VpcIds=ids, NextToken=token)["Vpcs"]
    assert [vpc["VpcId"] for vpc in first] == ids[2:4]
    person.ec2.delete_vpc(VpcId=ids[0])
    again = person.ec2.describe_vpcs(VpcIds=ids[1:], NextToken=token)["Vpcs"]
    assert again == first
    with pytest.raises(ClientError, match="InvalidNextToken"):
        person.ec2.describe_vpcs(NextToken="made-up")


def test_a_created_resource_can_stay_hidden_from_lists_and_from_reads_by_id(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.late_visibility(reads=3, kind="vpc")
    vpc = make_vpc(person)
    assert vpc_ids(person) == []
    with pytest.raises(ClientError) as refused:
        person.ec2.describe_vpcs(VpcIds=[vpc])
    assert error_of(refused) == ("InvalidVpcID.NotFound", 400)
    assert vpc_ids(person) == []
    assert vpc_ids(person) == [vpc]


def test_every_kind_can_be_hidden_for_some_seconds(sandbox: Sandbox, person: Tools) -> None:
    person.ecs.create_cluster(clusterName="visible")
    sandbox.aws.knobs.late_visibility(seconds=1.0)
    bucket = {"LocationConstraint": "eu-central-1"}
    person.s3.create_bucket(Bucket="some-bucket", CreateBucketConfiguration=bucket)
    make_db(person)
    make_eks(person)
    person.ecs.create_cluster(clusterName="hidden")
    instance = make_instance(person)
    assert person.s3.list_buckets()["Buckets"] == []
    with pytest.raises(ClientError, match=r"404|NoSuchBucket"):
        person.s3.head_bucket(Bucket="some-bucket")
    assert person.rds.describe_db_instances()["DBInstances"] == []
    with pytest.raises(ClientError, match="DBInstanceNotFound"):
        person.rds.describe_db_instances(DBInstanceIdentifier="data")
    assert person.eks.list_clusters()["clusters"] == []
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        person.eks.describe_cluster(name="kube")
    described = person.ecs.describe_clusters(clusters=["visible", "hidden"])
    assert [cluster["clusterName"] for cluster in described["clusters"]] == ["visible"]
    assert described["failures"][0]["reason"] == "MISSING"
    assert person.ec2.describe_instances()["Reservations"] == []
    time.sleep(1.0)
    assert len(person.s3.list_buckets()["Buckets"]) == 1
    assert person.eks.describe_cluster(name="kube")["cluster"]["status"] == "ACTIVE"
    assert instance_state(person, instance) == "running"


@pytest.mark.rule("S13")
def test_creation_can_last_some_reads(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.slow_creation(reads=1)
    made = person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]
    assert made["State"] == "pending"
    states = [person.ec2.describe_vpcs(VpcIds=[made["VpcId"]])["Vpcs"][0]["State"] for _ in range(2)]
    assert states == ["pending", "available"]
    subnet = person.ec2.create_subnet(VpcId=made["VpcId"], CidrBlock="10.0.0.0/24")["Subnet"]
    assert subnet["State"] == "pending"
    instance = make_instance(person)
    assert [instance_state(person, instance) for _ in range(2)] == ["pending", "running"]
    make_db(person)
    shown = [person.rds.describe_db_instances()["DBInstances"][0] for _ in range(2)]
    assert [db["DBInstanceStatus"] for db in shown] == ["creating", "available"]
    assert ["Endpoint" in db for db in shown] == [False, True]
    make_eks(person)
    clusters = [person.eks.describe_cluster(name="kube")["cluster"] for _ in range(2)]
    assert [cluster["status"] for cluster in clusters] == ["CREATING", "ACTIVE"]
    assert ["endpoint" in cluster for cluster in clusters] == [False, True]
    person.ecs.create_cluster(clusterName="c")
    shown = [person.ecs.describe_clusters(clusters=["c"])["clusters"][0]["status"] for _ in range(2)]
    assert shown == ["PROVISIONING", "ACTIVE"]


def test_a_database_at_work_refuses_changes(sandbox: Sandbox, person: Tools) -> None:
    make_db(person)
    sandbox.aws.knobs.slow_modification(reads=1, kind="db")
    changed = person.rds.modify_db_instance(DBInstanceIdentifier="data", AllocatedStorage=30, ApplyImmediately=True)
    assert changed["DBInstance"]["DBInstanceStatus"] == "modifying"
    with pytest.raises(ClientError, match="InvalidDBInstanceState"):
        person.rds.delete_db_instance(DBInstanceIdentifier="data", SkipFinalSnapshot=True)
    statuses = [person.rds.describe_db_instances()["DBInstances"][0]["DBInstanceStatus"] for _ in range(2)]
    assert statuses == ["modifying", "available"]


@pytest.mark.rule("S13")
def test_deletion_can_be_slow_and_the_dying_is_still_there(sandbox: Sandbox, person: Tools) -> None:
    make_db(person)
    make_eks(person)
    instance = make_instance(person)
    sandbox.aws.knobs.slow_deletion(reads=1)
    deleted = person.rds.delete_db_instance(DBInstanceIdentifier="data", SkipFinalSnapshot=True)
    assert deleted["DBInstance"]["DBInstanceStatus"] == "deleting"
    assert person.rds.describe_db_instances()["DBInstances"][0]["DBInstanceStatus"] == "deleting"
    assert person.rds.describe_db_instances()["DBInstances"] == []
    assert person.eks.delete_cluster(name="kube")["cluster"]["status"] == "DELETING"
    with pytest.raises(ClientError, match="ResourceInUseException"):
        person.eks.delete_cluster(name="kube")
    assert person.eks.describe_cluster(name="kube")["cluster"]["status"] == "DELETING"
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        person.eks.describe_cluster(name="kube")
    person.ec2.terminate_instances(InstanceIds=[instance])
    assert [instance_state(person, instance) for _ in range(2)] == ["shutting-down", "terminated"]


def test_stopping_and_starting_can_be_slow(sandbox: Sandbox, person: Tools) -> None:
    instance = make_instance(person)
    sandbox.aws.knobs.slow_modification(reads=1, kind="instance")
    person.ec2.stop_instances(InstanceIds=[instance])
    with pytest.raises(ClientError, match="IncorrectInstanceState"):
        person.ec2.modify_instance_attribute(InstanceId=instance, InstanceType={"Value": "t3.large"})
    with pytest.raises(ClientError, match="IncorrectInstanceState"):
        person.ec2.start_instances(InstanceIds=[instance])
    assert [instance_state(person, instance) for _ in range(2)] == ["stopping", "stopped"]
    person.ec2.modify_instance_attribute(InstanceId=instance, InstanceType={"Value": "t3.large"})
    person.ec2.start_instances(InstanceIds=[instance])
    assert [instance_state(person, instance) for _ in range(2)] == ["pending", "running"]


def test_a_hook_acts_right_before_a_call_and_may_call_the_cloud_itself(
    sandbox: Sandbox, person: Tools, agent: Tools
) -> None:
    vpc = make_vpc(person)
    seen: list[str] = []

    def untag(call: Call) -> None:
        seen.append(f"{call.operation} {call.resource_ids}")
        person.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": "Name"}])

    sandbox.aws.knobs.before_call(untag, times=1, operation="DeleteVpc", actor="agent")
    agent.ec2.delete_vpc(VpcId=vpc)
    assert seen == [f"DeleteVpc ('{vpc}',)"]
    assert [call.operation for call in sandbox.aws.calls][-2:] == ["DeleteTags", "DeleteVpc"]


def test_a_hook_after_a_call_sees_its_status_and_may_turn_a_knob(sandbox: Sandbox, person: Tools) -> None:
    statuses: list[int] = []

    def fail_next(recorded: Any) -> None:
        statuses.append(recorded.status)
        sandbox.aws.knobs.fail(operation="DescribeVpcs")

    sandbox.aws.knobs.after_call(fail_next, times=1)
    person.ec2.describe_vpcs()
    with pytest.raises(ClientError):
        person.ec2.describe_vpcs()
    assert statuses == [200]


def test_a_throttle_without_a_measure_is_refused() -> None:
    with pytest.raises(ValueError, match="either next_calls or rate"):
        Sandbox().aws.knobs.throttle()
    with pytest.raises(ValueError, match="needs a length"):
        Sandbox().aws.knobs.slow_creation()
