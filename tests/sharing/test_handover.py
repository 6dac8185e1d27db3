"""A component may change its id; a resource may be reached from two environments: it stays one resource."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from tests.sharing.aws_state import is_there, vpcs, writes
from tests.world import World, subnet, vpc


@pytest.mark.rule("O16")
def test_a_component_that_changes_its_id_is_handed_over(world: World) -> None:
    world.deploy("ls-a", vpc("net", name="the-net"), subnet())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    before = len(writes(world, "ls-a"))
    world.deploy("ls-a", vpc("network", name="the-net"), subnet(vpc="network"))
    world.settle()
    assert world.output("ls-a", "network", "vpcId") == vpc_id
    assert world.status("ls-a", "network") == world.status("ls-a", "subnet") == "Active"
    assert world.api.get("/livesystems/ls-a/components/net").status_code == 404
    assert len(writes(world, "ls-a")) == before, "nothing was deleted, created or tagged for it"


@pytest.mark.rule("O16", "G5")
def test_an_override_goes_with_the_component_that_is_handed_over(world: World) -> None:
    world.deploy("ls-a", vpc("net", name="the-net"))
    world.settle()
    world.person.break_glass(world.output("ls-a", "net", "vpcId"))
    world.cycle()
    since = world.component("ls-a", "net")["override"]["since"]
    world.deploy("ls-a", vpc("network", name="the-net"))
    world.settle()
    assert world.status("ls-a", "network") == "ManualOverride"
    assert world.component("ls-a", "network")["override"]["since"] == since


@pytest.mark.rule("O16")
def test_two_components_may_swap_their_ids(world: World) -> None:
    world.deploy("ls-a", vpc("one", name="x"), vpc("two", name="y", cidrBlock="10.1.0.0/16"))
    world.settle()
    ids = {name: world.output("ls-a", name, "vpcId") for name in ("one", "two")}
    world.deploy("ls-a", vpc("two", name="x"), vpc("one", name="y", cidrBlock="10.1.0.0/16"))
    world.settle()
    assert {name: world.output("ls-a", name, "vpcId") for name in ("two", "one")} == {
        "two": ids["one"],
        "one": ids["two"],
    }
    assert world.sandbox.aws.calls.count(operation="CreateVpc", actor="agent") == 2
    assert all(is_there(world, one) for one in ids.values())


@pytest.mark.rule("O16")
def test_two_components_with_one_identity_are_refused_at_deploy(world: World) -> None:
    world.agent.run_once()
    body = {"id": "ls-a", "components": [vpc("one", name="net"), vpc("two", name="net")]}
    response = world.api.put("/livesystems/ls-a", json=body)
    assert response.status_code == 422
    errors = " ".join(f"{error['path']} {error['message']}" for error in response.json()["errors"])
    assert "one" in errors
    assert "two" in errors
    assert world.api.get("/livesystems/ls-a").status_code == 404, "nothing of it is stored"


@pytest.fixture
def staging(world: World) -> Iterator[Agent]:
    """A second agent, of another environment, that reaches the same account."""
    settings: dict[str, Any] = {"cycle_seconds": world.cycle_seconds, "visibility_seconds": 3 * world.cycle_seconds}
    agent = Agent(
        AgentSettings(providers=("aws",), environment="staging", token=world.agent_token, **settings), world.plane()
    )
    yield agent
    agent.close()


@pytest.mark.rule("O2", "O1")
def test_two_environments_that_reach_one_account_share_its_resources(world: World, staging: Agent) -> None:
    staging.run_once()
    world.agent.run_once()
    world.deploy("ls-a", vpc(), subnet())
    world.deploy("ls-b", vpc(), subnet(), environment="staging")
    for _ in range(3):
        staging.run_once()
        world.cycle()
    statuses = {(ls, name): world.status(ls, name) for ls in ("ls-a", "ls-b") for name in ("net", "subnet")}
    assert statuses == {
        ("ls-a", "net"): "Active",
        ("ls-a", "subnet"): "Active",
        ("ls-b", "net"): "ExternallyManaged",
        ("ls-b", "subnet"): "ExternallyManaged",
    }
    assert len(vpcs(world)) == 1
    assert world.sandbox.aws.calls.count(operation="CreateSubnet", actor="agent") == 1
    world.assert_safe()


@pytest.mark.rule("O2", "O3")
def test_when_the_agent_of_another_environment_serves_the_account_the_owner_stays_the_owner(
    world: World, staging: Agent
) -> None:
    world.agent.run_once()
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.agent.close()
    world.release(world.agent)
    staging.run_once()
    world.deploy("ls-b", vpc(enableDnsHostnames=True), environment="staging")
    for _ in range(3):
        staging.run_once()
    assert world.status("ls-b", "net") == "ExternallyManaged"
    assert world.status("ls-a", "net") == "Active"
    assert world.person.tags(vpc_id)["fractal-cloud-owner"] == "ls-a"
    world.assert_safe()
