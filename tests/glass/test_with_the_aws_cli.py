"""Break the glass with the vendor's own command line, with the commands that the product prints."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import sandbox_env
from tests import aws_rights
from tests.glass.printed_commands import Run, break_and_hand_back, commands, terminal
from tests.offers.aws.example import Example
from tests.offers.aws.examples import EXAMPLES
from tests.offers.aws_resources.declarations import one
from tests.world import World, vpc

AWS = Path(sys.executable).parent / "aws"
pytestmark = [
    pytest.mark.timeout(300),  # every command of aws takes a second, and several where others are at work too
    pytest.mark.skipif(not AWS.exists(), reason="the aws command line is not installed beside Python"),
]


@pytest.fixture
def aws(world: World, tmp_path: Path) -> Run:
    """Runs one command of the aws command line, as a person with a terminal would; the one beside this Python."""
    beside = f"{AWS.parent}{os.pathsep}{os.environ['PATH']}"
    return terminal(tmp_path, {**sandbox_env(world.sandbox.url), "PATH": beside}, seconds=90)


@pytest.mark.rule("G1", "G7", "G12", "T8")
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=[kind.__name__ for kind in EXAMPLES])
def test_every_offer_is_let_go_and_handed_back_by_the_printed_commands(
    world: World, aws: Run, example: Example
) -> None:
    example.prepare(world.person.client)
    world.deploy("ls-a", *example.components)
    world.settle(at_most=30)
    component = example.components[-1]["id"]
    assert world.status("ls-a", component) == "Active"
    break_and_hand_back(world, aws, component, lambda: world.settle(at_most=30))
    world.assert_safe()


@pytest.mark.rule("G1", "G7", "G12", "T10")
@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_what_has_no_arn_is_let_go_and_handed_back_by_cloud_control(world: World, aws: Run) -> None:
    """Tags as a list and as a map; other people's stay, also one that somebody adds while the command is on its way."""
    shapes = (
        one("AWS::Glue::UsageProfile", "listed", region="eu-west-1", Name="listed"),
        one("AWS::Glue::DataQualityRuleset", "mapped", region="eu-west-1", Name="mapped", Ruleset="Rules = []"),
    )
    aws_rights.limit_to(world.sandbox, shapes)
    world.deploy("ls-a", *shapes)
    world.settle(at_most=30)
    control = world.person.client("cloudcontrol")
    for component, others in (("listed", {"Key": "team", "Value": 'it\'s "blue"'}), ("mapped", 'it\'s "blue"')):
        where = {"TypeName": world.component("ls-a", component)["type"], "Identifier": component}
        at = "/Tags/-" if component == "listed" else "/Tags/team"
        control.update_resource(**where, PatchDocument=json.dumps([{"op": "add", "path": at, "value": others}]))
        break_and_hand_back(world, aws, component, lambda: world.settle(at_most=30))
        held = json.loads(control.get_resource(**where)["ResourceDescription"]["Properties"])["Tags"]
        assert (others in held) if component == "listed" else (held["team"] == others)
    world.assert_safe()


@pytest.mark.rule("G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12")
def test_a_whole_manual_override_of_one_vpc(world: World, aws: Run) -> None:
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    break_glass, readopt = commands(world, "net")
    here = "--region eu-west-1"

    def drift() -> dict[str, Any] | None:
        world.cycle()
        return world.drift("ls-a", "net")

    aws(f"aws ec2 create-tags {here} --resources {vpc_id} --tags Key=Team,Value=payments")
    aws(break_glass[0])
    aws(f"aws ec2 modify-vpc-attribute {here} --vpc-id {vpc_id} --no-enable-dns-hostnames")
    assert drift() == {"enableDnsHostnames": {"declared": True, "actual": False}}
    assert world.status("ls-a", "net") == "ManualOverride"

    world.deploy("ls-a", vpc(enableDnsHostnames=True, enableDnsSupport=True))
    assert drift() == {"enableDnsHostnames": {"declared": True, "actual": False}}, "a deploy changes only the report"

    aws(readopt[0])
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert drift() is None
    assert world.person.tags(vpc_id)["Team"] == "payments"

    aws(break_glass[0])
    world.cycle()
    assert world.force_push("ls-a", "net").status_code == 202
    world.settle()
    assert world.status("ls-a", "net") == "Active"

    aws(break_glass[0])
    world.cycle()
    aws(f"aws ec2 delete-vpc {here} --vpc-id {vpc_id}")
    world.cycle(2)
    assert world.status("ls-a", "net") == "ManualOverride"
    world.deploy("ls-a", vpc())
    world.settle()
    assert world.output("ls-a", "net", "vpcId") != vpc_id

    made = aws(f"aws ec2 create-vpc {here} --cidr-block 10.9.0.0/16 --query Vpc.VpcId --output text").strip()
    aws(f"aws ec2 create-tags {here} --resources {made} --tags Key=Name,Value=legacy")
    world.deploy("ls-a", vpc(), vpc("legacy", cidrBlock="10.9.0.0/16"))
    world.cycle()
    assert world.component("ls-a", "legacy")["outputFields"]["vpcId"] == made
    assert world.status("ls-a", "legacy") == "ManualOverride"
    aws(commands(world, "legacy")[1][0])
    world.settle()
    assert world.status("ls-a", "legacy") == "Active"
    assert world.person.tags(made)["fractal-cloud-owner"] == "ls-a"
    world.assert_safe()
