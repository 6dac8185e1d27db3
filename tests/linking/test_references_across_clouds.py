"""References from a component of one cloud to one of another: two agents, and none that sees the other's scope."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.linking.two_clouds import TwoClouds, two_clouds
from tests.world import vpc

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def clouds(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[TwoClouds]:
    """An agent for AWS and one for Kubernetes, each with a token that opens nothing of the other's."""
    with two_clouds(session_sandbox, tmp_path, TwoClouds) as made:
        yield made
        made.assert_safe()


def workload(**env: Any) -> dict[str, Any]:
    """A workload whose environment says where the network is."""
    kind = "CustomWorkloads.CaaS.KubernetesWorkload"
    return {"id": "web", "type": kind, "parameters": {"image": "web:1", "env": env}}


def value(clouds: TwoClouds, name: str = "NET") -> str:
    """A variable as the cluster has it."""
    return str(clouds.env("web")[name]["value"])


def test_what_one_cloud_made_arrives_in_the_other_and_comes_first(clouds: TwoClouds) -> None:
    clouds.deploy("shop", vpc(), workload(NET="net ${net.vpcId} of shop"))
    clouds.other_agent.run_once()
    assert clouds.kube.get("deployments", "web") is None
    assert "waits for net" in clouds.component("shop", "web")["message"]
    clouds.settle()
    made = clouds.component("shop", "net")["resourceId"]
    assert value(clouds) == f"net {made} of shop"
    assert clouds.status("shop", "web") == "Active"


def test_another_resource_of_the_name_wakes_the_other_agent_which_writes_its_value(clouds: TwoClouds) -> None:
    clouds.deploy("shop", vpc(), workload(NET="${net.vpcId}"))
    clouds.settle()
    before = clouds.component("shop", "net")["resourceId"]
    clouds.person.ec2.delete_vpc(VpcId=before)
    clouds.deploy("shop", vpc(), workload(NET="${net.vpcId}"))  # what was lost is made anew
    clouds.settle(at_most=30)
    after = clouds.component("shop", "net")["resourceId"]
    assert after != before
    assert value(clouds) == after


@pytest.mark.rule("S6", "O2")
def test_an_importer_of_what_another_live_system_owns_refers_to_it_all_the_same(clouds: TwoClouds) -> None:
    clouds.deploy("platform", vpc())
    clouds.settle()
    made = clouds.component("platform", "net")["resourceId"]
    clouds.deploy("shop", {**vpc(), "importOnly": True}, workload(NET="${net.vpcId}"))
    clouds.settle()
    assert value(clouds) == made
    clouds.delete("shop")
    clouds.settle(at_most=30)
    assert clouds.kube.get("deployments", "web") is None
    assert clouds.component("platform", "net")["status"] == "Active"


def test_a_value_stays_while_what_it_comes_from_is_in_override(clouds: TwoClouds) -> None:
    clouds.deploy("shop", vpc(), workload(NET="${net.vpcId}"))
    clouds.settle()
    made = clouds.component("shop", "net")["resourceId"]
    clouds.person.break_glass(made)
    clouds.settle()
    assert clouds.status("shop", "net") == "ManualOverride"
    clouds.deploy("shop", vpc(), workload(NET="${net.vpcId}", MORE="1"))
    clouds.settle()
    assert value(clouds) == made
    assert value(clouds, "MORE") == "1"


@pytest.mark.rule("O10")
def test_what_refers_is_deleted_before_what_it_refers_to(clouds: TwoClouds) -> None:
    clouds.deploy("shop", vpc(), workload(NET="${net.vpcId}"))
    clouds.settle()
    made = clouds.component("shop", "net")["resourceId"]
    clouds.delete("shop")
    clouds.agent.run_once()
    assert clouds.person.ec2.describe_vpcs(VpcIds=[made])["Vpcs"], "somebody still refers to it"
    clouds.settle(at_most=30)
    assert clouds.kube.get("deployments", "web") is None
    assert not [one for one in clouds.person.ec2.describe_vpcs()["Vpcs"] if one["VpcId"] == made]
