"""From one component and one read of the cloud to exactly what is said and the one next write.

Expected are whole judgements, written from the protocol; only their sentences are taken from `rules/words.py`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fractal_cloud.model.errors import AwaitsPerson, OtherRealm, Unreadable
from fractal_cloud.model.identity import Identity, Scope
from fractal_cloud.model.observed import Override, Setback
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tags import NO_TAGS, OURS, ProtocolTags
from fractal_cloud.model.wire import Bound, RequestKind
from fractal_cloud.rules import words
from fractal_cloud.rules.drift import Difference
from fractal_cloud.rules.judge import Judgement, Step, Verb, judge
from fractal_cloud.rules.requests import Answer
from fractal_cloud.rules.setbacks import digest
from fractal_cloud.rules.situate import ABSENT, GONE, NEVER, Claims, TypeTraits, View, found_elsewhere
from tests.direct.things import (
    CYCLE,
    HANDSHAKE,
    ME,
    MINE,
    NOW,
    OTHER,
    TYPE,
    context,
    intent,
    memory,
    request,
    sighting,
    tracked,
)

MANAGED, OVERRIDE, IMPORTED, NONE = Stance.MANAGED, Stance.OVERRIDE, Stance.IMPORTED, Stance.NONE
ACTIVE, FAILED, MUTATING = Status.ACTIVE, Status.FAILED, Status.MUTATING
INSTANTIATING, MANUAL = Status.INSTANTIATING, Status.MANUAL_OVERRIDE
ASKED_BACK = Status.RECONCILE_REQUESTED

SIZE = {"size": Difference(3, 2)}
ZONE = {"zone": Difference("a", "b")}
FROZEN = TypeTraits(tags_frozen=True)
AT_WORK = (Condition.CREATING, Condition.CHANGING, Condition.DYING)


def seen(tags: ProtocolTags = MINE, **more: Any) -> View:
    return View(sighting=sighting(tags, **more))


def of(view: View) -> Sighting:
    assert view.sighting is not None
    return view.sighting


def test_a_judgement_and_a_step_hold_nothing_unless_said() -> None:
    assert Step(Verb.DELETE, "delete") == Step(Verb.DELETE, "delete", {}, NO_TAGS, NO_TAGS, None)
    bare = Judgement("S0", None, NONE, "")
    assert (bare.drift, bare.step, bare.waits_for, bare.answer) == ({}, None, (), None)
    assert not (bare.in_progress)
    assert not (bare.carried_out)
    assert not (bare.noticing)
    assert not (bare.finished)
    assert not (bare.left)
    assert not (bare.stuck)


def test_each_verb_is_one_call_by_its_name() -> None:
    assert sorted(Verb) == ["create", "delete", "finish", "push", "stamp", "tag", "transfer", "untag", "update"]


# --- S12: managed, ours


@pytest.mark.rule("S12", "S20")
def test_what_is_as_declared_is_active_and_nothing_is_written() -> None:
    component = tracked(parameters={"size": 3})
    assert judge(component, seen(actual={"size": 3}), context(declared={"size": 3})) == Judgement(
        "S12", ACTIVE, MANAGED, words.in_step(), carried_out=True
    )


@pytest.mark.rule("S12", "C7")
@pytest.mark.parametrize(
    ("observed", "reason", "status"),
    [(3, "drift", MUTATING), (2, "deploy", MUTATING), (0, "deploy", INSTANTIATING)],
)
def test_drift_is_reconciled_and_the_journal_says_why(observed: int, reason: str, status: Status) -> None:
    component = tracked(memory(observed_generation=observed), parameters={"size": 3})
    assert judge(component, seen(actual={"size": 2}), context(declared={"size": 3})) == Judgement(
        "S12",
        status,
        MANAGED,
        words.reconciling(SIZE),
        SIZE,
        Step(Verb.UPDATE, reason, drift=SIZE),
        in_progress=True,
    )


@pytest.mark.rule("C7", "L17")
@pytest.mark.parametrize("observed", [3, 2])
def test_what_only_links_set_is_written_for_a_link_and_nothing_else_is(observed: int) -> None:
    component = tracked(memory(observed_generation=observed))
    peers = {"peers": Difference(["a"], [])}
    found = judge(component, seen(actual={"peers": []}), context(declared={"peers": ["a"]}))
    assert found.step == Step(Verb.UPDATE, "link", drift=peers)
    both = judge(component, seen(actual={"peers": [], "size": 2}), context(declared={"peers": ["a"], "size": 3}))
    assert both.step == Step(Verb.UPDATE, "drift" if observed == 3 else "deploy", drift={**peers, **SIZE})


@pytest.mark.rule("G15")
def test_what_is_ignored_is_not_compared_but_while_it_is_created() -> None:
    view, declared = seen(actual={"size": 2}), context(declared={"size": 3})
    component = tracked(ignore_drift=frozenset({"size"}))
    assert judge(component, view, declared).step is None
    creating = tracked(memory(intent=intent()), ignore_drift=frozenset({"size"}))
    assert judge(creating, view, declared).step == Step(Verb.UPDATE, "drift", drift=SIZE)


@pytest.mark.rule("S18")
def test_what_cannot_change_in_place_is_failed_and_the_rest_is_still_reconciled() -> None:
    component = tracked()
    fixed = judge(component, seen(actual={"zone": "b"}), context(declared={"zone": "a"}))
    message = words.cannot_change(component, ZONE)
    assert fixed == Judgement("S12", FAILED, MANAGED, message, ZONE, carried_out=True)
    both = judge(component, seen(actual={"zone": "b", "size": 2}), context(declared={"zone": "a", "size": 3}))
    step = Step(Verb.UPDATE, "drift", drift=SIZE)
    assert both == Judgement("S12", FAILED, MANAGED, message, {**ZONE, **SIZE}, step, in_progress=True)


MOVED = tracked(declared_identity=Identity(TYPE, Scope("aws", "123456789012", "us-east-1"), "web"))


@pytest.mark.rule("S18")
def test_a_moved_declaration_is_failed_and_destroys_nothing() -> None:
    found = judge(MOVED, seen(), context())
    assert found == Judgement("S12", FAILED, MANAGED, words.cannot_change(MOVED, {}), carried_out=True, stuck=True)


@pytest.mark.rule("S13")
@pytest.mark.parametrize(
    ("condition", "status"),
    [
        (Condition.CREATING, INSTANTIATING),
        (Condition.CHANGING, MUTATING),
        (Condition.DYING, MUTATING),
    ],
)
def test_while_the_cloud_is_at_work_that_is_shown_and_nothing_is_written(condition: Condition, status: Status) -> None:
    view = seen(condition=condition, actual={"size": 2}, detail="doing it")
    message = words.at_work(of(view))
    still = judge(tracked(), view, context(declared={"size": 2}))
    assert still == Judgement("S12", status, MANAGED, message, in_progress=True)
    drifted = judge(tracked(), view, context(declared={"size": 3}))
    assert drifted == Judgement("S12", status, MANAGED, message, SIZE, in_progress=True)


@pytest.mark.rule("S13")
def test_what_the_cloud_calls_failed_is_failed_and_open_for_changes_only_if_it_says_so() -> None:
    view = seen(condition=Condition.BROKEN, actual={"size": 2}, detail="no disk")
    message = words.broken(of(view))
    still = judge(tracked(), view, context(declared={"size": 2}))
    assert still == Judgement("S12", FAILED, MANAGED, message, carried_out=True)
    drifted = judge(tracked(), view, context(declared={"size": 3}))
    assert drifted == Judgement("S12", FAILED, MANAGED, message, SIZE, in_progress=True)
    open_view = seen(condition=Condition.BROKEN, actual={"size": 2}, is_open=True)
    assert judge(tracked(), open_view, context(declared={"size": 3})).step == Step(Verb.UPDATE, "drift", drift=SIZE)


# --- S12a: shown before anything is written


@pytest.mark.rule("S12a")
@pytest.mark.parametrize(
    ("remembered", "stance"),
    [
        (memory(NONE), NONE),
        (memory(IMPORTED), IMPORTED),
        (memory(absent_since=NOW - timedelta(hours=2)), MANAGED),
        (memory(NONE, noticed_since=NOW - CYCLE + timedelta(seconds=1)), NONE),
    ],
)
def test_what_just_arrived_is_shown_for_a_cycle_before_it_is_changed(remembered: Any, stance: Stance) -> None:
    component = tracked(remembered)
    drifted = judge(component, seen(actual={"size": 2}), context(declared={"size": 3}))
    message = words.noticed(component, SIZE, CYCLE, frozen=False)
    assert drifted == Judgement("S12a", MUTATING, stance, message, SIZE, noticing=True, in_progress=True)
    in_step = judge(component, seen(actual={"size": 3}), context(declared={"size": 3}))
    assert in_step == Judgement("S12a", ACTIVE, stance, words.in_step(), noticing=True, carried_out=True)


@pytest.mark.rule("S12a")
def test_after_its_cycle_it_is_reconciled_and_managed() -> None:
    component = tracked(memory(NONE, noticed_since=NOW - CYCLE))
    drifted = judge(component, seen(actual={"size": 2}), context(declared={"size": 3}))
    assert (drifted.rule, drifted.stance, drifted.step) == ("S12", MANAGED, Step(Verb.UPDATE, "drift", drift=SIZE))
    assert not drifted.noticing


@pytest.mark.rule("S12a", "S13", "S18")
def test_what_is_shown_first_says_also_what_cannot_change_and_what_the_cloud_does() -> None:
    component = tracked(memory(NONE))
    fixed = judge(component, seen(actual={"zone": "b"}), context(declared={"zone": "a"}))
    message = words.cannot_change(component, ZONE)
    assert fixed == Judgement("S12a", FAILED, NONE, message, ZONE, noticing=True, carried_out=True)
    view = seen(condition=Condition.CHANGING, actual={"size": 2})
    busy = judge(component, view, context(declared={"size": 3}))
    assert (busy.status, busy.message, busy.step) == (MUTATING, words.at_work(of(view)), None)


@pytest.mark.rule("S12a")
def test_where_tags_are_frozen_what_is_shown_first_names_the_command() -> None:
    component = tracked(memory(absent_since=NOW))
    found = judge(component, seen(actual={"size": 2}), context(declared={"size": 3}, traits=FROZEN))
    assert found.message == words.noticed(component, SIZE, CYCLE, frozen=True)
    assert found.noticing


# --- S9: the handshake

CLAIMED = ProtocolTags(OURS, reconcile=True)


@pytest.mark.rule("S9", "T4", "S17")
@pytest.mark.parametrize(
    ("before", "held"), [(NONE, OVERRIDE), (IMPORTED, OVERRIDE), (OVERRIDE, OVERRIDE), (MANAGED, MANAGED)]
)
def test_the_owner_is_stamped_first_and_the_stance_is_held_until_all_is_done(before: Stance, held: Stance) -> None:
    component = tracked(memory(before))
    found = judge(component, seen(CLAIMED, actual={"size": 2}), context(declared={"size": 3}))
    step = Step(Verb.STAMP, "handshake", add=ProtocolTags(owner=ME))
    assert found == Judgement("S9", ASKED_BACK, held, words.reconciling(SIZE), SIZE, step, in_progress=True)


@pytest.mark.rule("S9", "G8")
def test_then_drift_is_reconciled_and_then_the_tag_is_removed() -> None:
    component = tracked(memory(OVERRIDE))
    drifted = judge(component, seen(HANDSHAKE, actual={"size": 2}), context(declared={"size": 3}))
    step = Step(Verb.UPDATE, "handshake", drift=SIZE)
    assert drifted == Judgement("S9", ASKED_BACK, OVERRIDE, words.reconciling(SIZE), SIZE, step, in_progress=True)
    done = judge(component, seen(HANDSHAKE, actual={"size": 3}), context(declared={"size": 3}))
    finish = Step(Verb.FINISH, "handshake", remove=ProtocolTags(reconcile=True))
    assert done == Judgement("S9", ASKED_BACK, MANAGED, words.readopted(), {}, finish, in_progress=True)


@pytest.mark.rule("S9", "S18", "T6")
def test_what_cannot_change_keeps_the_tag_and_is_failed_once_the_rest_is_done() -> None:
    component = tracked(memory(OVERRIDE))
    both = judge(
        component, seen(HANDSHAKE, actual={"zone": "b", "size": 2}), context(declared={"zone": "a", "size": 3})
    )
    assert both.step == Step(Verb.UPDATE, "handshake", drift=SIZE)
    assert (both.status, both.message) == (ASKED_BACK, words.reconciling(SIZE))
    fixed = judge(component, seen(HANDSHAKE, actual={"zone": "b"}), context(declared={"zone": "a"}))
    message = words.cannot_change(component, ZONE)
    assert fixed == Judgement("S9", FAILED, OVERRIDE, message, ZONE, in_progress=True)
    moved = judge(replace(MOVED, memory=memory(OVERRIDE)), seen(HANDSHAKE), context())
    assert (moved.status, moved.step) == (FAILED, None)
    assert moved.message == words.cannot_change(MOVED, {})


@pytest.mark.rule("S9", "S13")
@pytest.mark.parametrize("condition", AT_WORK)
def test_a_handshake_waits_for_the_cloud_but_for_the_owner(condition: Condition) -> None:
    component = tracked(memory(OVERRIDE))
    view = seen(HANDSHAKE, condition=condition, actual={"size": 2})
    found = judge(component, view, context(declared={"size": 3}))
    assert found == Judgement("S9", ASKED_BACK, OVERRIDE, words.at_work(of(view)), SIZE, in_progress=True)
    unowned = judge(component, seen(CLAIMED, condition=condition), context())
    assert unowned.step == Step(Verb.STAMP, "handshake", add=ProtocolTags(owner=ME))


@pytest.mark.rule("S9", "S23")
def test_a_handshake_is_done_only_after_everything_declared_was_read() -> None:
    component = tracked(memory(OVERRIDE), parameters={"size": 3, "policy": "p"})
    declared = context(declared={"size": 3, "policy": "p"})
    found = judge(component, seen(HANDSHAKE, actual={"size": 3}), declared)
    assert found == Judgement("S9", ASKED_BACK, OVERRIDE, words.reading_on(), {}, in_progress=True)
    whole = judge(component, seen(HANDSHAKE, actual={"size": 3, "policy": "p"}), declared)
    assert whole.step == Step(Verb.FINISH, "handshake", remove=ProtocolTags(reconcile=True))
    for easy in (
        replace(component, ignore_drift=frozenset({"policy"})),
        replace(component, parameters={"size": 3}),
    ):
        assert judge(easy, seen(HANDSHAKE, actual={"size": 3}), declared).step is not None
    other = replace(component, parameters={"size": 3, "zone": "a"})
    assert judge(other, seen(HANDSHAKE, actual={"size": 3}), declared).step is not None, "zone comes with every list"


@pytest.mark.rule("S11a", "G7")
def test_where_the_tag_alone_returns_it_there_is_nothing_to_remove() -> None:
    component = tracked(memory(OVERRIDE), readoption_by_tag=True)
    done = judge(component, seen(actual={"size": 3}), context(declared={"size": 3}))
    assert done == Judgement("S11a", ACTIVE, MANAGED, words.in_step(), carried_out=True)
    drifted = judge(component, seen(actual={"size": 2}), context(declared={"size": 3}))
    step = Step(Verb.UPDATE, "handshake", drift=SIZE)
    assert drifted == Judgement("S11a", ASKED_BACK, OVERRIDE, words.reconciling(SIZE), SIZE, step, in_progress=True)


@pytest.mark.rule("S9", "G13")
def test_where_tags_are_frozen_the_memory_of_a_request_returns_it_and_no_tag_is_removed() -> None:
    back = memory(OVERRIDE, override=Override(since=NOW, readopted_by="jo"))
    for tags in (MINE, HANDSHAKE):
        done = judge(tracked(back), seen(tags), context(traits=FROZEN))
        assert done == Judgement("S9", ACTIVE, MANAGED, words.in_step(), carried_out=True)


# --- absent: S4 and what keeps from it


@pytest.mark.rule("S4", "T2")
def test_what_is_absent_is_created_with_its_tags() -> None:
    component = tracked(memory(NONE, resource_id=None))
    step = Step(Verb.CREATE, "create", add=MINE)
    assert judge(component, ABSENT, context()) == Judgement(
        "S4", INSTANTIATING, MANAGED, words.creating(component), step=step, in_progress=True
    )


@pytest.mark.rule("S19")
def test_what_was_found_under_another_name_is_not_created_again() -> None:
    component = tracked()
    other = sighting(name="other")
    view = found_elsewhere(other)
    found = judge(component, view, context(orphan=sighting(), rival=OTHER, waits_for=("net",)))
    assert found == Judgement("S19", FAILED, MANAGED, words.renamed(component, other), carried_out=True)


@pytest.mark.rule("S15")
@pytest.mark.parametrize("frozen", [False, True])
def test_nothing_is_created_beside_an_orphan(frozen: bool) -> None:
    component = tracked(memory(NONE))
    orphan = sighting(name="old", resource_id="id-9")
    found = judge(component, ABSENT, context(orphan=orphan, rival=OTHER, traits=TypeTraits(tags_frozen=frozen)))
    message = words.orphaned(component, orphan, frozen=frozen)
    assert found == Judgement("S15", FAILED, NONE, message, carried_out=True)


@pytest.mark.rule("S4", "O2", "S17")
@pytest.mark.parametrize(
    ("component", "more", "message"),
    [
        (tracked(memory(NONE)), {"waits_for": ("net", "role")}, words.waits_for(("net", "role"))),
        (tracked(memory(NONE)), {"waits_for": ("net",), "rival": OTHER}, words.waits_for(("net",))),
        (tracked(memory(NONE)), {"rival": OTHER}, words.rival(OTHER)),
        (
            tracked(memory(NONE, intent=intent())),
            {"window_over": False},
            words.window(tracked(memory(intent=intent()))),
        ),
        (tracked(memory(NONE, intent=intent())), {"window_over": False, "rival": OTHER}, words.rival(OTHER)),
    ],
)
def test_a_creation_waits_for_dependencies_rivals_and_lost_answers(component: Any, more: Any, message: str) -> None:
    found = judge(component, ABSENT, context(**more))
    waits = more.get("waits_for", ())
    assert found == Judgement("S4", INSTANTIATING, NONE, message, waits_for=waits, in_progress=True)


@pytest.mark.rule("S19", "C8")
def test_a_creation_that_waits_for_what_was_renamed_waits_for_a_person() -> None:
    other = sighting(name="other", resource_id="id-7")
    found = judge(tracked(memory(NONE)), NEVER, context(waits_for=("net", "sub"), renamed={"net": other}, rival=OTHER))
    message = words.waits_for_renamed({"net": other})
    assert found == Judgement(
        "S4", INSTANTIATING, NONE, message, waits_for=("net", "sub"), in_progress=True, stuck=True
    )


@pytest.mark.rule("S17")
def test_a_lost_creation_is_tried_again_once_it_would_have_shown() -> None:
    component = tracked(memory(intent=intent()))
    found = judge(component, ABSENT, context(window_over=True))
    assert found.step == Step(Verb.CREATE, "create", add=MINE)
    assert found.message == words.creating(component)
    fresh = judge(tracked(memory(NONE)), ABSENT, context(window_over=False))
    assert fresh.step is not None, "without an intent there is nothing to wait for"


# --- S17: tags that follow the creation


def test_nothing_is_decided_about_what_may_be_the_own_creation_until_its_mark_shows() -> None:
    view = seen(NO_TAGS, condition=Condition.CREATING, detail="starting")
    message = words.at_work(of(view))
    found = judge(tracked(memory(intent=intent())), view, context(is_own_creation=None))
    assert found == Judgement("S17", INSTANTIATING, MANAGED, message, in_progress=True)
    going = judge(tracked(memory(OVERRIDE, intent=intent()), deleting=True), view, context(is_own_creation=None))
    assert going == Judgement("S17", Status.DELETING, OVERRIDE, message, in_progress=True)
    held = judge(tracked(memory(OVERRIDE)), view, context(is_own_creation=None))
    assert held == Judgement("S17", None, OVERRIDE, message, in_progress=True), "in manual override: the status stays"


@pytest.mark.rule("S17")
def test_the_second_half_of_a_creation_puts_the_tags_on() -> None:
    component = tracked(memory(intent=intent(tagging="owed")))
    found = judge(component, seen(NO_TAGS), context(is_own_creation=True))
    step = Step(Verb.TAG, "tagging", add=MINE)
    assert found == Judgement("S17", INSTANTIATING, MANAGED, words.tagging(), step=step, in_progress=True)


@pytest.mark.rule("S17", "S7", "T3")
@pytest.mark.parametrize(
    ("remembered", "is_own"),
    [
        (memory(intent=intent(tagging="owed")), False),
        (memory(intent=intent(tagging="begun")), True),
        (memory(intent=intent()), True),
        (memory(), True),
    ],
)
def test_no_tag_is_put_on_what_is_not_surely_the_own_creation_before_its_tags(remembered: Any, is_own: bool) -> None:
    component = tracked(remembered)
    view = seen(NO_TAGS)
    found = judge(component, view, context(is_own_creation=is_own))
    message = words.explain("S7", component, view, context().claims, frozen=False)
    assert found == Judgement("S7", MANUAL, OVERRIDE, message, carried_out=True)


# --- in manual override


@pytest.mark.rule("S0", "C8")
def test_what_cannot_be_read_is_not_decided_and_says_whether_a_person_is_needed() -> None:
    error = Unreadable("throttled")
    found = judge(tracked(memory(OVERRIDE)), View(error=error), context())
    assert found == Judgement("S0", None, OVERRIDE, words.unreadable(error))
    hopeless = AwaitsPerson("renamed")
    assert judge(tracked(), View(error=hopeless), context()).stuck


@pytest.mark.rule("S5", "S6", "S7", "S8", "S8a", "S10", "S11", "S1", "S2", "S3", "S4a", "G3")
@pytest.mark.parametrize(
    ("rule", "component", "view", "more", "status", "stance"),
    [
        ("S5", tracked(import_only=True), seen(actual={"size": 2}), {}, Status.EXTERNALLY_MANAGED, IMPORTED),
        (
            "S6",
            tracked(),
            seen(replace(MINE, owner=OTHER), actual={"size": 2}),
            {},
            Status.EXTERNALLY_MANAGED,
            IMPORTED,
        ),
        ("S7", tracked(), seen(ProtocolTags(owner=ME), actual={"size": 2}), {}, MANUAL, OVERRIDE),
        ("S7", tracked(), seen(ProtocolTags("helm", owner=ME), actual={"size": 2}), {}, MANUAL, OVERRIDE),
        (
            "S8",
            tracked(),
            seen(CLAIMED, actual={"size": 2}),
            {"claims": Claims(frozenset({ME, OTHER}), OTHER)},
            Status.EXTERNALLY_MANAGED,
            IMPORTED,
        ),
        (
            "S8a",
            tracked(),
            seen(CLAIMED, actual={"size": 2}),
            {"claims": Claims(frozenset({ME, OTHER}))},
            MANUAL,
            OVERRIDE,
        ),
        ("S10", tracked(), seen(ProtocolTags(OURS), actual={"size": 2}), {}, MANUAL, OVERRIDE),
        ("S11", tracked(memory(OVERRIDE)), seen(actual={"size": 2}), {}, MANUAL, OVERRIDE),
        ("S11", tracked(memory(OVERRIDE)), seen(actual={"size": 2}), {"traits": FROZEN}, MANUAL, OVERRIDE),
        ("S11b", tracked(memory(NONE)), seen(actual={"size": 2}), {"traits": FROZEN}, MANUAL, OVERRIDE),
        ("S1", tracked(import_only=True), ABSENT, {}, Status.MISSING, IMPORTED),
        ("S3", tracked(memory(IMPORTED)), ABSENT, {}, Status.MISSING, IMPORTED),
        ("S4a", tracked(), ABSENT, {"traits": TypeTraits(holds_data=True)}, Status.MISSING, MANAGED),
    ],
)
def test_in_override_the_drift_is_reported_and_nothing_is_written(
    rule: str, component: Any, view: View, more: Any, status: Status, stance: Stance
) -> None:
    surroundings = context(declared={"size": 3}, **more)
    message = words.explain(rule, component, view, surroundings.claims, frozen=surroundings.traits.tags_frozen)
    drift = SIZE if view.sighting is not None else {}
    assert judge(component, view, surroundings) == Judgement(rule, status, stance, message, drift, carried_out=True)


@pytest.mark.rule("S14", "S2", "C8")
def test_what_only_a_person_can_resolve_says_so() -> None:
    two = View(fitting=(sighting(NO_TAGS), sighting(NO_TAGS, resource_id="id-2")))
    for traits in (TypeTraits(), FROZEN):
        message = words.explain("S14", tracked(), two, context().claims, frozen=traits.tags_frozen)
        found = judge(tracked(), two, context(traits=traits))
        assert found == Judgement("S14", FAILED, MANAGED, message, stuck=True)
    component = tracked(memory(OVERRIDE))
    message = words.explain("S2", component, ABSENT, context().claims, frozen=False)
    gone = judge(component, ABSENT, context())
    assert gone == Judgement("S2", MANUAL, OVERRIDE, message, carried_out=True, stuck=True)


@pytest.mark.rule("S13")
@pytest.mark.parametrize("condition", [*AT_WORK, Condition.BROKEN])
def test_what_the_cloud_does_to_what_is_not_ours_is_not_our_status(condition: Condition) -> None:
    found = judge(tracked(memory(OVERRIDE)), seen(condition=condition), context())
    assert (found.rule, found.status, found.in_progress, found.carried_out) == ("S11", MANUAL, False, True)


@pytest.mark.rule("S0", "C8")
def test_what_cannot_be_read_says_what_it_waits_for() -> None:
    found = judge(tracked(), View(error=Unreadable("throttled")), context(waits_for=("net",)))
    assert found.waits_for == ("net",)


@pytest.mark.rule("S19", "S4a", "S2")
def test_what_is_not_created_says_where_it_was_found() -> None:
    other = sighting(name="other")
    view = found_elsewhere(other)
    holds = judge(tracked(), view, context(traits=TypeTraits(holds_data=True)))
    message = words.renamed(tracked(), other)
    assert holds == Judgement("S4a", FAILED, MANAGED, message, carried_out=True)
    let_go = judge(tracked(memory(OVERRIDE)), view, context())
    assert let_go == Judgement("S2", MANUAL, OVERRIDE, message, carried_out=True, stuck=True)


@pytest.mark.rule("C9")
def test_in_a_recovery_it_is_read_and_nothing_else_follows() -> None:
    for error in (None, Unreadable("throttled")):
        view = seen(actual={"size": 2}) if error is None else View(error=error)
        for deleting in (False, True):
            component = tracked(memory(waits_for=("net",)), in_recovery=True, deleting=deleting, request=PUSH)
            found = judge(component, view, context(declared={"size": 3}, is_own_creation=None))
            message = words.in_recovery(ME, error)
            drift = SIZE if error is None else {}
            assert found == Judgement("C9", None, MANAGED, message, drift, waits_for=("net",), stuck=True)


# --- S27: values that somebody sets back

GIVEN_UP = Setback(parameter="size", at=[NOW], value=digest(3), given_up=True)
WAITING = Setback(parameter="size", at=[], value=digest(3), written=NOW)


@pytest.mark.rule("S27")
@pytest.mark.parametrize(("tags", "stance"), [(MINE, MANAGED), (HANDSHAKE, OVERRIDE)])
def test_a_write_that_is_not_visible_yet_is_awaited(tags: ProtocolTags, stance: Stance) -> None:
    is_back = tags is HANDSHAKE
    known = (WAITING.model_copy(update={"in_handshake": is_back}),)
    component = tracked(memory(stance, setbacks=known))
    found = judge(component, seen(tags, actual={"size": 2}), context(declared={"size": 3}))
    rule, status = ("S9", ASKED_BACK) if is_back else ("S12", MUTATING)
    message = words.not_visible(SIZE)
    assert found == Judgement(rule, status, stance, message, SIZE, in_progress=True, setbacks=known)


@pytest.mark.rule("S27")
def test_what_is_awaited_keeps_nothing_else_back() -> None:
    component = tracked(memory(setbacks=(WAITING,)))
    found = judge(component, seen(actual={"size": 2, "peers": []}), context(declared={"size": 3, "peers": ["a"]}))
    peers = {"peers": Difference(["a"], [])}
    assert found.step == Step(Verb.UPDATE, "drift", drift=peers)
    assert found.message == words.reconciling({**peers, **SIZE})


@pytest.mark.rule("S27", "T6")
@pytest.mark.parametrize(("tags", "stance"), [(MINE, MANAGED), (HANDSHAKE, OVERRIDE)])
def test_what_is_always_set_back_is_given_up_and_failed(tags: ProtocolTags, stance: Stance) -> None:
    is_back = tags is HANDSHAKE
    known = (GIVEN_UP.model_copy(update={"in_handshake": is_back}),)
    component = tracked(memory(stance, setbacks=known))
    found = judge(component, seen(tags, actual={"size": 2}), context(declared={"size": 3}))
    rule = "S9" if is_back else "S12"
    assert found == Judgement(rule, FAILED, stance, words.set_back(known), SIZE, setbacks=known)


@pytest.mark.rule("S27", "S18")
def test_what_is_given_up_and_what_cannot_change_are_both_said_and_the_rest_is_reconciled() -> None:
    component = tracked(memory(setbacks=(GIVEN_UP,)))
    peers = {"peers": Difference(["a"], [])}
    view = seen(actual={"size": 2, "zone": "b", "peers": []})
    found = judge(component, view, context(declared={"size": 3, "zone": "a", "peers": ["a"]}))
    message = f"{words.cannot_change(component, ZONE)}; {words.set_back((GIVEN_UP,))}"
    assert (found.status, found.message) == (FAILED, message)
    assert found.step == Step(Verb.UPDATE, "drift", drift=peers)
    assert found.in_progress


@pytest.mark.rule("S27")
def test_a_value_that_stands_again_says_so_until_its_fight_is_over() -> None:
    stands = GIVEN_UP.model_copy(update={"since": NOW - timedelta(minutes=29)})
    component = tracked(memory(setbacks=(stands,)))
    found = judge(component, seen(actual={"size": 3}), context(declared={"size": 3}))
    message = words.set_back((stands,))
    assert found == Judgement("S12", FAILED, MANAGED, message, carried_out=True, setbacks=(stands,))
    over = replace(component, memory=memory(setbacks=(stands.model_copy(update={"since": NOW - timedelta(hours=1)}),)))
    assert judge(over, seen(actual={"size": 3}), context(declared={"size": 3})) == Judgement(
        "S12", ACTIVE, MANAGED, words.in_step(), carried_out=True
    )


@pytest.mark.rule("S27", "S13")
def test_while_the_cloud_is_at_work_no_fight_is_counted() -> None:
    confirmed = Setback(parameter="size", at=[], value=digest(3), since=NOW - timedelta(minutes=1))
    component = tracked(memory(setbacks=(confirmed,)))
    busy = judge(component, seen(condition=Condition.CHANGING, actual={"size": 2}), context(declared={"size": 3}))
    assert busy.setbacks == (confirmed,)
    assert busy.in_progress
    quiet = judge(component, seen(actual={"size": 2}), context(declared={"size": 3}))
    assert quiet.setbacks == (confirmed.model_copy(update={"since": None, "at": [NOW]}),)
    linked = Setback(parameter="peers", at=[], value=digest(["a"]), since=NOW - timedelta(minutes=1))
    component = tracked(memory(setbacks=(linked,)))
    found = judge(component, seen(actual={"peers": []}), context(declared={"peers": ["a"]}))
    assert found.setbacks == (linked,), "what links set is nobody's declaration"


@pytest.mark.rule("S27", "S12a", "S9")
def test_what_is_followed_is_kept_while_it_is_shown_and_when_it_is_handed_back() -> None:
    shown = judge(tracked(memory(NONE, setbacks=(WAITING,))), seen(actual={"size": 2}), context(declared={"size": 3}))
    assert (shown.rule, shown.setbacks) == ("S12a", (WAITING,))
    begins = judge(tracked(memory(OVERRIDE, setbacks=(GIVEN_UP,))), seen(HANDSHAKE), context())
    assert begins.setbacks == (), "a handshake begins anew"
    own = Setback(parameter="size", at=[], value=digest(3), since=NOW, in_handshake=True)
    for tags, by_tag in ((HANDSHAKE, False), (MINE, True)):
        component = tracked(memory(OVERRIDE, setbacks=(own,)), readoption_by_tag=by_tag)
        done = judge(component, seen(tags, actual={"size": 3}), context(declared={"size": 3}))
        assert (done.stance, done.setbacks) == (MANAGED, (own,))
    in_override = judge(tracked(memory(OVERRIDE, setbacks=(own,))), seen(), context())
    assert (in_override.rule, in_override.setbacks) == ("S11", ())


# --- what operators ask for

FREE = ProtocolTags(owner=ME)
BREAK = request(RequestKind.BREAK, reason="incident 7")
PUSH = request()


@pytest.mark.rule("G13")
def test_glass_broken_through_the_product_removes_managed_by_first() -> None:
    component = tracked(request=BREAK)
    step = Step(Verb.UNTAG, "glass", remove=ProtocolTags(managed_by=OURS), request=BREAK)
    assert judge(component, seen(actual={"size": 2}), context(declared={"size": 3})) == Judgement(
        "G13",
        MANUAL,
        OVERRIDE,
        words.breaking_glass(BREAK),
        SIZE,
        step,
        in_progress=True,
        answer=Answer(BREAK, acts=True),
    )


@pytest.mark.rule("G13")
def test_glass_that_is_broken_already_is_only_answered() -> None:
    component = tracked(memory(OVERRIDE), request=BREAK)
    found = judge(component, seen(FREE), context())
    assert (found.rule, found.step, found.answer) == ("S7", None, Answer(BREAK))


@pytest.mark.rule("G10", "T4")
@pytest.mark.parametrize(
    ("tags", "add"),
    [
        (NO_TAGS, ProtocolTags(OURS, True, ME)),
        (FREE, ProtocolTags(OURS, True)),
        (MINE, ProtocolTags(reconcile=True)),
        (ProtocolTags(OURS), ProtocolTags(reconcile=True, owner=ME)),
        (ProtocolTags(reconcile=True, owner=ME), ProtocolTags(OURS)),
    ],
)
def test_a_force_push_puts_on_exactly_the_tags_that_are_missing(tags: ProtocolTags, add: ProtocolTags) -> None:
    component = tracked(memory(OVERRIDE), request=PUSH)
    assert judge(component, seen(tags, actual={"size": 2}), context(declared={"size": 3})) == Judgement(
        "G10",
        ASKED_BACK,
        OVERRIDE,
        words.force_pushed(PUSH),
        SIZE,
        Step(Verb.PUSH, "force-push", add=add, request=PUSH),
        in_progress=True,
        answer=Answer(PUSH, acts=True),
    )


@pytest.mark.rule("G10")
def test_a_force_push_of_what_bears_all_tags_writes_none() -> None:
    found = judge(tracked(memory(OVERRIDE), request=PUSH), seen(HANDSHAKE), context())
    assert found == Judgement(
        "G10", ASKED_BACK, OVERRIDE, words.force_pushed(PUSH), in_progress=True, answer=Answer(PUSH, acts=True)
    )


@pytest.mark.rule("O8", "T4")
def test_a_transfer_replaces_the_owner_tag_and_nothing_else() -> None:
    asked = request(RequestKind.TRANSFER, to=OTHER, reason="reorganised")
    owners = context(declared={"size": 3}, claims=Claims(declarers=(ME, OTHER), last_owner=ME))
    assert judge(tracked(memory(), request=asked), seen(MINE, actual={"size": 2}), owners) == Judgement(
        "O8",
        None,
        Stance.MANAGED,
        f"{asked.by} moves it to 'ls-b': writing fractal-cloud-owner (reorganised)",
        SIZE,
        Step(Verb.TRANSFER, "transfer", add=ProtocolTags(owner=OTHER), request=asked),
        in_progress=True,
        answer=Answer(asked, acts=True),
    )
    alone = judge(tracked(memory(), request=asked), seen(MINE), context(claims=Claims(declarers=(ME,), last_owner=ME)))
    assert (alone.rule, alone.step) == ("S12", None)
    assert alone.answer is not None
    assert alone.answer.refusal == "'ls-b' does not declare it, or only imports it: declare it there first"


@pytest.mark.rule("G10")
def test_a_force_push_that_is_refused_leaves_the_table_to_decide() -> None:
    component = tracked(request=PUSH)
    found = judge(component, seen(replace(MINE, owner=OTHER)), context())
    assert (found.rule, found.step) == ("S6", None)
    assert found.answer == Answer(PUSH, refusal="'ls-b' owns it: only its owner can be pushed")
    late = judge(replace(component, request=request(at=NOW - 3 * CYCLE)), seen(FREE), context())
    assert late.answer is not None
    assert late.answer.refusal == "it was not carried out within two cycles: ask once more"


@pytest.mark.rule("G13", "G10")
def test_where_tags_are_frozen_a_request_is_carried_out_by_remembering_it() -> None:
    frozen = context(declared={"size": 3}, traits=FROZEN)
    view = seen(actual={"size": 2})
    component = tracked(request=BREAK)
    answer = Answer(BREAK, acts=True, by_memory=True)
    message = words.explain("S11", component, view, frozen.claims, frozen=True)
    broken = judge(component, view, frozen)
    assert broken == Judgement("G13", MANUAL, OVERRIDE, message, SIZE, carried_out=True, answer=answer)
    going = replace(component, deleting=True)
    assert judge(going, view, frozen) == Judgement(
        "G13", MANUAL, OVERRIDE, message, SIZE, in_progress=True, answer=answer
    )
    pushed = judge(tracked(memory(OVERRIDE), request=PUSH), view, frozen)
    assert pushed == Judgement(
        "G10",
        ASKED_BACK,
        OVERRIDE,
        words.force_pushed(PUSH),
        SIZE,
        in_progress=True,
        answer=Answer(PUSH, acts=True, by_memory=True),
    )


ANSWERED = tracked(memory(OVERRIDE), request=BREAK)


@pytest.mark.rule("G13", "G10")
@pytest.mark.parametrize(
    ("component", "view", "more"),
    [
        (tracked(memory(NONE), request=BREAK), ABSENT, {}),
        (tracked(memory(NONE), request=BREAK), ABSENT, {"rival": OTHER}),
        (tracked(memory(NONE), request=BREAK), found_elsewhere(sighting(name="x")), {}),
        (tracked(memory(NONE), request=BREAK), ABSENT, {"orphan": sighting(name="old")}),
        (tracked(memory(intent=intent(tagging="owed")), request=BREAK), seen(NO_TAGS), {"is_own_creation": True}),
        (ANSWERED, seen(FREE), {}),
    ],
)
def test_a_request_is_answered_whatever_the_table_decides(component: Any, view: View, more: Any) -> None:
    found = judge(component, view, context(**more))
    assert found.answer is not None
    assert found.answer.request is BREAK
    assert not found.answer.acts


@pytest.mark.rule("G10")
@pytest.mark.parametrize(
    ("component", "view", "more"),
    [
        (tracked(request=replace_at), view, more)
        for replace_at in (request(generation=2),)
        for view, more in (
            (seen(actual={"size": 2}), {"declared": {"size": 3}}),
            (seen(CLAIMED), {}),
            (seen(HANDSHAKE), {}),
            (seen(HANDSHAKE, condition=Condition.CHANGING), {}),
            (seen(), {}),
            (View(fitting=(sighting(), sighting(resource_id="id-2"))), {}),
        )
    ],
)
def test_a_void_request_is_answered_whatever_the_table_decides(component: Any, view: View, more: Any) -> None:
    found = judge(component, view, context(**more))
    assert found.answer is not None
    assert found.answer.refusal
    arrived = judge(replace(component, memory=memory(NONE)), view, context(**more))
    assert arrived.answer == found.answer


@pytest.mark.rule("S11a")
def test_what_is_handed_back_by_tag_answers_too() -> None:
    component = tracked(memory(OVERRIDE), readoption_by_tag=True, request=request(generation=2))
    found = judge(component, seen(), context())
    assert found.rule == "S11a"
    assert found.answer is not None


def test_only_what_is_present_is_reconciled() -> None:
    with pytest.raises(AssertionError, match=r"^only what is present is reconciled$"):
        judge(tracked(), ABSENT, context(is_own_creation=None))


# --- deletions

GOING = Status.DELETING


def going(*given: Any, **more: Any) -> Any:
    return tracked(*given, deleting=True, **more)


def ended(rule: str, message: str, stance: Stance = MANAGED, **more: Any) -> Judgement:
    return Judgement(rule, Status.DELETED, stance, message, carried_out=True, finished=True, **more)


def waits(rule: str, message: str, stance: Stance = MANAGED, **more: Any) -> Judgement:
    return Judgement(rule, GOING, stance, message, in_progress=True, **more)


@pytest.mark.rule("O10", "S9", "S11a", "S12")
@pytest.mark.parametrize(
    ("rule", "component", "view"),
    [
        ("S12", going(), seen()),
        ("S9", going(), seen(HANDSHAKE)),
        ("S9", going(memory(OVERRIDE)), seen(HANDSHAKE)),
        ("S11a", going(memory(OVERRIDE), readoption_by_tag=True), seen()),
        ("S12", going(), seen(condition=Condition.BROKEN)),
        ("S12", going(), seen(condition=Condition.CHANGING, is_open=True)),
    ],
)
def test_what_is_ours_is_deleted(rule: str, component: Any, view: View) -> None:
    found = judge(component, view, context())
    assert found == waits(rule, words.deleting(), component.memory.stance, step=Step(Verb.DELETE, "delete"))


@pytest.mark.rule("O10", "S13")
@pytest.mark.parametrize("condition", AT_WORK)
def test_a_deletion_waits_while_the_cloud_is_at_work(condition: Condition) -> None:
    view = seen(condition=condition)
    assert judge(going(), view, context()) == waits("S12", words.at_work(of(view)))
    if condition is Condition.DYING:
        dying = seen(condition=condition, is_open=True)
        assert judge(going(), dying, context()).step is None, "what dies is not deleted once more"


@pytest.mark.rule("O10", "S0", "C8")
def test_what_cannot_be_read_stays_deleting_and_says_whether_a_person_is_needed() -> None:
    for error in (Unreadable("throttled"), AwaitsPerson("renamed"), OtherRealm("another account")):
        found = judge(going(), View(error=error), context(dependents=("sub",), left_dependents=("x",)))
        message = words.deletion_unreadable(going(), error)
        assert found == Judgement("S0", None, MANAGED, message, in_progress=True, stuck=error.needs_person)


@pytest.mark.rule("O17", "S17")
@pytest.mark.parametrize(
    ("component", "view", "more", "expected"),
    [
        (going(), GONE, {}, ended("O10", words.gone(going()))),
        (
            going(memory(NONE, resource_id=None)),
            NEVER,
            {},
            ended("O10", words.gone(going(memory(resource_id=None))), NONE),
        ),
        (going(), ABSENT, {}, waits("O17", words.unproven(going()))),
        (
            going(memory(intent=intent())),
            GONE,
            {"window_over": False},
            waits("S17", words.window(going(memory(intent=intent())))),
        ),
        (going(memory(intent=intent())), GONE, {}, ended("O10", words.gone(going()))),
        (going(memory(intent=intent())), ABSENT, {}, waits("O17", words.unproven(going()))),
        (going(), GONE, {"window_over": False}, ended("O10", words.gone(going()))),
    ],
)
def test_gone_is_proven_and_never_concluded(component: Any, view: View, more: Any, expected: Judgement) -> None:
    assert judge(component, view, context(**more)) == expected


@pytest.mark.rule("C9", "S17", "O10")
def test_what_an_open_intent_of_a_backup_made_is_awaited_before_its_deletion_ends() -> None:
    restored = going(memory(intent=intent(restored=True)))
    assert not judge(restored, GONE, context(window_over=False)).finished
    assert judge(restored, GONE, context(window_over=True)).finished


@pytest.mark.rule("O17", "O3")
def test_what_is_found_under_another_name_is_left_or_dropped_where_it_is_anothers() -> None:
    mine = found_elsewhere(sighting(name="other"))
    assert judge(going(), mine, context()) == ended("O17", words.left(going(), mine, is_bound=True), left=True)
    theirs = found_elsewhere(sighting(replace(MINE, owner=OTHER), name="other"))
    assert judge(going(), theirs, context()) == ended(
        "O17", words.dropped(going(), theirs, frozen=False, taggable=True)
    )


@pytest.mark.rule("O10", "O19")
def test_what_is_let_go_passes_on_that_something_that_was_left_needs_it() -> None:
    theirs = seen(replace(MINE, owner=OTHER))
    dropped = judge(going(), theirs, context(left_dependents=("web",)))
    assert (dropped.finished, dropped.left, dropped.leaves_what_it_needs) == (True, False, True)
    alone = judge(going(), theirs, context())
    assert (alone.finished, alone.left, alone.leaves_what_it_needs) == (True, False, False)
    left = judge(going(), seen(), context(left_dependents=("web",)))
    assert (left.finished, left.left, left.is_needed, left.leaves_what_it_needs) == (True, True, False, True)


@pytest.mark.rule("O3", "O10", "O12", "S14")
@pytest.mark.parametrize(
    ("component", "view", "more", "left"),
    [
        (going(), seen(replace(MINE, owner=OTHER)), {}, False),
        (going(), seen(ProtocolTags(OURS)), {"claims": Claims()}, False),
        (going(memory(OVERRIDE)), seen(ProtocolTags(OURS)), {"claims": Claims()}, True),
        (going(memory(OVERRIDE)), seen(replace(MINE, owner=OTHER)), {}, False),
        (going(import_only=True), seen(), {}, False),
        (going(import_only=True), GONE, {}, False),
        (going(), seen(), {"traits": TypeTraits(taggable=False)}, False),
        (going(), View(fitting=(sighting(), sighting(resource_id="id-2"))), {}, True),
        (going(), View(fitting=(sighting(NO_TAGS), sighting(NO_TAGS, resource_id="id-2"))), {}, False),
        (
            going(memory(OVERRIDE)),
            View(fitting=(sighting(NO_TAGS), sighting(ProtocolTags(owner=OTHER), resource_id="id-2"))),
            {},
            False,
        ),
        (going(), seen(ProtocolTags(owner=ME)), {"traits": FROZEN}, False),
        (going(), seen(NO_TAGS), {"traits": FROZEN}, False),
    ],
)
def test_what_is_not_ours_is_only_dropped(component: Any, view: View, more: Any, left: bool) -> None:
    surroundings = context(**more)
    traits = surroundings.traits
    message = words.dropped(component, view, frozen=traits.tags_frozen, taggable=traits.taggable)
    assert judge(component, view, surroundings) == ended("O3", message, component.memory.stance, left=left)


@pytest.mark.rule("O10", "G1", "S7", "S10", "S11")
@pytest.mark.parametrize(
    ("rule", "component", "view"),
    [
        ("S7", going(), seen(ProtocolTags(owner=ME))),
        ("S7", going(), seen(ProtocolTags("helm", owner=ME))),
        ("S10", going(), seen(ProtocolTags(OURS))),
        ("S11", going(memory(OVERRIDE)), seen()),
    ],
)
def test_what_is_in_override_is_left(rule: str, component: Any, view: View) -> None:
    message = words.left(component, view, is_bound=True)
    assert judge(component, view, context()) == ended(rule, message, component.memory.stance, left=True)


@pytest.mark.rule("O19")
def test_what_is_not_what_the_deletion_is_bound_to_is_left_and_named() -> None:
    component = going(bound=Bound(resource_id="id-0"))
    view = seen()
    assert judge(component, view, context()) == ended("O19", words.left(component, view, is_bound=False), left=True)
    other = going(bound=Bound(resource_id="id-1", incarnation="a"))
    again = seen(incarnation="b")
    assert judge(other, again, context()) == ended("O19", words.left(other, again, is_bound=False), left=True)
    assert judge(going(bound=Bound(resource_id="id-1")), view, context()).step is not None


@pytest.mark.rule("S12a", "O10")
def test_what_just_arrived_is_shown_for_a_cycle_before_it_is_deleted() -> None:
    component = going(memory(NONE))
    message = words.deletion_noticed(component, CYCLE, frozen=False)
    assert judge(component, seen(), context()) == waits("S12a", message, NONE, noticing=True)
    frozen = going(memory(absent_since=NOW))
    message = words.deletion_noticed(frozen, CYCLE, frozen=True)
    assert judge(frozen, seen(), context(traits=FROZEN)) == waits("S12a", message, noticing=True)
    shown = going(memory(NONE, noticed_since=NOW - CYCLE))
    found = judge(shown, seen(), context())
    step = Step(Verb.DELETE, "delete")
    assert found == waits("S12", words.deleting(), NONE, step=step, noticing=True), "it stays shown until it is gone"


@pytest.mark.rule("O18", "O10")
@pytest.mark.parametrize(
    ("rule", "component", "view"),
    [
        ("S12", going(), seen()),
        ("S7", going(), seen(ProtocolTags(owner=ME))),
        ("O3", going(), seen(replace(MINE, owner=OTHER))),
        ("O10", going(), GONE),
        ("S12a", going(memory(NONE)), seen()),
    ],
)
def test_whatever_becomes_of_it_its_dependents_come_first(rule: str, component: Any, view: View) -> None:
    message = words.deletion_waits(("sub", "web"))
    found = judge(component, view, context(dependents=("sub", "web"), left_dependents=("x",)))
    noticing = rule == "S12a"
    stance = component.memory.stance
    assert found == waits(rule, message, stance, waits_for=("sub", "web"), noticing=noticing)


@pytest.mark.rule("O17", "O18")
def test_what_lives_in_something_that_is_gone_is_gone_with_it() -> None:
    within = context(dependents=("pod", "sub"), hosted=("pod",))
    assert judge(going(), GONE, within) == waits("O10", words.deletion_waits(("sub",)), waits_for=("sub",))
    assert judge(going(), GONE, context(dependents=("pod",), hosted=("pod",))) == ended("O10", words.gone(going()))
    assert judge(going(), seen(), within).waits_for == ("pod", "sub")


@pytest.mark.rule("O10")
@pytest.mark.parametrize(("component", "rule"), [(going(), "S12"), (going(memory(NONE)), "S12a")])
def test_what_something_left_depends_on_is_left_too(component: Any, rule: str) -> None:
    view = seen()
    found = judge(component, view, context(left_dependents=("web",)))
    assert found == ended(rule, words.left_for(of(view), ("web",)), component.memory.stance, left=True)
    gone = judge(component, GONE, context(left_dependents=("web",)))
    assert not gone.left


@pytest.mark.rule("G10", "G13", "O10")
def test_a_deletion_answers_what_was_asked_of_it() -> None:
    component = going(request=PUSH)
    refusal = Answer(PUSH, refusal="the component is being deleted")
    for view in (seen(), GONE, ABSENT, seen(ProtocolTags(owner=ME)), seen(replace(MINE, owner=OTHER))):
        found = judge(component, view, context())
        assert found.answer is not None
        assert found.answer.refusal
    assert judge(component, seen(), context()).answer == refusal
    broken = judge(going(request=BREAK), seen(), context())
    assert (broken.rule, broken.step is not None) == ("G13", True), "glass is broken before anything is deleted"
