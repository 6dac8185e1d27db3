"""The guard: right before every write the resource is read and judged again, and only the same verb goes out (S16).

Every kind of write, stopped by every kind of change that a person can make in between; what is called is noted exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fractal_cloud.agent.writing import Outcome, Planned, Writer
from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    GivenUp,
    Overtaken,
    Throttled,
    Transient,
    Unexpected,
    Unreadable,
)
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tags import NO_TAGS, OURS, ProtocolTags
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wire import RequestKind
from fractal_cloud.offers.offer import Wanted
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.rules.judge import Step, Verb
from fractal_cloud.rules.situate import ABSENT, View, found_elsewhere
from tests.direct.shelf import FrozenOffer, Item, ItemOffer, ShelfScope, component, item
from tests.direct.things import HANDSHAKE, ME, MINE, NOW, OTHER, intent, memory, request

FREE = ProtocolTags(owner=ME)
CLAIMED = ProtocolTags(OURS, reconcile=True)
PUSH, BREAK = request(), request(RequestKind.BREAK)
SIZE_DRIFT = {"size": 2}


class Scene:
    """One planned step, over a shelf that shows what was seen when it was planned."""

    def __init__(self, tracked: Tracked, seen: Sighting | None, offer: ItemOffer | None = None) -> None:
        self.scope = ShelfScope(offer or ItemOffer())
        self.shelf = self.scope.shelf
        self.scope.add(tracked)
        self.tracked = tracked
        self.seen = seen
        self.may_write = True
        self.opposed: list[Planned] = []
        self.is_unopposed = True
        if seen is not None:
            self.shelf.items[seen.resource_id] = seen

    def _unopposed(self, planned: Planned) -> bool:
        self.opposed.append(planned)
        return self.is_unopposed

    def carry_out(self, step: Step) -> Outcome:
        planned = Planned(self.tracked, step, "entry-1", self.seen)
        scope = self.scope
        writer = Writer(scope.held, scope.evaluator, scope.facts, lambda: self.may_write, self._unopposed)
        return writer.carry_out(planned)

    def change(self, call: str = "read", **more: Any) -> None:
        """Somebody changes the resource right before the next such call."""
        assert self.seen is not None
        before = self.seen

        def act() -> None:
            self.shelf.items[before.resource_id] = replace(before, **more)

        self.shelf.before[call] = act


def wanted(tracked: Tracked, token: str = "", **parameters: Any) -> Wanted[Item]:
    made = Item.from_parameters(tracked.component_id, {"name": "web", **parameters})
    return Wanted(made, ME, None, token, frozenset(tracked.ignored))


def drifting(**more: Any) -> Tracked:
    return component(parameters={"size": 3}, **more)


def _update() -> tuple[Scene, Step]:
    return Scene(drifting(), item(MINE, actual=SIZE_DRIFT)), Step(Verb.UPDATE, "drift", drift={})


def _stamp() -> tuple[Scene, Step]:
    scene = Scene(component(memory(Stance.OVERRIDE)), item(CLAIMED))
    return scene, Step(Verb.STAMP, "handshake", add=ProtocolTags(owner=ME))


def _finish() -> tuple[Scene, Step]:
    scene = Scene(component(memory(Stance.OVERRIDE)), item(HANDSHAKE))
    return scene, Step(Verb.FINISH, "handshake", remove=ProtocolTags(reconcile=True))


def _push() -> tuple[Scene, Step]:
    scene = Scene(component(memory(Stance.OVERRIDE)), item(FREE))
    return scene, Step(Verb.PUSH, "force-push", add=ProtocolTags(OURS, True), request=PUSH)


def _untag() -> tuple[Scene, Step]:
    scene = Scene(component(request=BREAK), item(MINE))
    return scene, Step(Verb.UNTAG, "glass", remove=ProtocolTags(OURS), request=BREAK)


def _delete() -> tuple[Scene, Step]:
    return Scene(component(deleting=True), item(MINE)), Step(Verb.DELETE, "delete")


class Tagging(ItemOffer):
    """Whose creations have an id that is known before."""

    predicted = {"i1": "id-1"}  # noqa: RUF012 (as the offer has it)


def _tag() -> tuple[Scene, Step]:
    begun = component(memory(intent=intent(tagging="begun")))
    return Scene(begun, item(NO_TAGS), Tagging()), Step(Verb.TAG, "tagging", add=MINE)


WRITES: dict[str, Callable[[], tuple[Scene, Step]]] = {
    "update": _update,
    "stamp": _stamp,
    "finish": _finish,
    "push": _push,
    "untag": _untag,
    "delete": _delete,
    "tag": _tag,
}
CALLS: dict[str, Callable[[Scene], tuple[Any, ...]]] = {
    "update": lambda s: ("update", s.seen, wanted(s.tracked, size=3), frozenset({"size"})),
    "stamp": lambda s: ("tag", s.seen, ProtocolTags(owner=ME), NO_TAGS),
    "finish": lambda s: ("tag", s.seen, NO_TAGS, ProtocolTags(reconcile=True)),
    "push": lambda s: ("tag", s.seen, ProtocolTags(OURS, True), NO_TAGS),
    "untag": lambda s: ("tag", s.seen, NO_TAGS, ProtocolTags(OURS)),
    "delete": lambda s: ("delete", s.seen),
    "tag": lambda s: ("tag", s.seen, MINE, NO_TAGS),
}


@pytest.mark.rule("S16")
@pytest.mark.parametrize("name", WRITES)
def test_each_write_is_one_call_between_two_reads_in_the_components_name(name: str) -> None:
    scene, step = WRITES[name]()
    outcome = scene.carry_out(step)
    read: tuple[Any, ...] = ("read", "id-1", frozenset())
    assert scene.shelf.calls == [read, CALLS[name](scene), read]
    assert scene.shelf.acts == [(ME, "web", step.reason)] * 3
    assert outcome.request_ids == ["request-1"]
    assert (outcome.written, outcome.is_done, outcome.abandoned, outcome.error) == (True, True, False, None)
    after = scene.shelf.items.get("id-1")
    assert outcome.view == (ABSENT if after is None else View(sighting=after))
    assert outcome.created is None
    assert not outcome.had_no_effect


# What a person does between the agent's list and its write, and which writes that must stop.
CHANGES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "managed-by is removed": ({"protocol": FREE}, set(WRITES) - {"push"}),
    "another manager": ({"protocol": ProtocolTags("terraform", owner=ME)}, set(WRITES)),
    "another owner": ({"protocol": ProtocolTags(OURS, True, OTHER)}, set(WRITES)),
    "it is renamed": ({"name": "other"}, set(WRITES)),
    "it is moved to another parent": ({"parent_id": "net-2"}, set(WRITES)),
    "all tags are put on": ({"protocol": HANDSHAKE}, {"stamp", "push", "tag"}),
    "it is as declared": ({"actual": {"size": 3}}, {"update"}),
}


@pytest.mark.rule("S16", "G1", "T7", "S6", "S18")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", WRITES)
def test_who_changes_it_before_the_last_read_wins(name: str, change: str) -> None:
    scene, step = WRITES[name]()
    changed, stopped = CHANGES[change]
    scene.change(**changed)
    outcome = scene.carry_out(step)
    if name not in stopped:
        assert outcome.written
        return
    assert scene.shelf.writes == []
    assert (outcome.abandoned, outcome.written, outcome.is_done, outcome.error) == (True, False, False, None)
    assert outcome.had_no_effect
    assert outcome.request_ids == []
    seen = scene.shelf.items["id-1"]
    is_other = "name" in changed or "parent_id" in changed
    assert outcome.view == (found_elsewhere(seen) if is_other else View(sighting=seen))


@pytest.mark.rule("S16")
@pytest.mark.parametrize("name", WRITES)
def test_what_is_gone_at_the_last_read_is_not_written_to(name: str) -> None:
    scene, step = WRITES[name]()
    scene.shelf.before["read"] = scene.shelf.items.clear
    outcome = scene.carry_out(step)
    assert scene.shelf.writes == []
    assert (outcome.abandoned, outcome.view, outcome.tags) == (True, ABSENT, {})


@pytest.mark.rule("S16")
@pytest.mark.parametrize("name", WRITES)
def test_without_the_right_to_write_nothing_goes_out(name: str) -> None:
    scene, step = WRITES[name]()
    scene.may_write = False
    outcome = scene.carry_out(step)
    assert scene.shelf.writes == []
    assert (outcome.abandoned, outcome.written) == (True, False)


@pytest.mark.rule("S16")
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("other", Verb)
def test_no_other_verb_than_the_one_decided_goes_out(name: str, other: Verb) -> None:
    scene, step = WRITES[name]()
    if other is step.verb or other in (Verb.CREATE, Verb.TAG):
        return
    outcome = scene.carry_out(replace(step, verb=other))
    assert scene.shelf.writes == []
    assert outcome.abandoned


@pytest.mark.rule("S16")
def test_what_is_written_is_what_the_last_read_showed() -> None:
    scene = Scene(component(parameters={"size": 3, "region": "x"}), item(MINE, actual=SIZE_DRIFT))
    scene.change(actual={"size": 5}, revision="2")
    scene.carry_out(Step(Verb.UPDATE, "drift"))
    (call,) = scene.shelf.writes
    assert call == ("update", scene.shelf.items["id-1"], wanted(scene.tracked, size=3, region="x"), frozenset({"size"}))


@pytest.mark.rule("C7")
def test_the_tags_seen_right_before_the_write_are_kept() -> None:
    scene, step = _update()
    scene.change(tags={"team": "blue"})
    assert scene.carry_out(step).tags == {"team": "blue"}


@pytest.mark.rule("S23", "G15")
def test_the_guard_reads_the_swept_parameters_that_are_declared_and_not_ignored() -> None:
    for tracked, swept in (
        (component(parameters={"size": 3, "policy": "p"}), {"policy"}),
        (component(parameters={"size": 3, "policy": "p"}, ignore_drift=frozenset({"policy"})), set()),
        (component(parameters={"size": 3}), set()),
    ):
        scene = Scene(tracked, item(MINE, actual=SIZE_DRIFT))
        scene.carry_out(Step(Verb.UPDATE, "drift"))
        assert scene.shelf.calls[0] == ("read", "id-1", frozenset(swept))


@pytest.mark.rule("S16")
def test_the_guard_reads_the_resource_that_was_judged_and_not_the_one_published_before() -> None:
    scene = Scene(component(memory(resource_id="id-0")), item(MINE, actual=SIZE_DRIFT))
    scene.carry_out(Step(Verb.UPDATE, "drift"))
    assert scene.shelf.calls[0][:2] == ("read", "id-1")


# --- lost races


@pytest.mark.rule("S16")
@pytest.mark.parametrize("name", sorted(set(WRITES) - {"delete"}))
@pytest.mark.parametrize("revision", [None, "1"])
def test_a_race_lost_within_the_call_is_seen_afterwards_unless_a_precondition_guards_it(
    name: str, revision: str | None
) -> None:
    scene, step = WRITES[name]()
    assert scene.seen is not None
    scene.seen = scene.shelf.items["id-1"] = replace(scene.seen, revision=revision)
    call = "update" if name == "update" else "tag"
    scene.change(call, protocol=FREE)
    outcome = scene.carry_out(step)
    is_guarded = name == "update" and revision is not None
    assert outcome.race_lost is (not is_guarded and name != "untag")


@pytest.mark.rule("S16")
@pytest.mark.parametrize(
    ("more", "lost"),
    [
        ({"protocol": MINE}, False),
        ({"protocol": FREE}, True),
        ({"protocol": ProtocolTags("terraform")}, True),
        ({"protocol": FREE, "resource_id": "id-2"}, False),
    ],
)
def test_only_what_was_taken_over_is_a_lost_race(more: dict[str, Any], lost: bool) -> None:
    scene, step = _update()
    scene.change("update", **more)
    assert scene.carry_out(step).race_lost is lost


@pytest.mark.rule("S16")
def test_what_is_gone_after_the_write_is_no_lost_race() -> None:
    scene, step = _update()
    scene.shelf.before["update"] = scene.shelf.items.clear
    outcome = scene.carry_out(step)
    assert (outcome.race_lost, outcome.view) == (False, ABSENT)


# --- errors


def _failing(error: CloudError) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.rule("S21", "S16")
@pytest.mark.parametrize(
    ("error", "no_effect"),
    [
        (Denied("no"), True),
        (Conflict("busy"), True),
        (Overtaken("changed"), True),
        (Throttled("slow"), True),
        (Transient("no answer"), False),
    ],
)
def test_a_failed_write_is_read_once_more_and_says_whether_it_may_have_had_an_effect(
    error: CloudError, no_effect: bool
) -> None:
    scene, step = _update()
    scene.shelf.before["update"] = _failing(error)
    outcome = scene.carry_out(step)
    assert [call[0] for call in scene.shelf.calls] == ["read", "update", "read"]
    assert outcome.error is error
    assert (outcome.written, outcome.is_done, outcome.had_no_effect) == (True, False, no_effect)
    assert outcome.view == View(sighting=scene.seen)
    assert outcome.request_ids == ["request-1"]


@pytest.mark.rule("S0", "S16")
def test_a_guard_that_cannot_read_writes_nothing() -> None:
    scene, step = _update()
    error = Unreadable("throttled")
    scene.shelf.before["read"] = _failing(error)
    outcome = scene.carry_out(step)
    assert scene.shelf.writes == []
    assert (outcome.error, outcome.written, outcome.had_no_effect) == (error, False, True)
    assert outcome.view == View(sighting=scene.seen), "and it is read once more"


@pytest.mark.rule("S0", "S16")
def test_a_write_that_was_taken_is_done_though_nobody_can_read_what_came_of_it() -> None:
    scene, step = _update()
    error = Transient("no answer")

    def act() -> None:
        scene.shelf.before["read"] = _failing(error)

    scene.shelf.before["update"] = act
    outcome = scene.carry_out(step)
    assert (outcome.written, outcome.is_done, outcome.error, outcome.had_no_effect) == (True, True, error, False)
    denied = Scene(drifting(), item(MINE, actual=SIZE_DRIFT))

    def refuse_all() -> None:
        denied.shelf.before["read"] = _failing(Denied("no"))

    denied.shelf.before["update"] = refuse_all
    outcome = denied.carry_out(step)
    assert (outcome.is_done, outcome.had_no_effect) == (True, False), "what was done is done, whatever is refused after"


@pytest.mark.rule("S0")
def test_where_not_even_the_second_read_works_its_error_is_what_was_seen() -> None:
    scene, step = _update()
    first, second = Denied("no"), Unreadable("throttled")

    def fail_twice() -> None:
        scene.shelf.before["read"] = _failing(second)
        raise first

    scene.shelf.before["update"] = fail_twice
    outcome = scene.carry_out(step)
    assert (outcome.error, outcome.view) == (first, View(error=second))


# --- creations


@pytest.mark.rule("S17", "T2")
@pytest.mark.parametrize(("remembered", "token"), [(memory(intent=intent(id="i7")), "i7"), (memory(), "entry-1")])
def test_a_creation_is_one_call_with_tags_and_the_token_of_its_intent(remembered: Any, token: str) -> None:
    scene = Scene(component(remembered, parameters={"size": 3}), None)
    outcome = scene.carry_out(Step(Verb.CREATE, "create"))
    assert scene.shelf.calls == [("create", wanted(scene.tracked, token, size=3), MINE)]
    assert outcome.created == scene.shelf.items["id-new"]
    assert (outcome.written, outcome.abandoned, outcome.view, outcome.error) == (True, False, None, None)
    assert outcome.request_ids == ["request-0"]
    assert scene.shelf.acts == [(ME, "web", "create")]


@pytest.mark.rule("S17")
def test_a_name_that_is_declared_is_the_one_that_is_created() -> None:
    scene = Scene(component(memory(), parameters={"name": "declared"}), None)
    scene.carry_out(Step(Verb.CREATE, "create"))
    (call,) = scene.shelf.calls
    assert call[1].component.name == "declared"
    other = Scene(component(memory(), component_id="web-vm"), None)
    other.carry_out(Step(Verb.CREATE, "create"))
    assert other.shelf.calls[0][1].component.name == "web", "else the name of its identity"
    assert other.shelf.calls[0][1].component.id == "web-vm"


@pytest.mark.rule("S17")
def test_without_the_right_to_write_nothing_is_created() -> None:
    scene = Scene(component(memory()), None)
    scene.may_write = False
    outcome = scene.carry_out(Step(Verb.CREATE, "create"))
    assert scene.shelf.calls == []
    assert (outcome.abandoned, outcome.written, outcome.had_no_effect) == (True, False, True)


@pytest.mark.rule("S17")
def test_after_a_failed_creation_nothing_is_read_because_nobody_knows_its_id() -> None:
    scene = Scene(component(memory()), None)
    error = Transient("no answer")
    scene.shelf.before["create"] = _failing(error)
    outcome = scene.carry_out(Step(Verb.CREATE, "create"))
    assert [call[0] for call in scene.shelf.calls] == ["create"]
    assert (outcome.error, outcome.written, outcome.created, outcome.had_no_effect) == (error, True, None, False)


# --- tags that follow a creation, requests, frozen tags


@pytest.mark.rule("S17")
def test_only_what_was_owed_its_tags_gets_them_and_only_once() -> None:
    scene, step = _tag()
    scene.change(protocol=ProtocolTags(reconcile=True))
    assert scene.carry_out(step).abandoned, "somebody put a tag on it"
    let_go = Scene(component(memory(Stance.OVERRIDE, intent=intent(tagging="begun"))), item(NO_TAGS), Tagging())
    assert let_go.carry_out(step).abandoned
    unknown = Scene(component(memory(intent=intent(id="i9", tagging="begun"))), item(NO_TAGS), Tagging())
    assert unknown.carry_out(step).abandoned
    nothing = Scene(component(memory()), item(NO_TAGS), Tagging())
    assert _failure(nothing.carry_out(step)) == "AssertionError: tags are owed by an open creation alone"


@pytest.mark.rule("G10", "S17")
def test_a_force_push_that_was_used_up_by_its_intent_is_judged_as_if_it_were_open() -> None:
    scene, step = _push()
    assert scene.tracked.request is None
    assert scene.carry_out(step).written
    late = request(at=NOW - timedelta(hours=1))
    refused, _ = _push()
    assert refused.carry_out(replace(step, request=late)).abandoned, "but one that is void is not carried out"
    newer = Scene(component(memory(Stance.OVERRIDE), request=BREAK), item(FREE))
    assert newer.carry_out(step).abandoned, "nor one that another has taken the place of"


@pytest.mark.rule("S16", "G13")
def test_where_tags_are_frozen_the_control_plane_is_asked_right_before_the_write() -> None:
    scene = Scene(drifting(), item(MINE, actual=SIZE_DRIFT), FrozenOffer())
    step = Step(Verb.UPDATE, "drift")
    assert scene.carry_out(step).written
    assert [planned.entry_id for planned in scene.opposed] == ["entry-1"]
    scene.is_unopposed = False
    again = scene.carry_out(step)
    assert (again.abandoned, again.written) == (True, False)
    assert len(scene.shelf.writes) == 1
    plain, step = _update()
    plain.is_unopposed = False
    assert plain.carry_out(step).written, "elsewhere the tags themselves were read"
    assert plain.opposed == []


@pytest.mark.rule("S16")
def test_what_was_not_sighted_is_read_by_the_id_that_is_remembered() -> None:
    scene = Scene(drifting(), None)
    scene.shelf.items["id-1"] = item(MINE, actual=SIZE_DRIFT)
    assert scene.carry_out(Step(Verb.UPDATE, "drift")).written
    unknown = Scene(component(memory(resource_id=None)), None)
    failed = unknown.carry_out(Step(Verb.UPDATE, "drift"))
    assert _failure(failed) == "AssertionError: only what was sighted is changed"
    assert unknown.shelf.writes == []


def _failure(outcome: Outcome) -> str:
    """What a component alone fails by, that nobody expected; nothing was sent (S24)."""
    assert isinstance(outcome.error, Unexpected)
    assert (outcome.written, outcome.had_no_effect) == (False, True)
    return outcome.error.message


@pytest.mark.rule("S24")
def test_what_nobody_expected_in_a_write_is_this_components_error_and_may_have_had_an_effect() -> None:
    scene, step = _update()

    def fail() -> None:
        raise RuntimeError("a fault in the offer")

    scene.shelf.before["update"] = fail
    outcome = scene.carry_out(step)
    assert isinstance(outcome.error, Unexpected | Transient)
    assert "a fault in the offer" in outcome.error.message
    assert (outcome.written, outcome.is_done, outcome.had_no_effect) == (True, False, False)
    assert outcome.view == View(sighting=scene.seen)


@pytest.mark.rule("S24")
def test_a_fault_of_our_own_is_an_error_of_the_component_with_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, step = _update()

    def fail(*_: Any) -> Any:
        raise RuntimeError("a fault of our own")

    monkeypatch.setattr(Writer, "_guard", fail)
    outcome = scene.carry_out(step)
    assert isinstance(outcome.error, Unexpected)
    assert (outcome.error.message, outcome.error.code) == (
        describe_unexpected(RuntimeError("a fault of our own")),
        "RuntimeError",
    )
    monkeypatch.setattr(Writer, "_read", fail)
    again = scene.carry_out(step)
    assert again.view is not None
    assert isinstance(again.view.error, Unreadable)
    assert again.view.error.message == describe_unexpected(RuntimeError("a fault of our own"))


@pytest.mark.rule("S24")
def test_a_call_that_did_not_return_in_time_is_given_up_and_counts_as_sent() -> None:
    planned = Planned(component(), Step(Verb.UPDATE, "drift"), "e", None)
    gone = Outcome(planned, error=GivenUp("no answer"), written=True)
    assert (gone.is_given_up, gone.had_no_effect) == (True, False)
    assert not Outcome(planned, error=Denied("no"), written=True).is_given_up
    assert not Outcome(planned).is_given_up


@pytest.mark.rule("C9")
@pytest.mark.parametrize("verb", Verb)
def test_in_a_recovery_nothing_is_written_whatever_led_here(verb: Verb) -> None:
    scene = Scene(component(in_recovery=True), item(MINE))
    outcome = scene.carry_out(Step(verb, "drift"))
    assert scene.shelf.calls == []
    assert (outcome.abandoned, outcome.written) == (True, False)


def test_a_creation_never_goes_the_way_of_a_change() -> None:
    scene, _ = _update()
    scope = scene.scope
    writer = Writer(scope.held, scope.evaluator, scope.facts, lambda: True, lambda _: True)
    with pytest.raises(AssertionError, match=r"^a creation has its own way$"):
        writer._write(scene.tracked, item(MINE), Step(Verb.CREATE, "create"))


@pytest.mark.rule("G15")
def test_what_is_written_knows_its_parent_and_what_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(drifting(ignore_drift=frozenset({"policy"})), item(MINE, actual=SIZE_DRIFT))
    monkeypatch.setattr(
        scene.scope.evaluator, "parent_id", lambda tracked: "net-1" if tracked is scene.tracked else None
    )
    scene.carry_out(Step(Verb.UPDATE, "drift"))
    (call,) = scene.shelf.writes
    assert (call[2].parent_id, call[2].ignored) == ("net-1", frozenset({"policy"}))


def test_an_outcome_is_empty_unless_said() -> None:
    planned = Planned(component(), Step(Verb.DELETE, "delete"), "e", None)
    bare = Outcome(planned)
    assert (bare.view, bare.created, bare.error, bare.request_ids, bare.tags) == (None, None, None, [], {})
    assert not (bare.abandoned)
    assert not (bare.race_lost)
    assert not (bare.written)
    assert not (bare.is_done)
    assert bare.had_no_effect


# --- a LiveSystem of a backup that nobody has confirmed


@pytest.mark.rule("C9")
@pytest.mark.parametrize("name", [*WRITES, "create"])
def test_what_is_held_after_it_was_judged_is_neither_read_nor_written(name: str) -> None:
    if name == "create":
        scene, step = Scene(component(memory(Stance.NONE, resource_id=None)), None), Step(Verb.CREATE, "create")
    else:
        scene, step = WRITES[name]()
    scene.tracked.in_recovery = True
    outcome = scene.carry_out(step)
    assert scene.shelf.calls == []
    assert (outcome.abandoned, outcome.written, outcome.is_done, outcome.error) == (True, False, False, None)
    assert outcome.had_no_effect


@pytest.mark.rule("C9")
@pytest.mark.parametrize("name", WRITES)
def test_what_is_held_while_the_guard_reads_is_not_written(name: str) -> None:
    scene, step = WRITES[name]()

    def hold() -> None:
        scene.tracked.in_recovery = True

    scene.shelf.before["read"] = hold
    outcome = scene.carry_out(step)
    assert scene.shelf.writes == []
    assert (outcome.abandoned, outcome.written) == (True, False)
