"""VPCs, subnets and security groups: what is peculiar to them."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.sighting import Condition
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags
from fractal_cloud.offers.aws.rules import LINK_MARK, flat, from_permissions, to_permissions
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.aws.conftest import World
from tests.offers.aws.example import REGION
from tests.offers.aws.examples.security_group import ANYTHING, GROUP, HTTPS, OTHER_GROUP, SSH
from tests.offers.aws.examples.subnet import SUBNET
from tests.offers.aws.examples.vpc import VPC

VPCS = installed()["NetworkAndCompute.IaaS.AwsVpc"]
SUBNETS = installed()["NetworkAndCompute.IaaS.AwsSubnet"]
GROUPS = installed()["NetworkAndCompute.IaaS.AwsSecurityGroup"]


class TestVpc:
    @pytest.mark.rule("S14", "S15")
    def test_all_of_the_region_are_sighted_namesakes_and_nameless_ones_too(self, world: World) -> None:
        world.create(VPC)
        world.create(VPC)
        world.person("ec2").create_vpc(CidrBlock="10.9.0.0/16")
        names = [one.name for one in all_sightings(VPCS.sightings(world.cloud(), Query(frozenset({"net"}))))]
        assert sorted(names)[-2:] == ["net", "net"]
        assert "" in names

    def test_what_is_not_visible_yet_reads_as_absent(self, world: World, sandbox: Sandbox) -> None:
        sandbox.aws.knobs.late_visibility(reads=1, kind="vpc")
        made = world.create(VPC)
        assert VPCS.read(world.cloud(), made.resource_id) is None
        found = VPCS.read(world.cloud(), made.resource_id)
        assert found is not None

    def test_one_that_is_being_created_is_reported_as_such(self, world: World, sandbox: Sandbox) -> None:
        sandbox.aws.knobs.slow_creation(reads=2, kind="vpc")
        made = world.create(VPC)
        found = VPCS.read(world.cloud(), made.resource_id)
        assert found is not None
        assert found.condition is Condition.CREATING

    @pytest.mark.rule("O6")
    def test_what_keeps_it_from_going_is_named(self, world: World) -> None:
        vpc = world.create(VPC)
        subnet, group = world.create(SUBNET), world.create(GROUP)
        with pytest.raises(Conflict) as refused:
            VPCS.delete(world.cloud(), vpc)
        assert f"{subnet.resource_id} 'part'" in refused.value.message
        assert f"{group.resource_id} 'web'" in refused.value.message
        assert "'default'" not in refused.value.message

    def test_the_refusal_stands_where_its_reason_cannot_be_read(self, world: World, sandbox: Sandbox) -> None:
        vpc = world.create(VPC)
        world.create(SUBNET)
        sandbox.aws.knobs.fail(operation="DescribeSubnets", times=None)
        with pytest.raises(Conflict, match="DependencyViolation"):
            VPCS.delete(world.cloud(), vpc)

    def test_swept_parameters_are_read_only_when_named(self, world: World, sandbox: Sandbox) -> None:
        made = world.create(VPC)
        sandbox.aws.calls.clear()
        [seen] = [one for one in all_sightings(VPCS.sightings(world.cloud(), Query())) if one.name == "net"]
        assert "enableDnsSupport" not in seen.actual
        assert VPCS.sweep(world.cloud(), seen, ["enableDnsSupport"]) == {"enableDnsSupport": True}
        assert len(sandbox.aws.calls) == 1 + VPCS.sweep_calls(["enableDnsSupport"])
        assert made.outputs["vpcArn"] == f"arn:aws:ec2:{REGION}:123456789012:vpc/{made.resource_id}"

    def test_a_tag_is_taken_away_only_while_it_has_the_value_seen(self, world: World, sandbox: Sandbox) -> None:
        seen = world.create(VPC)
        sandbox.aws.lift_limits()  # by the call's own form: with the policy, AWS refuses it
        tag = {"Key": "managed-by", "Value": "terraform"}
        world.person("ec2").create_tags(Resources=[seen.resource_id], Tags=[tag])
        VPCS.tag(world.cloud(), seen, NO_TAGS, ProtocolTags(managed_by="fractal-cloud"))
        found = VPCS.read(world.cloud(), seen.resource_id)
        assert found is not None
        assert found.protocol.managed_by == "terraform"


def test_a_subnet_is_found_in_its_vpc(world: World) -> None:
    vpc = world.create(VPC)
    subnet = world.create(SUBNET)
    assert subnet.parent_id == vpc.resource_id
    assert subnet.actual["vpc"] == vpc.resource_id
    assert (
        len(
            [
                one
                for one in all_sightings(SUBNETS.sightings(world.cloud(), Query()))
                if one.parent_id == vpc.resource_id
            ]
        )
        == 1
    )


class TestSecurityGroup:
    def _rules(self, world: World, direction: str) -> list[dict[str, Any]]:
        found = GROUPS.read(world.cloud(), world.seen["web"].resource_id)
        assert found is not None
        rules: list[dict[str, Any]] = found.actual[direction]
        return rules

    def test_the_egress_aws_starts_with_is_no_drift_where_none_is_declared(self, world: World) -> None:
        world.create(VPC)
        made = world.create(OTHER_GROUP)
        assert made.actual["egress"] == [ANYTHING]
        assert world.drift(OTHER_GROUP)[1] == {}

    def test_an_empty_egress_removes_the_first_rule(self, world: World) -> None:
        world.create(VPC)
        world.create(OTHER_GROUP)
        assert world.correct(OTHER_GROUP, egress=[]) == 1

    def test_what_is_allowed_comes_before_what_is_forbidden(self, world: World, sandbox: Sandbox) -> None:
        world.create(VPC)
        world.create(GROUP)
        world.correct(GROUP)
        sandbox.aws.calls.clear()
        world.correct(GROUP, ingress=[SSH], egress=[HTTPS])
        writes = [call.operation for call in sandbox.aws.calls.find(writes_only=True)]
        assert writes == [
            "AuthorizeSecurityGroupIngress",
            "AuthorizeSecurityGroupEgress",
            "RevokeSecurityGroupIngress",
            "RevokeSecurityGroupEgress",
        ]

    def test_a_description_alone_is_changed_in_place(self, world: World, sandbox: Sandbox) -> None:
        world.create(VPC)
        world.create(GROUP)
        world.correct(GROUP)
        sandbox.aws.calls.clear()
        world.correct(GROUP, ingress=[{**HTTPS, "description": "another"}])
        writes = [call.operation for call in sandbox.aws.calls.find(writes_only=True)]
        assert writes == ["UpdateSecurityGroupRuleDescriptionsIngress"]

    @pytest.mark.rule("L17")
    def test_the_rules_of_links_are_neither_drift_nor_touched(self, world: World) -> None:
        world.create(VPC)
        group = world.create(GROUP)
        world.correct(GROUP)
        rule = {**SSH, "description": f"{LINK_MARK}producer"}
        world.person("ec2").authorize_security_group_ingress(
            GroupId=group.resource_id, IpPermissions=to_permissions([rule])
        )
        assert self._rules(world, "ingress") == [HTTPS]
        world.correct(GROUP, ingress=[])
        raw = world.person("ec2").describe_security_groups(GroupIds=[group.resource_id])["SecurityGroups"][0]
        assert [one["IpRanges"][0]["Description"] for one in raw["IpPermissions"]] == [f"{LINK_MARK}producer"]

    def test_who_still_uses_it_is_named(self, world: World) -> None:
        world.create(VPC)
        group, other = world.create(GROUP), world.create(OTHER_GROUP)
        world.correct(OTHER_GROUP, ingress=[{"ipProtocol": "-1", "referencedGroupId": group.resource_id}])
        with pytest.raises(Conflict, match=f"{other.resource_id} 'other'"):
            GROUPS.delete(world.cloud(), group)

    @pytest.mark.parametrize(
        ("written", "normal", "reason"),
        [
            (
                {"ipProtocol": "6", "fromPort": 1, "toPort": 2},
                {"ipProtocol": "tcp", "fromPort": 1, "toPort": 2},
                "number",
            ),
            ({"ipProtocol": "all", "fromPort": 1, "toPort": 2}, {"ipProtocol": "-1"}, "everything has no ports"),
            ({"ipProtocol": "50", "fromPort": None}, {"ipProtocol": "50"}, "nor has a protocol without them"),
            ({"ipProtocol": "-1", "description": ""}, {"ipProtocol": "-1"}, "nothing is said"),
        ],
    )
    def test_rules_are_compared_in_one_spelling(
        self, written: dict[str, Any], normal: dict[str, Any], reason: str
    ) -> None:
        assert flat({**written, "cidrIp": "10.1.2.3/8"}) == {**normal, "cidrIp": "10.0.0.0/8"}, reason

    def test_one_answer_with_many_peers_is_many_rules(self) -> None:
        permission = {
            "IpProtocol": "tcp",
            "FromPort": 80,
            "ToPort": 80,
            "IpRanges": [{"CidrIp": "10.0.0.0/8"}, {"CidrIp": "192.168.0.0/16", "Description": "home"}],
            "Ipv6Ranges": [{"CidrIpv6": "::/0"}],
            "UserIdGroupPairs": [{"GroupId": "sg-1", "UserId": "1"}],
            "PrefixListIds": [{"PrefixListId": "pl-1"}],
        }
        rules = from_permissions([permission])
        assert len(rules) == 5
        assert from_permissions(to_permissions(rules)) == rules
