"""A vCenter below 9.1 takes no tags in the create call: they are put on afterwards, at most once, on our own alone."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.rules import words
from fractal_cloud.testing import Found
from fractal_sandbox.calls import RecordedCall
from tests.faults.effects import Fault, Killed
from tests.offers.vsphere.examples import declaration
from tests.offers.vsphere.operator_actions import MachineActions
from tests.offers.vsphere.worlds import VsphereWorld

LIVE_SYSTEM = "ls-machines"
OURS = {"managed-by": "fractal-cloud", "fractal-cloud-owner": LIVE_SYSTEM}
HANDSHAKE = {"managed-by": "fractal-cloud", "fractal-cloud": "reconcile"}
CREATION = ["intents", "CreateVM_Task", "intents", "POST tag-association", "intents", "PowerOnVM_Task", "report"]
CREATE, TAGGING, ATTACH = 1, 2, 3
"""The numbers of the effects of a creation, where the words of tags exist already."""


@pytest.fixture
def warm(world: VsphereWorld) -> VsphereWorld:
    """A world in which a first machine was made, so that its category and tags exist."""
    world.deploy(LIVE_SYSTEM, declaration("first"))
    world.settle()
    return world


def _begin(world: VsphereWorld, name: str, at: int | None = None, fault: Fault | None = None) -> None:
    """Declare one more machine, and have something happen at an effect of its creation."""
    declared = {one["id"] for one in world.api.get(f"/livesystems/{LIVE_SYSTEM}").json()["components"]}
    world.deploy(LIVE_SYSTEM, *(declaration(one) for one in sorted({*declared, name})))
    world.effects.arm(at, fault)


def _die(world: VsphereWorld, name: str, at: int, fault: Fault = Fault.KILLED_AFTER) -> None:
    """Let an agent begin a creation and not survive it; the next one has not looked yet."""
    _begin(world, name, at, fault)
    with pytest.raises(Killed):
        world.cycle()
    world.effects.revive()
    world.restart_agent()


def _operator(world: VsphereWorld) -> MachineActions:
    return MachineActions(world.vsphere)


def _found(world: VsphereWorld, name: str) -> Found:
    [found] = _operator(world).find(name)
    return found


def _is_left_alone(world: VsphereWorld, name: str, since: int) -> dict[str, Any]:
    """The agent stays away from it, from its first observation on, and comes to rest; what the component shows."""
    world.survive()
    world.assert_silent()
    shown = world.component(LIVE_SYSTEM, name)
    assert shown["status"] == "ManualOverride", shown
    assert len(world.writes()) == since, world.writes()[since:]
    world.assert_safe()
    return shown


@pytest.mark.rule("T2", "S17")
def test_a_machine_is_made_and_then_tagged_and_then_started_each_after_its_intent(warm: VsphereWorld) -> None:
    before = len(warm.writes())
    _begin(warm, "box")
    warm.survive()
    assert warm.effects.occurred == CREATION
    assert [write.reason for write in warm.writes()[before:]] == ["create", "tagging", "deploy"]
    assert dict(_found(warm, "box").tags) == OURS
    assert warm.status(LIVE_SYSTEM, "box") == "Active"
    warm.assert_silent()
    warm.assert_safe()


FINISHED = {
    "before-the-call": (CREATE, Fault.KILLED_BEFORE),
    "answer-lost": (CREATE, Fault.ANSWER_LOST),
    "killed-after-the-call": (CREATE, Fault.KILLED_AFTER),
    "intent-never-arrives": (TAGGING, Fault.CALL_LOST),
    "killed-after-tagging": (ATTACH, Fault.KILLED_AFTER),
    "tagging-answer-lost": (ATTACH, Fault.ANSWER_LOST),
}
LET_GO = {
    "intent-published-answer-lost": (TAGGING, Fault.ANSWER_LOST),
    "killed-between-intent-and-tagging": (TAGGING, Fault.KILLED_AFTER),
    "tagging-never-arrives": (ATTACH, Fault.CALL_LOST),
}


@pytest.mark.rule("S17")
def test_wherever_a_creation_breaks_off_it_is_finished_or_let_go_and_never_made_twice(warm: VsphereWorld) -> None:
    for name, (at, fault) in {**FINISHED, **LET_GO}.items():
        _begin(warm, name, at, fault)
        warm.survive()
        found = _found(warm, name)
        shown = warm.component(LIVE_SYSTEM, name)
        is_let_go = name in LET_GO
        assert shown["status"] == ("ManualOverride" if is_let_go else "Active"), f"{name}: {shown}"
        assert dict(found.tags) == ({} if is_let_go else OURS), name
        warm.assert_silent()
        if is_let_go:
            assert shown["message"].startswith(words.tagging_lost()), shown
            assert shown["override"]["reason"] == words.tagging_lost()
            _operator(warm).tag(found, HANDSHAKE)
            warm.survive()
            assert warm.status(LIVE_SYSTEM, name) == "Active"
            assert dict(_found(warm, name).tags) == OURS
    warm.assert_safe()


@pytest.mark.rule("S17", "S7", "G1", "T3")
def test_tags_that_a_person_took_off_while_no_agent_lived_are_not_put_on_again(warm: VsphereWorld) -> None:
    _die(warm, "box", ATTACH)
    found = _found(warm, "box")
    assert dict(found.tags) == OURS, "they had been put on, and nobody knew"
    _operator(warm).untag(found, *OURS)
    shown = _is_left_alone(warm, "box", len(warm.writes()))
    assert "To hand it back, add managed-by: fractal-cloud and fractal-cloud: reconcile" in shown["message"]
    assert "fractal glass" in shown["message"]


@pytest.mark.rule("S17", "S7", "S15")
def test_a_machine_of_the_name_that_somebody_else_made_is_never_tagged(warm: VsphereWorld) -> None:
    _die(warm, "box", CREATE, Fault.KILLED_BEFORE)
    warm.vsphere.create("box")
    _is_left_alone(warm, "box", len(warm.writes()))
    assert dict(_found(warm, "box").tags) == {}


@pytest.mark.rule("S17", "C2")
def test_an_unfinished_creation_that_was_forgotten_is_reported_and_left_alone(warm: VsphereWorld) -> None:
    _die(warm, "box", CREATE)
    warm.close()
    warm.open_control_plane("another.db")
    warm.deploy(LIVE_SYSTEM, declaration("first"), declaration("box"))
    shown = _is_left_alone(warm, "box", len(warm.writes()))
    assert shown["message"].startswith("In manual override since "), shown
    assert dict(_found(warm, "box").tags) == {}
    assert warm.status(LIVE_SYSTEM, "first") == "Active"


@pytest.mark.rule("S17", "S19")
def test_an_unfinished_creation_that_somebody_renamed_is_not_made_again(warm: VsphereWorld) -> None:
    _die(warm, "box", CREATE)
    [machine] = warm.vsphere.named("box")
    warm.vsphere.done(machine.Rename_Task("theirs"))
    before = len(warm.writes())
    warm.survive()
    shown = warm.component(LIVE_SYSTEM, "box")
    assert shown["status"] == "Failed"
    assert "'theirs'" in shown["message"]
    assert "'box'" in shown["message"]
    assert warm.vsphere.named("box") == []
    assert len(warm.writes()) == before
    warm.assert_safe()


@pytest.mark.rule("S17", "S6", "S7", "S10", "O9")
def test_whoever_tagged_it_first_has_said_whose_it_is(warm: VsphereWorld) -> None:
    cases = {
        "other-manager": ({"managed-by": "terraform"}, "ManualOverride"),
        "no-owner": ({"managed-by": "fractal-cloud"}, "ManualOverride"),
        "only-owner": ({"fractal-cloud-owner": LIVE_SYSTEM}, "ManualOverride"),
        "other-owner": ({"fractal-cloud-owner": "ls-theirs"}, "ExternallyManaged"),
    }
    for name, (tags, status) in cases.items():
        _die(warm, name, CREATE)
        _operator(warm).tag(_found(warm, name), tags)
        before = len(warm.writes())
        warm.survive()
        assert warm.status(LIVE_SYSTEM, name) == status, name
        assert dict(_found(warm, name).tags) == tags, name
        assert len(warm.writes()) == before, name
    warm.assert_safe()


@pytest.mark.rule("S17", "S21")
def test_tagging_that_was_refused_is_tried_again_because_no_tag_was_put_on(warm: VsphereWorld) -> None:
    rule = warm.cloud.knobs.fail(operation="attach*", status=403, code="unauthorized", times=None, actor="agent")
    _begin(warm, "box")
    warm.cycle(3)
    shown = warm.component(LIVE_SYSTEM, "box")
    assert shown["status"] == "Failed", shown
    assert shown["message"].startswith("tag failed"), shown
    warm.cloud.knobs.remove(rule)
    warm.deploy(LIVE_SYSTEM, declaration("first"), declaration("box", annotation="may be tagged now"))
    warm.survive()
    assert warm.status(LIVE_SYSTEM, "box") == "Active"
    assert dict(_found(warm, "box").tags) == OURS
    warm.assert_safe()


@pytest.mark.rule("S17", "S0", "S7")
def test_tagging_that_could_not_be_read_afterwards_is_not_taken_for_refused(warm: VsphereWorld) -> None:
    knobs = warm.cloud.knobs

    def spoil(_: RecordedCall) -> None:
        knobs.fail(operation="get*", status=500, code="error", times=None, actor="agent")
        knobs.fail(operation="list*", status=500, code="error", times=None, actor="agent")

    knobs.after_call(spoil, times=1, operation="attach*", actor="agent")
    _begin(warm, "box")
    warm.cycle(2)
    knobs.reset()
    found = _found(warm, "box")
    assert dict(found.tags) == OURS
    _operator(warm).untag(found, *OURS)
    _is_left_alone(warm, "box", len(warm.writes()))


@pytest.mark.rule("S17", "S16")
def test_a_person_who_tags_it_between_the_intent_and_the_call_wins(warm: VsphereWorld) -> None:
    _die(warm, "box", CREATE)
    warm.before_next_write(lambda: _operator(warm).tag(_found(warm, "box"), {"managed-by": "terraform"}))
    _is_left_alone(warm, "box", len(warm.writes()))
    assert dict(_found(warm, "box").tags) == {"managed-by": "terraform"}


@pytest.mark.rule("S17", "O10")
def test_what_was_made_and_not_tagged_is_left_by_a_deletion_and_named(warm: VsphereWorld) -> None:
    _die(warm, "box", CREATE)
    found = _found(warm, "box")
    before = len(warm.writes())
    warm.deploy(LIVE_SYSTEM, declaration("first"))
    warm.survive()
    assert warm.find_component(LIVE_SYSTEM, "box") is None
    assert dict(_found(warm, "box").tags) == {}
    assert len(warm.writes()) == before
    messages = [one["message"] for one in warm.api.get(f"/livesystems/{LIVE_SYSTEM}/events").json()["items"]]
    assert any(found.resource_id in message and "left in the cloud" in message for message in messages), messages
    warm.assert_safe()


@pytest.mark.rule("S13", "S17")
def test_a_machine_that_vcenter_is_still_making_is_waited_for(warm: VsphereWorld) -> None:
    warm.cloud.knobs.slow_creation(reads=12)
    _die(warm, "box", CREATE)
    for _ in range(3):
        warm.cycle()
        shown = warm.component(LIVE_SYSTEM, "box")
        assert shown["status"] == "Instantiating", shown
        [machine] = warm.vsphere.named("box")
        assert machine.config is None, "it is there, and does not report its UUID"
    warm.survive()
    assert warm.status(LIVE_SYSTEM, "box") == "Active"
    assert dict(_found(warm, "box").tags) == OURS
    warm.assert_safe()


@pytest.mark.rule("S17")
def test_a_machine_that_shows_late_is_not_made_twice(warm: VsphereWorld) -> None:
    warm.cloud.knobs.late_visibility(reads=4)
    _begin(warm, "box", CREATE, Fault.ANSWER_LOST)
    warm.survive()
    assert warm.status(LIVE_SYSTEM, "box") == "Active"
    assert len(warm.vsphere.named("box")) == 1
    warm.assert_safe()
