"""Which events follow from two publications, exactly (C4, O5): in which order, in which words."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.event import EventKind
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.rules.derived_events import DerivedEvent, Published, derive_events

ACTIVE, FAILED, MISSING = Status.ACTIVE, Status.FAILED, Status.MISSING
MUTATING, INSTANTIATING = Status.MUTATING, Status.INSTANTIATING
OVERRIDE = Status.MANUAL_OVERRIDE
SIZE = {"declared": 3, "actual": 2}
TEAM = {"declared": "blue", "actual": "red"}
PEERS = {"declared": ["a"], "actual": []}
SIZE_WORDS = "size: declared 3, actual 2"
BOTH_WORDS = f"{SIZE_WORDS}; team: declared blue, actual red"
NO_LONGER = "; no longer differs"


def state(stance: Stance = Stance.MANAGED, status: Status = ACTIVE, **more: Any) -> Published:
    drift = more.pop("drift", None)
    fields = {"vpcId": "id-1"} | ({"drift": drift} if drift else {})
    values: dict[str, Any] = {"owner": "ls-a", "resource_id": "id-1", "message": "as declared", "output_fields": fields}
    return Published(stance, status, **{**values, **more})


def derived(
    before: Published, after: Published, *, deleting: bool = False, linked: tuple[str, ...] = ()
) -> list[DerivedEvent]:
    return derive_events(before, after, "ls-a", deleting=deleting, linked=linked)


def test_nothing_is_known_of_a_component_before_it_is_said() -> None:
    nothing = Published(Stance.NONE, INSTANTIATING)
    assert nothing == Published(Stance.NONE, INSTANTIATING, "", None, None, {}, False, None, None, False)
    assert nothing.drift is None
    assert DerivedEvent(EventKind.READOPTED) == DerivedEvent(EventKind.READOPTED, "", None, None, None)


@pytest.mark.rule("C4")
def test_nothing_happens_where_nothing_changed() -> None:
    for one in (state(), state(drift={"size": SIZE}), state(Stance.OVERRIDE, OVERRIDE), state(status=MISSING)):
        assert derived(one, one) == []
        assert derived(one, one._replace(message="other words")) == []


@pytest.mark.rule("C4")
def test_a_change_of_status_is_reported_with_both_and_the_message() -> None:
    assert derived(state(), state(status=FAILED, message="quota")) == [
        DerivedEvent(EventKind.STATUS_CHANGED, "quota", "Active", "Failed")
    ]


# --- glass

BROKEN = state(Stance.OVERRIDE, OVERRIDE, message="managed-by is absent")


@pytest.mark.rule("C4", "G13")
@pytest.mark.parametrize("before", [Stance.MANAGED, Stance.NONE])
def test_a_broken_glass_is_reported_with_who_and_why(before: Stance) -> None:
    quiet = state(before, OVERRIDE)
    assert derived(quiet, BROKEN) == [
        DerivedEvent(EventKind.GLASS_BROKEN, "managed-by is absent", before.value, "override", "unknown")
    ]
    named = BROKEN._replace(override_by="jo", override_reason="incident 7")
    assert derived(quiet, named) == [DerivedEvent(EventKind.GLASS_BROKEN, "incident 7", before.value, "override", "jo")]


@pytest.mark.rule("C4")
@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (state(Stance.OVERRIDE, OVERRIDE), BROKEN, "it was broken already"),
        (state(Stance.IMPORTED, OVERRIDE), BROKEN, "it was never the agent's"),
        (state(status=Status.RECONCILE_REQUESTED), BROKEN._replace(status=Status.RECONCILE_REQUESTED), "S9 passes it"),
        (state(status=OVERRIDE), BROKEN._replace(is_absent=True, owner=None, resource_id=None), "it is gone"),
    ],
)
def test_no_glass_is_reported_as_broken_that_was_not_broken_now(
    before: Published, after: Published, reason: str
) -> None:
    kinds = [event.kind for event in derived(before, after)]
    assert EventKind.GLASS_BROKEN not in kinds, reason


@pytest.mark.rule("C4")
def test_a_re_adoption_is_reported_once_it_is_managed() -> None:
    after = state(message="in step")
    assert derived(state(Stance.OVERRIDE), after) == [
        DerivedEvent(EventKind.READOPTED, "in step", "override", "managed")
    ]
    for before in (Stance.NONE, Stance.IMPORTED, Stance.MANAGED):
        assert derived(state(before), after) == []
    assert derived(state(Stance.OVERRIDE), state(Stance.IMPORTED)) == []


# --- owners


@pytest.mark.rule("C4", "O8")
@pytest.mark.parametrize(
    ("was", "is_now", "text"),
    [
        ("ls-a", "ls-b", "owner of id-1 was 'ls-a', is 'ls-b'"),
        ("ls-a", None, "owner of id-1 was 'ls-a', is nobody"),
        (None, "ls-b", "owner of id-1 was nobody, is 'ls-b'"),
    ],
)
def test_ownership_that_moved_is_reported_with_both(was: str | None, is_now: str | None, text: str) -> None:
    events = derived(state(owner=was), state(owner=is_now))
    assert events == [DerivedEvent(EventKind.OWNER_CHANGED, text, was, is_now, "unknown")]


@pytest.mark.rule("C4")
def test_what_was_just_created_for_its_owner_was_nobodys_before() -> None:
    created = state(status=INSTANTIATING, owner=None, is_being_created=True)
    assert derived(created, state(status=INSTANTIATING)) == []
    [moved] = derived(created, state(status=INSTANTIATING, owner="ls-b"))
    assert (moved.kind, moved.after) == (EventKind.OWNER_CHANGED, "ls-b")


@pytest.mark.rule("C4", "O8")
def test_another_resource_has_another_owner_and_that_is_no_move() -> None:
    assert derived(state(owner="ls-a"), state(owner="ls-b", resource_id="id-2")) == []
    assert derived(state(owner=None, resource_id=None), state(owner="ls-b", resource_id=None)) == []


# --- losses


@pytest.mark.rule("C4", "O5", "O6")
def test_what_is_missing_is_reported_as_lost_also_to_an_importer() -> None:
    before = state(Stance.IMPORTED, Status.EXTERNALLY_MANAGED, owner="ls-b")
    after = state(Stance.IMPORTED, MISSING, owner="ls-b", message="it is gone", is_absent=True)
    assert derived(before, after) == [
        DerivedEvent(EventKind.STATUS_CHANGED, "it is gone", "ExternallyManaged", "Missing"),
        DerivedEvent(EventKind.RESOURCE_LOST, "it is gone", "id-1", None, "unknown"),
    ]


@pytest.mark.rule("C4")
@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (state(), state(is_absent=True), True),
        (state(status=MISSING), state(status=MISSING, is_absent=True), True),
        (state(is_absent=True), state(is_absent=True), False),
        (state(owner="ls-b"), state(owner="ls-b", is_absent=True), False),
        (state(resource_id=None), state(resource_id=None, is_absent=True), False),
        (state(resource_id=None), state(resource_id=None, status=MISSING), False),
        (state(owner="ls-b", status=MISSING), state(owner="ls-b", status=MISSING, is_absent=True), False),
        (state(is_absent=True), state(is_absent=True, status=MISSING), True),
        (state(), state(), False),
    ],
)
def test_only_what_was_there_and_ours_or_missed_is_lost(before: Published, after: Published, lost: bool) -> None:
    found = [event for event in derived(before, after) if event.kind is EventKind.RESOURCE_LOST]
    expected = DerivedEvent(EventKind.RESOURCE_LOST, "as declared", "id-1", None, "unknown")
    assert found == ([expected] if lost else [])
    assert EventKind.RESOURCE_LOST not in [event.kind for event in derived(before, after, deleting=True)]


@pytest.mark.rule("C4")
def test_a_loss_without_words_names_what_is_gone() -> None:
    (event,) = derived(state(), state(is_absent=True, message=""))
    assert event == DerivedEvent(EventKind.RESOURCE_LOST, "id-1 is gone", "id-1", None, "unknown")


# --- differences


@pytest.mark.rule("C4")
def test_drift_is_found_and_corrected_with_the_values() -> None:
    both = {"size": SIZE, "team": TEAM}
    assert derived(state(), state(drift=both)) == [DerivedEvent(EventKind.DRIFT_FOUND, BOTH_WORDS, None, both)]
    one = {"size": SIZE}
    assert derived(state(drift=both), state(drift=one)) == [DerivedEvent(EventKind.DRIFT_FOUND, SIZE_WORDS, both, one)]
    assert derived(state(drift=both), state()) == [
        DerivedEvent(EventKind.DRIFT_CORRECTED, BOTH_WORDS + NO_LONGER, both, None)
    ]


@pytest.mark.rule("C4", "O5")
@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (state(Stance.IMPORTED), state(Stance.IMPORTED, drift={"size": SIZE}), "an importer's difference is no event"),
        (
            state(status=INSTANTIATING),
            state(status=INSTANTIATING, drift={"size": SIZE}),
            "what a creation still has to set",
        ),
        (
            state(status=Status.RECONCILE_REQUESTED),
            state(status=Status.RECONCILE_REQUESTED, drift={"size": SIZE}),
            "what the handshake brings back",
        ),
        (
            state(status=MUTATING, drift={"size": SIZE}),
            state(status=MUTATING, drift={"team": TEAM}),
            "what the agent's own work passes by",
        ),
        (state(status=INSTANTIATING, drift={"size": SIZE}), state(status=INSTANTIATING), "a creation that is done"),
        (
            state(Stance.OVERRIDE, OVERRIDE, drift={"size": SIZE}),
            state(Stance.OVERRIDE, OVERRIDE, is_absent=True, owner=None),
            "it went with its resource",
        ),
    ],
)
def test_some_differences_are_nobodys_news(before: Published, after: Published, reason: str) -> None:
    kinds = {event.kind for event in derived(before, after)}
    assert not kinds & {EventKind.DRIFT_FOUND, EventKind.DRIFT_CORRECTED}, reason


@pytest.mark.rule("C4")
@pytest.mark.parametrize(("before", "after"), [(MUTATING, ACTIVE), (ACTIVE, MUTATING), (INSTANTIATING, ACTIVE)])
def test_a_difference_found_when_work_begins_or_ends_is_news(before: Status, after: Status) -> None:
    events = derived(state(status=before), state(status=after, drift={"size": SIZE}))
    assert events[-1] == DerivedEvent(EventKind.DRIFT_FOUND, SIZE_WORDS, None, {"size": SIZE})


@pytest.mark.rule("C4")
def test_what_was_corrected_while_mutating_is_news() -> None:
    events = derived(state(status=MUTATING, drift={"size": SIZE}), state(status=MUTATING))
    assert events == [DerivedEvent(EventKind.DRIFT_CORRECTED, SIZE_WORDS + NO_LONGER, {"size": SIZE}, None)]


@pytest.mark.rule("C4", "L17")
def test_what_links_set_is_distinguished_from_what_is_declared() -> None:
    both = {"size": SIZE, "peers": PEERS}
    assert derived(state(), state(drift=both), linked=("peers",)) == [
        DerivedEvent(EventKind.DRIFT_FOUND, SIZE_WORDS, None, {"size": SIZE}),
        DerivedEvent(EventKind.LINK_CHANGE_FOUND, "to be written: peers: + a", None, {"peers": PEERS}),
    ]
    assert derived(state(drift=both), state(), linked=("peers",)) == [
        DerivedEvent(EventKind.DRIFT_CORRECTED, SIZE_WORDS + NO_LONGER, {"size": SIZE}, None),
        DerivedEvent(EventKind.LINK_CHANGE_APPLIED, "written: peers: + a", {"peers": PEERS}, None),
    ]
    assert derived(state(), state(drift={"peers": PEERS}), linked=("peers",)) == [
        DerivedEvent(EventKind.LINK_CHANGE_FOUND, "to be written: peers: + a", None, {"peers": PEERS})
    ]
    assert derived(state(), state(drift=both)) == [
        DerivedEvent(EventKind.DRIFT_FOUND, f"peers: - a; {SIZE_WORDS}", None, both)
    ]


@pytest.mark.rule("C4")
def test_events_come_in_the_order_in_which_a_reader_wants_them() -> None:
    after = state(Stance.OVERRIDE, OVERRIDE, owner="ls-b", drift={"size": SIZE})
    assert [event.kind for event in derived(state(), after)] == [
        EventKind.STATUS_CHANGED,
        EventKind.GLASS_BROKEN,
        EventKind.OWNER_CHANGED,
        EventKind.DRIFT_FOUND,
    ]
