"""An operator moves ownership through the product: both sides are checked, the tag is replaced once or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.faults.effects import Fault
from tests.faults.worlds import FaultyWorld, faulty_world
from tests.sharing.aws_state import has_dns, is_there
from tests.world import REGION, World, vpc

Act = Callable[[World, str], object]


def _shared(world: World) -> str:
    """A VPC that ls-a owns and ls-b imports and declares differently; returns its id."""
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    world.deploy("ls-b", vpc(enableDnsHostnames=False))
    world.settle()
    world.sandbox.aws.calls.clear()
    return str(world.output("ls-a", "net", "vpcId"))


def _owner(world: World, vpc_id: str) -> str | None:
    return world.person.tags(vpc_id).get("fractal-cloud-owner")


def _tagged(world: World) -> int:
    return int(world.sandbox.aws.calls.count(operation="CreateTags", actor="agent"))


def _events(world: World, live_system: str, kind: str) -> list[dict[str, Any]]:
    return [event for event in world.events(live_system) if event["kind"] == kind]


@pytest.mark.rule("O8", "S12a", "S6", "T4", "T1")
def test_the_owner_tag_is_replaced_and_the_new_owner_waits_one_cycle(world: World) -> None:
    vpc_id = _shared(world)
    world.person.tag(vpc_id, team="shop")
    before = world.person.tags(vpc_id)
    answer = world.transfer("ls-a", "net", "ls-b", reason="reorganised")
    assert answer.status_code == 202, answer.text
    assert answer.json() == {
        "liveSystemId": "ls-a",
        "componentId": "net",
        "to": "ls-b",
        "toComponentId": "net",
        "resourceId": vpc_id,
    }
    world.cycle()
    assert world.person.tags(vpc_id) == {**before, "fractal-cloud-owner": "ls-b"}
    assert world.status("ls-a", "net") == "ExternallyManaged"
    world.cycle()
    moved = world.component("ls-b", "net")
    assert moved["owner"] == "ls-b"
    assert has_dns(world, vpc_id) or moved["status"] == "Active", "a person gets to see first what would change"
    assert any("will change enableDnsHostnames" in event["message"] for event in world.events("ls-b"))
    world.settle()
    assert not has_dns(world, vpc_id)
    assert (world.status("ls-a", "net"), world.status("ls-b", "net")) == ("ExternallyManaged", "Active")
    assert _tagged(world) == 1
    world.assert_safe()


@pytest.mark.rule("O8", "C4", "C7")
def test_a_transfer_is_journalled_and_its_events_name_from_to_and_by(world: World) -> None:
    vpc_id = _shared(world)
    world.transfer("ls-a", "net", "ls-b", reason="reorganised")
    world.settle()
    for live_system in ("ls-a", "ls-b"):
        (event,) = _events(world, live_system, "OwnerChanged")
        assert (event["before"], event["after"], event["by"]) == ("ls-a", "ls-b", "admin")
        assert "reorganised" in event["message"]
    (asked,) = _events(world, "ls-a", "TransferRequested")
    assert (asked["before"], asked["after"], asked["by"]) == ("ls-a", "ls-b", "admin")
    entries = world.api.get("/livesystems/ls-a/components/net/journal").json()["items"]
    (entry,) = [one for one in entries if one["reason"] == "transfer"]
    assert (entry["verb"], entry["outcome"], entry["resourceId"]) == ("tag", "done", vpc_id)
    assert entry["before"] == {"fractal-cloud-owner": "ls-a"}
    assert entry["after"] == {"fractal-cloud-owner": "ls-b"}
    assert entry["tags"]["fractal-cloud-owner"] == "ls-a"


@pytest.mark.rule("O8", "C4")
def test_whoever_moves_the_tag_by_hand_afterwards_is_not_taken_for_the_operator(world: World) -> None:
    vpc_id = _shared(world)
    world.transfer("ls-a", "net", "ls-b")
    world.settle()
    for owner in ("ls-a", "ls-b"):
        world.person.tag(vpc_id, fractal_cloud_owner=owner)
        world.settle()
    for live_system in ("ls-a", "ls-b"):
        moves = [(event["after"], event["by"]) for event in _events(world, live_system, "OwnerChanged")]
        assert moves == [("ls-b", "unknown"), ("ls-a", "unknown"), ("ls-b", "admin")]


# --- refused at once


def _break(world: World, vpc_id: str) -> None:
    world.person.break_glass(vpc_id)
    world.cycle()


def _give_to_another(world: World, vpc_id: str) -> None:
    world.person.tag(vpc_id, fractal_cloud_owner="ls-c")
    world.cycle()


def _remove(world: World, vpc_id: str) -> None:
    world.sandbox.aws.knobs.fail(operation="CreateVpc", actor="agent", code="VpcLimitExceeded", status=400, times=99)
    world.person.ec2.delete_vpc(VpcId=vpc_id)
    world.cycle()


def _ask_for_glass(world: World, _: str) -> None:
    assert world.glass("ls-a", "net", "break").status_code == 202


REFUSED: dict[str, tuple[Act, str, str]] = {
    "to itself": (lambda world, _: None, "ls-a", "'ls-a' owns it already"),
    "nobody": (lambda world, _: None, "ls-x", "there is no LiveSystem 'ls-x'"),
    "does not declare it": (
        lambda world, _: world.deploy("ls-b", vpc("other")),
        "ls-b",
        "'ls-b' is letting it go",
    ),
    "never declared it": (lambda world, _: world.deploy("ls-c", vpc("other")), "ls-c", "'ls-c' does not declare"),
    "declares another place": (
        lambda world, _: world.deploy("ls-c", vpc(region="us-east-1" if REGION != "us-east-1" else "eu-west-1")),
        "ls-c",
        "'ls-c' does not declare",
    ),
    "only imports it": (
        lambda world, _: world.deploy("ls-b", vpc() | {"importOnly": True}),
        "ls-b",
        "'ls-b' only imports it",
    ),
    "being deleted": (lambda world, _: world.delete("ls-b"), "ls-b", "'ls-b' is being deleted"),
    "in override": (_break, "ls-b", "in manual override"),
    "another owner": (_give_to_another, "ls-b", "'ls-c' owns it"),
    "absent": (_remove, "ls-b", "the resource is absent"),
    "another request is open": (_ask_for_glass, "ls-b", "asked for break"),
}


@pytest.mark.rule("O8", "T4")
@pytest.mark.parametrize("why", REFUSED)
def test_a_transfer_is_refused_at_once_where_it_is_known_already(world: World, why: str) -> None:
    act, to, words = REFUSED[why]
    vpc_id = _shared(world)
    act(world, vpc_id)
    answer = world.transfer("ls-a", "net", to)
    assert answer.status_code == 409, answer.text
    assert words in answer.json()["detail"]
    world.cycle(2)
    assert not _events(world, "ls-a", "TransferRequested")
    assert not [call for call in world.sandbox.aws.calls.find(actor="agent") if call.origin.reason == "transfer"]
    world.assert_safe()


@pytest.mark.rule("O8", "S9", "S12a")
def test_a_transfer_waits_for_a_handshake_that_is_under_way(world: World) -> None:
    vpc_id = _shared(world)
    assert world.transfer("ls-a", "net", "ls-b").status_code == 202
    world.person.tag(vpc_id, fractal_cloud="reconcile")
    world.settle()
    written = world.sandbox.aws.calls.find(actor="agent", writes_only=True)
    assert [call.origin.reason for call in written][:2] == ["handshake", "transfer"]
    assert world.person.tags(vpc_id).get("fractal-cloud") is None
    assert _owner(world, vpc_id) == "ls-b"
    world.assert_safe()


# --- refused when the agent reads


def _tag(**tags: str) -> Act:
    return lambda world, vpc_id: world.person.tag(vpc_id, **tags)


MEANWHILE: dict[str, tuple[Act, str]] = {
    "somebody gives it away": (_tag(fractal_cloud_owner="ls-c"), "'ls-c' owns it by now"),
    "somebody moves it there already": (_tag(fractal_cloud_owner="ls-b"), "'ls-b' owns it by now"),
    "somebody removes the owner": (
        lambda world, vpc_id: world.person.untag(vpc_id, "fractal-cloud-owner"),
        "nobody owns it by now",
    ),
    "somebody takes it over": (lambda world, vpc_id: world.person.break_glass(vpc_id), "in manual override"),
    "another manager": (_tag(managed_by="terraform"), "managed-by says 'terraform'"),
    "ls-b lets it go": (lambda world, _: world.deploy("ls-b", vpc("other")), "'ls-b' does not declare it"),
    "ls-b only imports it": (
        lambda world, _: world.deploy("ls-b", vpc() | {"importOnly": True}),
        "'ls-b' does not declare it, or only imports it",
    ),
    "ls-a is deployed again": (lambda world, _: world.deploy("ls-a", vpc()), "deployed again since"),
}


@pytest.mark.rule("O8", "T4", "S16", "S17")
@pytest.mark.parametrize("what", MEANWHILE)
def test_a_transfer_is_void_once_something_changed_and_nothing_is_written(world: World, what: str) -> None:
    act, words = MEANWHILE[what]
    vpc_id = _shared(world)
    assert world.transfer("ls-a", "net", "ls-b").status_code == 202
    act(world, vpc_id)
    before = _owner(world, vpc_id)
    world.settle()
    assert not [call for call in world.sandbox.aws.calls.find(actor="agent") if call.origin.reason == "transfer"]
    assert _owner(world, vpc_id) == before or what == "somebody removes the owner"
    (event,) = _events(world, "ls-a", "TransferRefused")
    assert words in event["message"]
    assert world.component("ls-a", "net")["request"] is None
    world.assert_safe()


@pytest.mark.rule("O8", "S16", "T4")
@pytest.mark.parametrize("owner", ["ls-c", "ls-b"])
def test_somebody_who_changes_the_owner_right_before_the_last_read_wins(world: World, owner: str) -> None:
    vpc_id = _shared(world)
    world.deploy("ls-c", vpc())
    world.settle()
    world.sandbox.aws.calls.clear()
    assert world.transfer("ls-a", "net", "ls-b").status_code == 202

    def act(_: object) -> None:
        world.person.tag(vpc_id, fractal_cloud_owner=owner)

    world.sandbox.aws.knobs.before_call(act, times=1, actor="agent", operation="DescribeVpcs", resource=vpc_id)
    world.settle()
    assert _tagged(world) == 0, "the call was never sent"
    assert _owner(world, vpc_id) == owner
    assert len(_events(world, "ls-a", "TransferRefused")) == 1
    (moved,) = _events(world, "ls-a", "OwnerChanged")
    assert (moved["after"], moved["by"]) == (owner, "unknown"), "the operator did not do it"
    world.assert_safe()


@pytest.mark.rule("O8", "S17")
def test_a_transfer_that_the_cloud_refuses_is_used_up(world: World) -> None:
    vpc_id = _shared(world)
    world.sandbox.aws.knobs.fail(operation="CreateTags", actor="agent", code="UnauthorizedOperation", status=403)
    world.transfer("ls-a", "net", "ls-b")
    world.settle()
    assert _tagged(world) == 1, "what failed is asked for again"
    assert (_owner(world, vpc_id), world.status("ls-a", "net")) == ("ls-a", "Active")
    (event,) = _events(world, "ls-a", "TransferRefused")
    assert "ask once more" in event["message"]
    world.transfer("ls-a", "net", "ls-b")
    world.settle()
    assert _owner(world, vpc_id) == "ls-b"


@pytest.mark.rule("O8", "O20", "O10")
def test_a_transfer_saves_what_is_being_deleted(world: World) -> None:
    vpc_id = _shared(world)
    blocker = world.person.ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.0.9.0/24")["Subnet"]["SubnetId"]
    world.delete("ls-a")
    world.cycle()
    assert world.status("ls-a", "net") == "Deleting"
    assert world.transfer("ls-a", "net", "ls-b").status_code == 202
    world.settle()
    world.person.ec2.delete_subnet(SubnetId=blocker)
    world.settle()
    assert is_there(world, vpc_id)
    assert _owner(world, vpc_id) == "ls-b"
    assert world.api.get("/livesystems/ls-a").status_code == 404
    assert world.status("ls-b", "net") == "Active"
    world.assert_safe()


@pytest.mark.rule("O8")
def test_a_transfer_that_no_agent_carried_out_is_given_up(world: World) -> None:
    _shared(world)
    world.transfer("ls-a", "net", "ls-b")
    assert world.glass("ls-a", "net", "break", reason="an incident").status_code == 202
    (event,) = _events(world, "ls-a", "TransferRefused")
    assert "asked for break" in event["message"]


# --- whatever becomes of the agent


@pytest.mark.rule("O8", "S17", "T4", "C7")
@pytest.mark.parametrize("fault", list(Fault))
def test_the_tag_is_written_at_most_once_whatever_effect_the_agent_does_not_survive(
    session_sandbox: Sandbox, tmp_path: Path, fault: Fault
) -> None:
    with faulty_world(session_sandbox, tmp_path, FaultyWorld) as world:
        vpc_id, struck = _shared(world), 0
        for number in range(20):
            world.sandbox.aws.calls.clear()
            source, to = ("ls-a", "ls-b") if _owner(world, vpc_id) == "ls-a" else ("ls-b", "ls-a")
            assert world.transfer(source, "net", to).status_code == 202
            world.effects.arm(number, fault)
            world.survive()
            was_struck = world.effects.struck
            world.effects.arm()
            world.survive()
            tagging = world.sandbox.aws.calls.find(actor="agent", operation="CreateTags")
            sent = [call for call in tagging if call.origin.reason == "transfer"]
            assert len(sent) <= 1, "a transfer is carried out at most once"
            assert _owner(world, vpc_id) == (to if any(call.effect for call in sent) else source)
            assert world.status(_owner(world, vpc_id) or "", "net") == "Active"
            assert world.component(source, "net")["request"] is None
            open_entries = [
                entry
                for entry in world.api.get(f"/livesystems/{source}/components/net/journal").json()["items"]
                if entry["reason"] == "transfer" and entry["outcome"] is None
            ]
            assert not open_entries, "the next reading closes what was left open"
            world.assert_safe()
            if not was_struck:
                break
            struck += 1
        assert struck >= 3, "the intent, the write and the report"
