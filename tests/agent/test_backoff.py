"""A refused write is not repeated at the pace of wakes: when it is tried again, what is said, who remembers it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud.agent.backoff import after_error, is_due, refused
from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    Invalid,
    Overtaken,
    Protected,
    Throttled,
    Transient,
)
from fractal_cloud.offers.aws.vpc import AwsVpcOffer
from fractal_sandbox import Sandbox
from tests.manual_clock import ManualClock
from tests.world import ADMIN_TOKEN, World, vpc
from tests.world import world as make_world

MINUTE = 60.0
DENIED: dict[str, Any] = {"code": "UnauthorizedOperation", "status": 403, "actor": "agent"}
QUOTA: dict[str, Any] = {"code": "VpcLimitExceeded", "status": 400, "actor": "agent"}


@pytest.fixture
def world(
    session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> Iterator[World]:
    """A world with a cycle of a minute."""
    with make_world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=MINUTE) as made:
        clock.drive(made)
        yield made


def _tries(world: World, operation: str = "CreateVpc") -> int:
    return int(world.sandbox.aws.calls.count(operation=operation, actor="agent"))


def _journal(world: World, component: str = "net") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = world.api.get(f"/livesystems/ls-a/components/{component}/journal").json()["items"]
    return items


def _wake(world: World, clock: ManualClock, times: int, seconds: float = 1.0) -> None:
    """Something else changes again and again, and wakes the agent."""
    for _ in range(times):
        clock.advance(seconds)
        world.agent.run_once()


@pytest.mark.rule("S21")
def test_a_quota_error_is_not_repeated_at_the_pace_of_wakes(world: World, clock: ManualClock) -> None:
    world.sandbox.aws.knobs.fail(operation="CreateVpc", times=None, **QUOTA)
    world.deploy("ls-a", vpc())
    _wake(world, clock, 25)
    assert world.status("ls-a", "net") == "Failed"
    assert _tries(world) == 1, "the next try is after a cycle"
    assert len(_journal(world)) == 1


@pytest.mark.rule("S21", "C7")
def test_what_is_denied_is_tried_after_one_cycle_then_two_then_four_and_the_message_says_when(
    world: World, clock: ManualClock
) -> None:
    world.sandbox.aws.knobs.fail(operation="CreateVpc", times=None, **DENIED)
    world.deploy("ls-a", vpc())
    begun = clock.now
    tried_at = []
    for _ in range(44):
        before = _tries(world)
        world.agent.run_once()
        if _tries(world) > before:
            tried_at.append((clock.now - begun).total_seconds())
            due = begun + timedelta(seconds=tried_at[-1] + MINUTE * 2 ** (len(tried_at) - 1))
            assert f"next try at {due:%H:%M:%S} UTC" in world.component("ls-a", "net")["message"]
        clock.advance(10)
    assert tried_at == [0, 60, 180, 420]
    (entry,) = _journal(world)
    assert (entry["outcome"], entry["count"]) == ("failed", 4)
    assert datetime.fromisoformat(entry["lastAt"]) == begun + timedelta(seconds=420)
    world.api.post("/ui/login", data={"token": ADMIN_TOKEN, "next": "/ui"})
    assert "failed 4 times, last at" in world.api.get("/ui/livesystems/ls-a/components/net").text
    world.deploy("ls-a", vpc())
    world.agent.run_once()
    assert _tries(world) == 5, "a new declaration is tried at once"
    assert len(_journal(world)) == 2, "another generation is another step"


@pytest.mark.rule("S21")
def test_a_successor_does_not_begin_again_at_once(world: World, clock: ManualClock) -> None:
    world.sandbox.aws.knobs.fail(operation="CreateVpc", times=None, **DENIED)
    world.deploy("ls-a", vpc())
    world.agent.run_once()
    for _ in range(3):
        world.restart_agent()
        _wake(world, clock, 2)
    assert _tries(world) == 1
    clock.advance(MINUTE)
    world.agent.run_once()
    assert _tries(world) == 2
    assert _journal(world)[0]["count"] == 2
    statuses = [e["after"] for e in world.events("ls-a") if e["kind"] == "StatusChanged"]
    assert statuses == ["Failed"], "it stays Failed until a try goes through"


@pytest.mark.rule("S21", "O6")
def test_a_deletion_that_something_blocks_is_tried_after_1_2_and_4_seconds(world: World, clock: ManualClock) -> None:
    world.deploy("ls-a", vpc())
    world.agent.run_once()
    vpc_id = world.output("ls-a", "net", "vpcId")
    subnet = world.person.ec2.create_subnet(VpcId=vpc_id, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
    clock.advance(1)
    world.delete("ls-a")
    begun, tried_at = clock.now, []
    for _ in range(70):
        before = _tries(world, "DeleteVpc")
        world.agent.run_once()
        if _tries(world, "DeleteVpc") > before:
            tried_at.append((clock.now - begun).total_seconds())
        clock.advance(1)
    assert tried_at == [0, 1, 3, 7, 15, 31, 63]
    assert _journal(world)[0]["count"] == len(tried_at)
    world.person.ec2.delete_subnet(SubnetId=subnet)
    world.delete("ls-a")
    world.agent.run_once()
    assert _tries(world, "DeleteVpc") == len(tried_at) + 1, "asked for once more, it is tried at once"


@pytest.mark.rule("S21", "O15", "C7")
def test_a_deletion_that_protection_refuses_is_one_entry_with_a_count(world: World, clock: ManualClock) -> None:
    parameters = {"region": "eu-west-1", "dbInstanceClass": "db.t4g.medium", "allocatedStorage": 20}
    kind = {"id": "orders", "type": "Storage.PaaS.AwsRdsPostgres"}
    database = {**kind, "parameters": {**parameters, "deletionProtection": True}}
    world.deploy("ls-a", database)
    _wake(world, clock, 3)
    assert world.status("ls-a", "orders") == "Active"
    world.delete("ls-a")
    world.agent.run_once()
    assert world.status("ls-a", "orders") == "Failed"
    assert "deletionProtection" in world.component("ls-a", "orders")["message"]
    _wake(world, clock, 25)
    (entry,) = [one for one in _journal(world, "orders") if one["verb"] == "delete"]
    assert (entry["outcome"], entry.get("count", 1)) == ("failed", 1), "no try at the pace of wakes"
    for _ in range(3):
        clock.advance(8 * MINUTE)
        world.agent.run_once()
        _wake(world, clock, 3)
    (entry,) = [one for one in _journal(world, "orders") if one["verb"] == "delete"]
    assert (entry["outcome"], entry["count"]) == ("failed", 4)
    assert _tries(world, "DeleteDBInstance") == 0
    world.person.client("rds").modify_db_instance(
        DBInstanceIdentifier="orders", DeletionProtection=False, ApplyImmediately=True
    )
    world.delete("ls-a")
    _wake(world, clock, 5)
    assert _tries(world, "DeleteDBInstance") == 1, "asked for once more, it is tried at once"


@pytest.mark.rule("S21", "T6", "S9")
def test_a_failed_write_of_a_handshake_shows_failed_with_the_reason_and_the_tag_stays(
    world: World, clock: ManualClock
) -> None:
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.agent.run_once()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.agent.run_once()
    world.sandbox.aws.calls.clear()
    refused = world.sandbox.aws.knobs.fail(operation="ModifyVpcAttribute", times=None, **DENIED)
    world.person.hand_back(vpc_id)
    _wake(world, clock, 3)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert "UnauthorizedOperation" in shown["message"]
    assert world.person.tags(vpc_id)["fractal-cloud"] == "reconcile"
    assert _tries(world, "ModifyVpcAttribute") == 1
    world.sandbox.aws.knobs.remove(refused)
    clock.advance(MINUTE)
    _wake(world, clock, 2)
    assert world.status("ls-a", "net") == "Active"
    assert "fractal-cloud" not in world.person.tags(vpc_id)


@pytest.mark.rule("S21", "S7")
def test_a_denied_write_to_what_lost_managed_by_meanwhile_is_an_override(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.agent.run_once()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    update = AwsVpcOffer.update

    def taken_over(self: AwsVpcOffer, *more: Any, **options: Any) -> None:
        world.person.break_glass(vpc_id)
        update(self, *more, **options)

    world.sandbox.aws.calls.clear()
    monkeypatch.setattr(AwsVpcOffer, "update", taken_over)
    world.sandbox.aws.knobs.fail(operation="ModifyVpcAttribute", times=None, **DENIED)
    world.agent.run_once()
    assert _tries(world, "ModifyVpcAttribute") == 1
    assert world.status("ls-a", "net") == "ManualOverride"


@pytest.mark.rule("S21", "G10")
def test_a_force_push_that_is_denied_says_that_it_is_used_up(world: World, clock: ManualClock) -> None:
    """That the resource has no managed-by is why it was asked for: nobody took it over meanwhile."""
    world.deploy("ls-a", vpc())
    world.agent.run_once()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.person.break_glass(vpc_id)
    world.agent.run_once()
    world.sandbox.aws.knobs.fail(operation="CreateTags", times=1, **DENIED)
    assert world.force_push("ls-a", "net").status_code == 202
    _wake(world, clock, 3)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "ManualOverride"
    assert shown["message"].startswith("Force Push failed and is used up")
    (event,) = [e for e in world.events("ls-a") if e["kind"] == "ForcePushRefused"]
    assert event["message"].startswith("Force Push failed and is used up")


@pytest.mark.rule("S21", "G10")
def test_a_force_push_whose_tag_is_beyond_the_limit_says_that_it_is_used_up(world: World, clock: ManualClock) -> None:
    world.deploy("ls-a", vpc())
    world.agent.run_once()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.person.break_glass(vpc_id)
    world.agent.run_once()
    full = {f"note-{n}": "x" for n in range(50 - len(world.person.tags(vpc_id)))}
    world.person.tag(vpc_id, **full)
    with pytest.raises(ClientError, match="TagLimitExceeded"):
        world.person.tag(vpc_id, one_more="x")
    assert world.force_push("ls-a", "net").status_code == 202
    _wake(world, clock, 3)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "ManualOverride", "in manual override, as before"
    assert shown["message"].startswith("Force Push failed and is used up")
    assert "TagLimitExceeded" in shown["message"]
    assert "ask again" in shown["message"]
    assert "it is tried again" not in shown["message"]
    (event,) = [e for e in world.events("ls-a") if e["kind"] == "ForcePushRefused"]
    assert "TagLimitExceeded" in event["message"]
    world.person.untag(vpc_id, "note-0", "note-1")
    assert world.force_push("ls-a", "net").status_code == 202
    _wake(world, clock, 2)
    assert world.status("ls-a", "net") == "Active"


# --- the pure part

_CYCLE = timedelta(seconds=180)
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.rule("S21")
@pytest.mark.parametrize(
    ("kind", "delays"),
    [
        (Denied, [180, 360, 720, 1440, 2880, 3600, 3600]),
        (Invalid, [180, 360, 720, 1440, 2880, 3600, 3600]),
        (Protected, [180, 360, 720, 1440, 2880, 3600, 3600]),
        (Conflict, [1, 2, 4, 8, 16, 32, 64, 128, 180, 180]),
        (Overtaken, [1, 2, 4, 8, 16, 32, 64, 128, 180, 180]),
        (Transient, [0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15, 15]),
        (Throttled, [1, 2, 4, 8, 16, 32, 60, 60]),
    ],
)
def test_every_error_has_its_backoff(kind: type[CloudError], delays: list[float]) -> None:
    backoff = after_error(kind("no"), _CYCLE)
    assert [backoff.delay(n).total_seconds() for n in range(1, len(delays) + 1)] == delays
    assert backoff.delay(10_000) == timedelta(seconds=delays[-1])


@pytest.mark.rule("S21")
@given(cycle=st.floats(0.01, 100_000), times=st.integers(1, 5_000), kind=st.sampled_from([Denied, Conflict, Transient]))
def test_no_delay_is_shorter_than_the_one_before_or_longer_than_its_bound(
    cycle: float, times: int, kind: type[CloudError]
) -> None:
    backoff = after_error(kind("no"), timedelta(seconds=cycle))
    assert (
        timedelta()
        < backoff.delay(times)
        <= backoff.delay(times + 1)
        <= max(timedelta(seconds=cycle), timedelta(hours=1))
    )


@pytest.mark.rule("S21")
def test_a_clock_that_was_set_back_keeps_nobody_waiting() -> None:
    until = refused(_CYCLE).next_try(_NOW, 20)
    assert not is_due(until, _NOW, _CYCLE)
    assert is_due(until, until, _CYCLE)
    assert is_due(until, _NOW - timedelta(days=1), _CYCLE)


@pytest.mark.rule("S21")
@given(cycle=st.floats(0.01, 1_000_000), times=st.integers(1, 100))
def test_no_try_is_due_before_its_delay_is_over(cycle: float, times: int) -> None:
    backoff = refused(timedelta(seconds=cycle))
    assert not is_due(backoff.next_try(_NOW, times), _NOW, timedelta(seconds=cycle))


@pytest.mark.rule("S21")
@pytest.mark.parametrize(("refusal", "seconds"), [(DENIED, MINUTE), ({**DENIED, "code": "IncorrectState"}, 1.0)])
def test_the_scope_is_due_again_when_the_next_try_is(world: World, refusal: dict[str, Any], seconds: float) -> None:
    world.sandbox.aws.knobs.fail(operation="CreateVpc", times=None, **refusal)
    world.deploy("ls-a", vpc())
    world.agent.run_once()
    (result,) = world.agent.run_once()
    assert (result.again_in, result.writes) == (seconds, 0)
