"""Rules of security groups whose peer is another group of the declaration, deployed to a cloud."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fractal_cloud.network_and_compute import aws
from tests.world import World

NET = aws.vpc(id="net", region="eu-west-1", cidr_block="10.0.0.0/16")
FRONT = aws.security_group(id="front", vpc=NET, tags={"team": "shop"})


def _declared(component: Any) -> dict[str, Any]:
    return {
        "id": component.id,
        "type": component.type,
        "parameters": component.parameters(),
        "dependencies": ["net"] if component is not NET else [],
        "tags": component.tags,
    }


@pytest.mark.parametrize("said", ["a component", "$output", "text"])
def test_a_rule_names_another_group_of_the_declaration(world: World, said: str) -> None:
    peer = {"a component": FRONT, "$output": {"$output": "front.groupId"}, "text": "${front.groupId}"}[said]
    rule: Any = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "referencedGroupId": peer}
    back = aws.security_group(id="back", vpc=NET, ingress=[rule])
    world.deploy("ls-a", *map(_declared, (NET, FRONT, back)))
    world.settle()
    assert [world.status("ls-a", name) for name in ("net", "front", "back")] == ["Active"] * 3
    groups = {one["GroupName"]: one for one in world.person.ec2.describe_security_groups()["SecurityGroups"]}
    [pair] = groups["back"]["IpPermissions"][0]["UserIdGroupPairs"]
    assert pair["GroupId"] == groups["front"]["GroupId"]
    assert {"Key": "team", "Value": "shop"} in groups["front"]["Tags"]


def test_the_sandbox_refuses_a_name_in_the_place_of_an_id(world: World) -> None:
    world.deploy("ls-a", _declared(NET), _declared(FRONT))
    world.settle()
    ec2 = world.person.ec2
    [front] = [one for one in ec2.describe_security_groups()["SecurityGroups"] if one["GroupName"] == "front"]
    permission = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "front"}]}
    with pytest.raises(ClientError, match=r"InvalidGroupId\.Malformed"):
        ec2.authorize_security_group_ingress(GroupId=front["GroupId"], IpPermissions=[permission])
