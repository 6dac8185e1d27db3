"""EKS clusters: what is peculiar to them."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import Conflict, Invalid
from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.aws.eks import AwsEks
from fractal_cloud.offers.cluster_versions import next_version
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.aws.conftest import World
from tests.offers.aws.examples import EXAMPLES

EXAMPLE = EXAMPLES[AwsEks]
CLUSTER = EXAMPLE.components[-1]
OFFER = installed()[AwsEks.type]


@pytest.mark.parametrize(
    ("actual", "declared", "expected"), [("1.31", "1.32", "1.32"), ("1.31", "1.34", "1.32"), ("1.9", "1.10", "1.10")]
)
def test_a_version_is_raised_one_minor_at_a_time(actual: str, declared: str, expected: str) -> None:
    assert next_version(actual, declared) == expected


@pytest.mark.rule("S18")
def test_a_version_never_falls() -> None:
    with pytest.raises(Invalid, match=r"cannot fall from '1\.33' to '1\.32'"):
        next_version("1.33", "1.32")


def test_other_changes_come_before_a_version_that_cannot_be_reached(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    wanted = world.wanted(CLUSTER, version="1.30", logging=["audit"])
    seen, drift = world.drift(CLUSTER, version="1.30", logging=["audit"])
    OFFER.update(world.cloud(), seen, wanted, drift)
    seen, drift = world.drift(CLUSTER, version="1.30", logging=["audit"])
    assert set(drift) == {"version"}
    with pytest.raises(Invalid):
        OFFER.update(world.cloud(), seen, wanted, drift)


def test_each_kind_of_change_is_a_call_of_its_own(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    sandbox.aws.calls.clear()
    world.correct(CLUSTER, **EXAMPLE.changes)
    writes = [call.operation for call in sandbox.aws.calls.find(actor="agent", writes_only=True)]
    assert writes == [*["UpdateClusterConfig"] * 4, *["UpdateClusterVersion"] * 2]


def test_while_an_update_runs_the_cluster_is_changing_and_accepts_no_other(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    sandbox.aws.knobs.slow_modification(reads=5, kind="eks-cluster")
    seen, drift = world.drift(CLUSTER, logging=["audit"])
    wanted = world.wanted(CLUSTER, logging=["audit"])
    OFFER.update(world.cloud(), seen, wanted, drift)
    busy = OFFER.read(world.cloud(), "platform")
    assert busy is not None
    assert busy.condition is Condition.CHANGING
    with pytest.raises(Conflict):
        OFFER.update(world.cloud(), busy, world.wanted(CLUSTER, endpointPrivateAccess=True), ["endpointPrivateAccess"])


@pytest.mark.rule("O15")
def test_deletion_protection_is_respected_and_named(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    world.correct(CLUSTER, deletionProtection=True)
    with pytest.raises(Conflict, match="deletionProtection"):
        OFFER.delete(world.cloud(), world.seen["platform"])
    assert sandbox.aws.calls.count(operation="DeleteCluster") == 0


def test_only_clusters_that_are_named_are_described(world: World, sandbox: Sandbox) -> None:
    seen = world.bring(EXAMPLE)
    world.person("eks").create_cluster(
        name="another", roleArn=seen.actual["roleArn"], resourcesVpcConfig={"subnetIds": seen.actual["subnets"]}
    )
    sandbox.aws.calls.clear()
    assert [one.name for one in OFFER.sightings(world.cloud(), Query(frozenset({"platform"})))] == ["platform"]
    assert [call.operation for call in sandbox.aws.calls] == ["ListClusters", "DescribeCluster"]
    assert len(list(OFFER.sightings(world.cloud(), Query()))) == 2


def test_what_a_client_of_its_api_needs_is_published(world: World) -> None:
    seen = world.bring(EXAMPLE)
    assert {"endpoint", "certificateAuthorityData", "clusterArn", "region"} <= set(seen.outputs)


def test_a_plan_says_what_a_new_version_means() -> None:
    assert OFFER.warnings(["version"])
    assert OFFER.warnings(["logging"]) == []
