"""ECS clusters and services: what is peculiar to them."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import Conflict, Unreadable
from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.aws.ecs_cluster import AwsEcsCluster, whole
from fractal_cloud.offers.aws.ecs_service import AwsEcsService, _sightings
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.aws.conftest import World
from tests.offers.aws.examples import EXAMPLES
from tests.offers.aws.examples.ecs_cluster import ECS_CLUSTER

EXAMPLE = EXAMPLES[AwsEcsService]
SERVICE = EXAMPLE.components[-1]
CLUSTERS = installed()[AwsEcsCluster.type]
SERVICES = installed()[AwsEcsService.type]


@pytest.mark.rule("S13")
def test_a_cluster_that_is_inactive_is_absent(world: World) -> None:
    seen = world.create(ECS_CLUSTER)
    CLUSTERS.delete(world.cloud(), seen)
    assert CLUSTERS.read(world.cloud(), seen.resource_id) is None
    assert list(CLUSTERS.sightings(world.cloud(), Query())) == []


def test_clusters_cost_two_calls_a_page(world: World, sandbox: Sandbox) -> None:
    for number in range(3):
        world.person("ecs").create_cluster(clusterName=f"c{number}")
    sandbox.aws.calls.clear()
    assert len(list(CLUSTERS.sightings(world.cloud(), Query()))) == 3
    assert [call.operation for call in sandbox.aws.calls] == ["ListClusters", "DescribeClusters"]


def test_the_default_strategy_survives_a_change_of_providers(world: World) -> None:
    seen = world.create(ECS_CLUSTER)
    step = {"capacityProvider": "FARGATE", "weight": 3, "base": 1}
    world.person("ecs").put_cluster_capacity_providers(
        cluster=seen.resource_id, capacityProviders=["FARGATE"], defaultCapacityProviderStrategy=[step]
    )
    world.correct(ECS_CLUSTER, capacityProviders=["FARGATE", "FARGATE_SPOT"])
    [cluster] = world.person("ecs").describe_clusters(clusters=[seen.resource_id])["clusters"]
    assert cluster["defaultCapacityProviderStrategy"] == [step]


@pytest.mark.rule("O6")
def test_a_cluster_with_services_stays(world: World) -> None:
    world.bring(EXAMPLE)
    with pytest.raises(Conflict, match="ClusterContainsServicesException"):
        CLUSTERS.delete(world.cloud(), world.seen["jobs"])


def test_services_are_described_by_ten(world: World, sandbox: Sandbox) -> None:
    EXAMPLE.prepare(world.person)
    cluster = world.create(ECS_CLUSTER)
    for number in range(12):
        world.person("ecs").create_service(
            cluster="jobs", serviceName=f"s{number}", taskDefinition="web:1", desiredCount=0
        )
    sandbox.aws.calls.clear()
    found = all_sightings(SERVICES.sightings(world.cloud(), Query(parent_ids=frozenset({cluster.resource_id}))))
    assert len(found) == 12
    assert {one.parent_id for one in found} == {cluster.resource_id}
    assert [call.operation for call in sandbox.aws.calls] == ["ListServices", *["DescribeServices"] * 2]


def test_services_of_a_cluster_that_vanished_are_absent(world: World) -> None:
    seen = world.bring(EXAMPLE)
    gone = world.seen["jobs"].resource_id.replace("jobs", "gone")
    assert list(SERVICES.sightings(world.cloud(), Query(parent_ids=frozenset({gone})))) == []
    assert SERVICES.read(world.cloud(), seen.resource_id.replace("/jobs/", "/gone/")) is None


@pytest.mark.rule("S0")
def test_a_cluster_that_cannot_be_read_hides_nothing(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    sandbox.aws.knobs.fail(operation="DescribeServices", times=None)
    with pytest.raises(Unreadable):
        world.listed(SERVICES, SERVICE)


@pytest.mark.rule("S0")
def test_an_answer_in_part_is_no_answer() -> None:
    found = [{"serviceName": "shop"}]
    assert whole({"services": found, "failures": [{"arn": "a", "reason": "MISSING"}]}, "services") == found
    with pytest.raises(Unreadable, match="ECS left out a: BUSY"):
        whole({"services": found, "failures": [{"arn": "a", "reason": "BUSY"}]}, "services")


@pytest.mark.rule("S13")
def test_a_draining_service_is_dying(world: World, sandbox: Sandbox) -> None:
    seen = world.bring(EXAMPLE)
    sandbox.aws.knobs.slow_deletion(reads=2, kind="ecs-service")
    SERVICES.delete(world.cloud(), seen)
    dying = SERVICES.read(world.cloud(), seen.resource_id)
    assert dying is not None
    assert dying.condition is Condition.DYING


def test_a_rollout_in_progress_accepts_further_changes(world: World) -> None:
    service = {
        "serviceName": "shop",
        "serviceArn": "arn:aws:ecs:eu-west-1:1:service/jobs/shop",
        "clusterArn": "arn:aws:ecs:eu-west-1:1:cluster/jobs",
        "status": "ACTIVE",
        "taskDefinition": "arn:aws:ecs:eu-west-1:1:task-definition/web:1",
        "desiredCount": 2,
        "deployments": [
            {"status": "ACTIVE", "rolloutState": "COMPLETED"},
            {"status": "PRIMARY", "rolloutState": "FAILED", "rolloutStateReason": "no such image"},
        ],
    }
    [seen] = _sightings(world.cloud(), [service])
    assert (seen.condition, seen.outputs["rolloutState"], seen.detail) == (Condition.SETTLED, "FAILED", "no such image")


def test_all_changes_of_a_service_travel_in_one_call(world: World) -> None:
    world.bring(EXAMPLE)
    assert world.correct(SERVICE, **EXAMPLE.changes) == 1


def test_what_is_not_declared_of_the_network_is_kept(world: World) -> None:
    world.bring(EXAMPLE)
    partly = {k: v for k, v in SERVICE["parameters"].items() if k != "securityGroups"}
    world.correct({**SERVICE, "parameters": partly}, assignPublicIp="ENABLED")
    assert world.drift(SERVICE, assignPublicIp="ENABLED")[1] == {}
