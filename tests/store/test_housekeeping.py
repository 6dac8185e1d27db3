"""What time itself changes: silence, dates that pass, requests nobody carried out."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fractal_cloud.control.store import requests
from fractal_cloud.control.store.errors import Refused
from fractal_cloud.control.store.housekeeping import keep_house
from fractal_cloud.control.store.requests import Asked
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import RequestKind
from tests.store.playing import CATALOG, Player, World, box, component, net

CYCLE = 5.0


def _keep(world: World) -> None:
    keep_house(world.store.database, CYCLE)


@pytest.mark.rule("S21")
def test_what_no_agent_serves_is_failed_within_two_cycles_and_says_what_to_do(world: World) -> None:
    world.agent(providers=("other",), cycle=60)
    mutation = world.deploy("ls-a", net())
    _keep(world)
    assert world.component("ls-a", "net")["status"] == "Instantiating"
    world.clock.advance(2 * CYCLE - 1)
    _keep(world)
    found = world.component("ls-a", "net")
    assert found["status"] == "Failed"
    assert "`fractal agent --provider test --environment default`" in found["message"]
    assert world.mutation("ls-a", mutation)["status"] == "Failed"
    events = len(world.events())
    _keep(world)
    assert len(world.events()) == events


@pytest.mark.rule("S21", "C8")
def test_before_the_first_agent_a_deploy_waits_and_says_what_is_missing(world: World) -> None:
    mutation = world.deploy("ls-a", net())
    world.clock.advance(2 * CYCLE - 1)
    _keep(world)
    found = world.component("ls-a", "net")
    assert found["status"] == "Instantiating"
    assert found["message"] == (
        "waits for an agent: none has registered in environment 'default' yet; "
        "start one with `fractal agent --provider test --environment default`"
    )
    world.clock.advance(100 * CYCLE)
    _keep(world)
    assert world.mutation("ls-a", mutation)["status"] == "InProgress"


@pytest.mark.rule("S21", "C8")
def test_two_cycles_are_counted_from_the_first_running_agent(world: World) -> None:
    """Agents of several providers come one after the other: the first one's coming fails nobody."""
    mutation = world.deploy("ls-a", net())
    world.clock.advance(100 * CYCLE)
    world.agent("a1", providers=("other",), cycle=60)
    _keep(world)
    assert world.component("ls-a", "net")["status"] == "Instantiating"
    world.clock.advance(2 * CYCLE)
    _keep(world)
    assert world.component("ls-a", "net")["status"] == "Failed"
    assert world.mutation("ls-a", mutation)["status"] == "Failed"
    world.agent("a2").settle()
    assert world.mutation("ls-a", mutation)["status"] == "Completed"


@pytest.mark.rule("S21", "C8")
@pytest.mark.parametrize("was_active", [True, False])
def test_a_redeploy_that_nobody_serves_does_not_wait_for_ever(world: World, was_active: bool) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    if was_active:
        agent.settle()
    world.clock.advance(60)
    _keep(world)
    mutation = world.deploy("ls-a", net())
    assert world.mutation("ls-a", mutation)["status"] == "InProgress"
    world.clock.advance(2 * CYCLE)
    _keep(world)
    found = world.mutation("ls-a", mutation)
    assert found["status"] == "Failed"
    assert "no running agent serves 'test'" in found["reasons"][0]
    world.agent("a2").settle()
    assert world.mutation("ls-a", mutation)["status"] == "Completed"


@pytest.mark.rule("S21", "C8", "O10")
def test_a_deletion_that_nobody_serves_does_not_wait_for_ever(world: World) -> None:
    world.deploy("ls-a", net())
    world.agent().settle()
    world.clock.advance(60)
    mutation = world.delete("ls-a")
    world.clock.advance(2 * CYCLE)
    _keep(world)
    assert world.mutation("ls-a", mutation)["status"] == "Failed"


@pytest.mark.rule("S21")
def test_what_was_dealt_with_keeps_its_status_when_its_agent_dies(world: World) -> None:
    world.deploy("ls-a", net())
    world.agent().settle()
    world.clock.advance(60)
    _keep(world)
    found = world.component("ls-a", "net")
    assert found["status"] == "Active"
    assert "no running agent serves 'test'" in found["message"]


@pytest.mark.rule("S21")
def test_a_type_the_running_agent_does_not_know_is_said_so(world: World) -> None:
    world.agent(types=(CATALOG["Test.Net"],), cycle=60)
    world.deploy("ls-a", net(), box())
    world.clock.advance(2 * CYCLE)
    _keep(world)
    assert world.component("ls-a", "net")["status"] == "Instantiating"
    found = world.component("ls-a", "box")
    assert found["status"] == "Failed"
    assert "Test.Box" in found["message"]


@pytest.mark.rule("S21")
def test_a_served_component_is_left_alone(world: World) -> None:
    world.agent(cycle=60)
    world.deploy("ls-a", net())
    world.clock.advance(4 * CYCLE)
    _keep(world)
    assert world.component("ls-a", "net")["message"] == ""


@pytest.mark.rule("G13", "G5")
def test_an_override_whose_date_passed_raises_one_event_and_stays(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.claim()
    until = world.clock.now + timedelta(minutes=1)
    override = {"stance": Stance.OVERRIDE, "status": Status.MANUAL_OVERRIDE, "overridden": True}
    agent.report(agent.says("ls-a", "net", **override, override_until=until))
    _keep(world)
    assert "OverrideOverdue" not in world.kinds("ls-a")
    world.clock.advance(61)
    _keep(world)
    _keep(world)
    (overdue,) = [event for event in world.events("ls-a") if event["kind"] == "OverrideOverdue"]
    assert f"should have ended at {until:%Y-%m-%d %H:%M} UTC" in overdue["message"]
    found = world.component("ls-a", "net")
    assert (found["status"], found["overdue"]) == ("ManualOverride", True)


def _in_override(world: World, *parts: dict[str, object]) -> Player:
    world.deploy("ls-a", *parts)
    agent = world.agent()
    agent.claim()
    override = {"stance": Stance.OVERRIDE, "status": Status.MANUAL_OVERRIDE, "overridden": True}
    agent.report(*(agent.says("ls-a", str(part["id"]), **override) for part in parts))
    return agent


@pytest.mark.rule("G10")
def test_a_force_push_nobody_carried_out_within_two_cycles_is_refused(world: World) -> None:
    _in_override(world, net())
    with world.store.write() as tx:
        requests.ask(tx, "ls-a", "net", Asked(RequestKind.FORCE_PUSH, "ann"), CATALOG)
    world.clock.advance(2 * CYCLE)
    _keep(world)
    assert world.component("ls-a", "net")["request"] is not None
    world.clock.advance(20)
    _keep(world)
    assert world.component("ls-a", "net")["request"] is None
    assert "ForcePushRefused" in world.kinds("ls-a", "net")


@pytest.mark.rule("G10")
def test_a_force_push_dies_with_its_generation_but_a_glass_to_be_broken_stays(world: World) -> None:
    agent = _in_override(world, net(), box())
    with world.store.write() as tx:
        requests.ask(tx, "ls-a", "net", Asked(RequestKind.FORCE_PUSH, "ann"), CATALOG)
        requests.ask(tx, "ls-a", "box", Asked(RequestKind.BREAK, "ann", "incident"), CATALOG)
    world.deploy("ls-a", net(), box())
    assert world.component("ls-a", "net")["request"] is None
    assert "ForcePushRefused" in world.kinds("ls-a", "net")
    agent.claim()
    request = agent.work[agent.uid("ls-a", "box")].request
    assert request is not None
    assert (request.kind, request.generation, request.reason) == (RequestKind.BREAK, 2, "incident")


@pytest.mark.rule("G10")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": Status.MISSING, "absent": True}, "absent"),
        ({"owner": "ls-b", "status": Status.EXTERNALLY_MANAGED}, "'ls-b' owns it"),
        (
            {"status": Status.FAILED, "message": "several resources are named 'net' (a, b): rename all but one"},
            "several",
        ),
        (
            {"message": "managed-by is 'terraform': somebody else's, so the agent reads it and changes nothing"},
            "'terraform'",
        ),
    ],
)
def test_a_force_push_is_refused_at_once_where_the_reason_is_known(
    world: World, change: dict[str, object], reason: str
) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.claim()
    agent.report(agent.says("ls-a", "net", **change))
    with world.store.write() as tx, pytest.raises(Refused, match=reason):
        requests.ask(tx, "ls-a", "net", Asked(RequestKind.FORCE_PUSH, "ann"), CATALOG)


@pytest.mark.rule("G10", "O12")
def test_what_is_only_ever_read_cannot_be_pushed(world: World) -> None:
    mute = component("mute", "Test.Mute", {"region": "north"})
    world.deploy("ls-a", net(importOnly=True), mute)
    for component_id, reason in (("net", "importOnly"), ("mute", "cannot carry tags")):
        with world.store.write() as tx, pytest.raises(Refused, match=reason):
            requests.ask(tx, "ls-a", component_id, Asked(RequestKind.FORCE_PUSH, "ann"), CATALOG)


@pytest.mark.rule("G10")
def test_a_whole_live_system_is_pushed_where_it_is_in_override_and_not_imported(world: World) -> None:
    agent = _in_override(world, net(), box())
    imported = {"stance": Stance.IMPORTED, "status": Status.MANUAL_OVERRIDE}
    agent.report(agent.says("ls-a", "box", **imported))
    with world.store.write() as tx:
        asked = requests.ask_all(tx, "ls-a", "ann", CATALOG)
    assert (asked["requested"], asked["refused"]) == (["net"], [])
    agent.report(agent.says("ls-a", "net"))
    with world.store.write() as tx, pytest.raises(Refused, match="nothing is in ManualOverride"):
        requests.ask_all(tx, "ls-a", "ann", CATALOG)
