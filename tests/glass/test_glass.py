"""Manual override: removing one tag stops the agent from writing, and adding two hands the resource back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.world import World, subnet, vpc

DNS_OFF = {"enableDnsHostnames": {"declared": True, "actual": False}}


def broken(world: World, *more: dict[str, Any]) -> str:
    """A VPC whose glass was broken and whose DNS host names were switched off by hand; returns its id."""
    world.deploy("ls-a", vpc(enableDnsHostnames=True), *more)
    world.settle()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.person.break_glass(vpc_id)
    switch_dns(world, vpc_id, on=False)
    world.cycle()
    return vpc_id


def switch_dns(world: World, vpc_id: str, *, on: bool) -> None:
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": on})


def dns_is_on(world: World, vpc_id: str) -> bool:
    answer = world.person.ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute="enableDnsHostnames")
    return bool(answer["EnableDnsHostnames"]["Value"])


def agent_writes(world: World) -> list[str]:
    return [r.call.operation for r in world.sandbox.aws.calls if r.call.actor == "agent" and r.call.is_write]


@pytest.mark.rule("G1", "G3", "G4", "S7")
def test_removing_managed_by_starts_the_manual_override(world: World) -> None:
    broken(world, subnet())
    net = world.component("ls-a", "net")
    assert net["status"] == "ManualOverride"
    assert net["outputFields"]["drift"] == DNS_OFF
    assert net["override"]["since"] is not None
    assert net["override"]["by"] is None
    assert world.status("ls-a", "subnet") == "Active", "a VPC in override changes nothing for its subnets"
    world.assert_safe()


@pytest.mark.rule("G3", "G5", "T3")
def test_in_override_the_agent_reads_on_and_never_writes_however_long_it_lasts(world: World) -> None:
    vpc_id = broken(world)
    world.sandbox.aws.calls.clear()
    world.cycle(6)
    assert agent_writes(world) == []
    assert "managed-by" not in world.person.tags(vpc_id)
    assert world.output("ls-a", "net", "vpcId") == vpc_id, "dependents go on working"
    switch_dns(world, vpc_id, on=True)
    world.cycle()
    assert world.drift("ls-a", "net") is None, "no difference: no drift key"
    assert world.status("ls-a", "net") == "ManualOverride"


@pytest.mark.rule("G6", "S22", "C8")
def test_a_deploy_while_in_override_changes_the_drift_report_and_nothing_else(world: World) -> None:
    vpc_id = broken(world)
    world.sandbox.aws.calls.clear()
    mutation = world.deploy("ls-a", vpc(enableDnsHostnames=False))
    world.cycle()
    net = world.component("ls-a", "net")
    assert net["status"] == "ManualOverride"
    assert "drift" not in net["outputFields"]
    assert net["observedGeneration"] == net["generation"] == 2
    assert agent_writes(world) == []
    assert not dns_is_on(world, vpc_id)
    assert world.mutation("ls-a", mutation)["status"] == "Completed"


@pytest.mark.rule("G7", "G8", "S9", "T6")
def test_the_handshake_reverts_every_drifted_parameter_and_cleans_up_after_itself(world: World) -> None:
    vpc_id = broken(world)
    world.person.hand_back(vpc_id)
    world.settle()
    assert dns_is_on(world, vpc_id)
    assert world.status("ls-a", "net") == "Active"
    assert world.drift("ls-a", "net") is None
    tags = world.person.tags(vpc_id)
    assert tags == {"Name": "net", "managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a"}
    assert world.component("ls-a", "net")["override"] is None
    world.assert_safe()


@pytest.mark.rule("G8")
def test_changes_are_kept_by_walking_the_declaration_to_them_before_handing_back(world: World) -> None:
    vpc_id = broken(world)
    world.deploy("ls-a", vpc(enableDnsHostnames=False))
    world.cycle()
    world.person.hand_back(vpc_id)
    world.sandbox.aws.calls.clear()
    world.settle()
    assert agent_writes(world) == ["DeleteTags"], "nothing is written but the removal of the reconcile tag"
    assert not dns_is_on(world, vpc_id)
    assert world.status("ls-a", "net") == "Active"


@pytest.mark.rule("G7", "S11", "T3")
def test_managed_by_alone_does_not_hand_it_back_and_the_message_says_what_is_missing(world: World) -> None:
    vpc_id = broken(world)
    world.person.tag(vpc_id, managed_by="fractal-cloud")
    world.sandbox.aws.calls.clear()
    world.cycle(3)
    net = world.component("ls-a", "net")
    assert net["status"] == "ManualOverride"
    assert net["message"].endswith("To hand it back, add fractal-cloud: reconcile")
    assert agent_writes(world) == []


@pytest.mark.rule("T5", "G7")
def test_reconcile_alone_means_nothing_until_managed_by_joins_it(world: World) -> None:
    vpc_id = broken(world)
    world.person.tag(vpc_id, fractal_cloud="reconcile")
    world.cycle(2)
    assert world.status("ls-a", "net") == "ManualOverride"
    assert world.person.tags(vpc_id)["fractal-cloud"] == "reconcile", "it is left where it is"
    world.person.tag(vpc_id, managed_by="fractal-cloud")
    world.settle()
    assert world.status("ls-a", "net") == "Active"


@pytest.mark.rule("S11a", "G7")
def test_with_readoption_by_tag_adding_managed_by_is_enough_to_hand_back(world: World) -> None:
    world.deploy("ls-a", vpc(enableDnsHostnames=True), readoption="tag")
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.break_glass(vpc_id)
    switch_dns(world, vpc_id, on=False)
    world.cycle()
    assert world.status("ls-a", "net") == "ManualOverride"
    world.person.tag(vpc_id, managed_by="fractal-cloud")
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert dns_is_on(world, vpc_id)


@pytest.mark.rule("T7", "G10")
def test_another_managers_tag_counts_as_absent_and_is_never_changed(world: World) -> None:
    vpc_id = broken(world)
    world.person.tag(vpc_id, managed_by="terraform")
    world.cycle()
    net = world.component("ls-a", "net")
    assert net["status"] == "ManualOverride"
    assert "'terraform'" in net["message"]
    world.force_push("ls-a", "net")
    world.cycle(2)
    assert world.person.tags(vpc_id)["managed-by"] == "terraform"
    world.assert_safe()


@pytest.mark.rule("T1", "T10")
def test_everybody_elses_tags_survive_the_whole_round(world: World) -> None:
    vpc_id = broken(world)
    world.person.tag(vpc_id, Team="höhe & café", cost_centre="42 = x")
    world.person.hand_back(vpc_id)
    world.settle()
    tags = world.person.tags(vpc_id)
    assert tags["Team"] == "höhe & café"
    assert tags["cost-centre"] == "42 = x"


@pytest.mark.rule("G9", "S2", "S4")
def test_what_is_deleted_while_in_override_stays_in_override_until_a_deploy_creates_it(world: World) -> None:
    vpc_id = broken(world)
    world.person.ec2.delete_vpc(VpcId=vpc_id)
    world.cycle(3)
    net = world.component("ls-a", "net")
    assert net["status"] == "ManualOverride"
    assert "gone" in net["message"]
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert world.output("ls-a", "net", "vpcId") != vpc_id
    world.assert_safe()


@pytest.mark.rule("G10", "S17")
def test_a_force_push_puts_the_tags_back_in_the_operators_name_and_reconciles(world: World) -> None:
    vpc_id = broken(world)
    assert world.force_push("ls-a", "net").status_code == 202
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert dns_is_on(world, vpc_id)
    assert world.person.tags(vpc_id)["managed-by"] == "fractal-cloud"
    kinds = [event["kind"] for event in world.events("ls-a")]
    assert "ForcePushRequested" in kinds
    world.assert_safe()


@pytest.mark.rule("G10")
def test_a_force_push_of_a_whole_live_system_includes_what_is_in_override(world: World) -> None:
    broken(world, subnet())
    response = world.api.post("/livesystems/ls-a/force-push")
    assert response.status_code == 202
    world.settle()
    assert {world.status("ls-a", name) for name in ("net", "subnet")} == {"Active"}


@pytest.mark.rule("G11", "S7", "S9")
def test_an_existing_resource_is_brought_in_by_its_name_its_drift_and_the_handshake(world: World) -> None:
    made = world.person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    world.person.tag(made, Name="net", Team="legacy")
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.cycle()
    net = world.component("ls-a", "net")
    assert net["status"] == "ManualOverride"
    assert net["outputFields"]["vpcId"] == made
    assert net["outputFields"]["drift"] == DNS_OFF
    world.person.hand_back(made)
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert world.person.tags(made)["fractal-cloud-owner"] == "ls-a"
    assert world.person.tags(made)["Team"] == "legacy"
    world.assert_safe()


@pytest.mark.rule("G13")
def test_glass_broken_through_the_product_says_who_why_and_until_when(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    response = world.glass("ls-a", "net", "break", reason="outage 4711", until="2099-01-01T00:00:00Z")
    assert response.status_code == 202, response.text
    world.settle()
    net = world.component("ls-a", "net")
    assert net["status"] == "ManualOverride"
    assert net["override"]["reason"] == "outage 4711"
    assert net["override"]["by"]
    assert net["override"]["until"].startswith("2099-01-01")
    assert "managed-by" not in world.person.tags(vpc_id)
    assert world.person.tags(vpc_id)["fractal-cloud-owner"] == "ls-a", "the owner tag goes only with the resource"
    assert world.glass("ls-a", "net", "readopt").status_code == 202
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    world.assert_safe()


@pytest.mark.rule("G15")
def test_ignored_drift_is_set_at_creation_and_never_compared_again(world: World) -> None:
    ignoring = {**vpc(enableDnsHostnames=True), "ignoreDrift": ["enableDnsHostnames"]}
    world.deploy("ls-a", ignoring)
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    assert dns_is_on(world, vpc_id), "set at creation"
    switch_dns(world, vpc_id, on=False)
    world.cycle(2)
    assert world.drift("ls-a", "net") is None
    world.force_push("ls-a", "net")
    world.settle()
    assert not dns_is_on(world, vpc_id), "also not by a Force Push"
