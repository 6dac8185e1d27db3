"""A deletion that waits for what will not come back is ended by an operator, and says that nothing was confirmed."""

from __future__ import annotations

import pytest

from tests.sharing.aws_state import is_there, kinds, writes
from tests.world import World, subnet, vpc

REASON = "the account is closed"


def _unreadable(world: World, operation: str) -> None:
    world.sandbox.aws.knobs.fail(
        operation=operation, actor="agent", code="UnauthorizedOperation", status=403, times=None
    )


@pytest.mark.rule("O20")
def test_an_operator_ends_a_deletion_that_nobody_can_confirm(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    _unreadable(world, "DescribeVpcs")
    mutation = str(world.delete("ls-a")["mutationId"])
    world.cycle(2)
    message = world.component("ls-a", "net")["message"]
    assert "fractal delete ls-a --forget net --reason" in message
    before = writes(world, "ls-a")
    answer = world.api.delete("/livesystems/ls-a", params={"forget": "net", "reason": REASON})
    assert (answer.status_code, answer.json()["mutationId"]) == (202, mutation)
    record = world.mutation("ls-a", mutation)
    assert record["status"] == "Completed"
    assert record["components"]["net"]["message"].startswith(f"left, not confirmed: {vpc_id}; ")
    assert REASON in record["components"]["net"]["message"]
    assert world.api.get("/livesystems/ls-a").status_code == 404
    assert "Forgotten" in kinds(world, "ls-a")
    world.cycle(2)
    assert writes(world, "ls-a") == before, "nothing is written for it, then or later"
    assert is_there(world, vpc_id)
    left = [r for r in world.api.get("/resources").json()["items"] if r["resourceId"] == vpc_id]
    assert [(one["owner"], one["leftBy"]) for one in left] == [("ls-a", "ls-a")]


@pytest.mark.rule("O20", "O18", "O10")
def test_what_is_forgotten_leaves_what_it_depends_on(world: World) -> None:
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    _unreadable(world, "DescribeSubnets")
    mutation = str(world.delete("ls-a")["mutationId"])
    world.cycle(2)
    refused = world.api.delete("/livesystems/ls-a", params={"forget": "net", "reason": REASON})
    assert refused.status_code == 409
    assert "subnet depends on 'net' and has not ended" in refused.json()["detail"]
    assert world.api.delete("/livesystems/ls-a", params={"forget": "subnet", "reason": REASON}).status_code == 202
    world.settle()
    assert is_there(world, vpc_id)
    components = world.mutation("ls-a", mutation)["components"]
    assert components["net"]["message"] == f"left in the cloud: {vpc_id}: subnet, which was left, depends on it"


@pytest.mark.rule("O20")
@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"forget": "net", "reason": " "}, 422, "say why nobody can confirm"),
        ({"forget": "net", "reason": REASON}, 409, "is not being deleted"),
        ({"forget": "nonsense", "reason": REASON}, 404, "has no component 'nonsense'"),
    ],
)
def test_what_cannot_be_forgotten_is_refused_and_nothing_changes(
    world: World, query: dict[str, str], status: int, said: str
) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    answer = world.api.delete("/livesystems/ls-a", params=query)
    assert answer.status_code == status
    assert said in answer.text
    assert world.status("ls-a", "net") == "Active"


@pytest.mark.rule("O20", "O6")
def test_a_blocked_deletion_names_the_ways_out(world: World) -> None:
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    subnet_id = world.output("ls-a", "subnet", "subnetId")
    world.person.ec2.create_network_interface(SubnetId=subnet_id)
    world.delete("ls-a")
    world.cycle(2)
    message = world.component("ls-a", "subnet")["message"]
    for way in ("fractal-cloud-owner", "managed-by", "fractal delete ls-a --forget subnet --reason"):
        assert way in message, message
