"""From a read of the cloud and a memory to a situation: each fact by itself, and every pick there is (S14, O2)."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest

from fractal_cloud.model.errors import Unreadable
from fractal_cloud.model.observed import Override
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.situation import Manager, Party, Presence, Situation, Trace
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tags import NO_TAGS, OURS, ProtocolTags
from fractal_cloud.model.wire import Bound
from fractal_cloud.rules.situate import (
    ABSENT,
    GONE,
    NEVER,
    Claims,
    TypeTraits,
    View,
    found_elsewhere,
    is_bound_to,
    is_handed_back,
    manager,
    party,
    pick,
    situate,
)
from tests.direct.things import CYCLE, ME, MINE, NOW, OTHER, SECOND, intent, memory, sighting, tracked

ERROR = Unreadable("throttled")


@pytest.mark.rule("S0", "S14")
def test_a_view_in_one_word_and_an_error_hides_all_else() -> None:
    one = sighting()
    assert View() == ABSENT
    assert View().presence is Presence.ABSENT
    assert View(sighting=one).presence is Presence.PRESENT
    assert View(fitting=(one, one)).presence is Presence.SEVERAL
    for view in (View(error=ERROR), View(one, error=ERROR), View(fitting=(one,), error=ERROR)):
        assert view.presence is Presence.UNREADABLE


# --- pick: all triples of what can carry a name at the same time

TAGS = (NO_TAGS, ProtocolTags(OURS), MINE, ProtocolTags(owner=ME), ProtocolTags(OURS, owner=OTHER))
KINDS = [
    *(sighting(tags) for tags in (*TAGS, ProtocolTags("terraform", owner=OTHER), ProtocolTags(owner=OTHER))),
    sighting(MINE, condition=Condition.DYING),
    sighting(NO_TAGS, condition=Condition.CREATING),
]


def _picked(fitting: list[Sighting]) -> View:
    """S14 once more: the one I own; else the one with managed-by and an owner; else all. The dying give way."""
    candidates = [one for one in fitting if one.condition is not Condition.DYING]
    candidates = candidates or fitting
    if not candidates:
        return View()
    if len(candidates) == 1:
        return View(sighting=candidates[0])
    owned_by_me = [one for one in candidates if one.protocol.owner == ME]
    if len(owned_by_me) == 1:
        return View(sighting=owned_by_me[0])
    proper = [one for one in candidates if one.protocol.managed_by == OURS and one.protocol.owner]
    return View(sighting=proper[0]) if len(proper) == 1 else View(fitting=tuple(candidates))


@pytest.mark.rule("S14")
def test_of_all_that_bear_a_name_the_right_one_is_picked() -> None:
    for size in range(4):
        for chosen in itertools.product(KINDS, repeat=size):
            fitting = [replace(one, resource_id=f"id-{index}") for index, one in enumerate(chosen)]
            assert pick(ME, fitting) == _picked(fitting), [one.protocol for one in fitting]


@pytest.mark.rule("S14")
@pytest.mark.parametrize(
    ("tags", "chosen", "reason"),
    [
        ((MINE, NO_TAGS), 0, "the one this LiveSystem owns"),
        ((ProtocolTags(owner=ME), ProtocolTags(OURS, owner=OTHER)), 0, "mine comes before anybody's, also in override"),
        ((ProtocolTags(OURS, owner=OTHER), ProtocolTags(owner=OTHER)), 0, "an owner tag alone is not enough"),
        ((ProtocolTags(OURS, owner=OTHER), ProtocolTags("terraform", owner=OTHER)), 0, "nor with another manager"),
        ((ProtocolTags(OURS), ProtocolTags(OURS, owner=OTHER)), 1, "nor managed-by without an owner"),
        ((MINE, MINE), None, "two of mine: nothing is touched"),
        ((ProtocolTags(OURS, owner=OTHER), ProtocolTags(OURS, owner="ls-c")), None, "two with owners"),
        ((NO_TAGS, ProtocolTags(owner=OTHER)), None, "nobody's, and one without managed-by"),
        ((ProtocolTags(owner=OTHER), ProtocolTags(owner="ls-c")), None, "managed-by is asked for"),
    ],
)
def test_which_of_two_is_meant(tags: tuple[ProtocolTags, ...], chosen: int | None, reason: str) -> None:
    fitting = [sighting(each, resource_id=f"id-{index}") for index, each in enumerate(tags)]
    expected = View(fitting=tuple(fitting)) if chosen is None else View(sighting=fitting[chosen])
    assert pick(ME, fitting) == expected, reason


@pytest.mark.rule("S13", "S14")
def test_the_dying_give_way_to_the_living_and_count_where_nothing_lives() -> None:
    dying = sighting(MINE, condition=Condition.DYING)
    living = sighting(NO_TAGS, resource_id="id-2")
    assert pick(ME, [dying, living]) == View(sighting=living)
    assert pick(ME, [dying]) == View(sighting=dying)
    again = replace(dying, resource_id="id-3")
    assert pick(ME, [dying, again]) == View(fitting=(dying, again))
    assert pick(ME, []) == ABSENT


# --- claims


@pytest.mark.rule("O1", "O2", "S8", "S8a", "S3")
@pytest.mark.parametrize(
    ("declarers", "last", "heir", "claimant"),
    [
        ((), None, Party.NOBODY, Party.NOBODY),
        ((ME,), None, Party.NOBODY, Party.ME),
        ((OTHER,), None, Party.NOBODY, Party.OTHER),
        ((ME, OTHER), None, Party.NOBODY, Party.CONTESTED),
        ((), ME, Party.NOBODY, Party.NOBODY),
        ((), OTHER, Party.NOBODY, Party.NOBODY),
        ((ME,), ME, Party.ME, Party.ME),
        ((ME,), OTHER, Party.NOBODY, Party.ME),
        ((OTHER,), ME, Party.NOBODY, Party.OTHER),
        ((ME, OTHER), ME, Party.ME, Party.ME),
        ((ME, OTHER), OTHER, Party.OTHER, Party.OTHER),
        ((ME, OTHER), "ls-c", Party.NOBODY, Party.CONTESTED),
        ((OTHER, "ls-c"), None, Party.NOBODY, Party.CONTESTED),
    ],
)
def test_the_heir_is_the_last_owner_that_still_declares_and_without_one_the_only_declarer_claims(
    declarers: tuple[str, ...], last: str | None, heir: Party, claimant: Party
) -> None:
    claims = Claims(frozenset(declarers), last)
    assert claims.heir == (last if heir is not Party.NOBODY else None)
    assert claims.heir_as_seen_by(ME) is heir
    assert claims.claimant_as_seen_by(ME) is claimant


def test_claims_are_nobodys_unless_said_otherwise() -> None:
    assert Claims() == Claims((), None)
    assert Claims().claimant_as_seen_by(ME) is Party.NOBODY


def test_a_name_is_nobody_me_or_another() -> None:
    assert [party(name, ME) for name in (None, ME, OTHER, "")] == [Party.NOBODY, Party.ME, Party.OTHER, Party.OTHER]


@pytest.mark.rule("T7")
@pytest.mark.parametrize(
    ("managed_by", "found"),
    [
        (None, Manager.NOBODY),
        (OURS, Manager.OURS),
        ("terraform", Manager.OTHER),
        ("Fractal-Cloud", Manager.OTHER),
        ("", Manager.OTHER),
    ],
)
def test_managed_by_is_ours_to_the_letter(managed_by: str | None, found: Manager) -> None:
    assert manager(ProtocolTags(managed_by)) is found


# --- situate


def _situation(**more: Any) -> Situation:
    """The situation of a managed component whose resource is there, ours, and as declared."""
    values: dict[str, Any] = {
        "presence": Presence.PRESENT,
        "manager": Manager.OURS,
        "owner": Party.ME,
        "heir": Party.ME,
        "claimant": Party.ME,
        "stance": Stance.MANAGED,
        **more,
    }
    return Situation(**values)


CLAIMS = Claims(frozenset({ME}), ME)
SEEN = View(sighting=sighting())
PLAIN = TypeTraits()
FROZEN = TypeTraits(tags_frozen=True)
ABSENCE = memory(absent_since=NOW - timedelta(hours=2))


@pytest.mark.parametrize(
    ("component", "view", "claims", "traits", "expected"),
    [
        (tracked(), SEEN, CLAIMS, PLAIN, {}),
        (tracked(import_only=True), SEEN, CLAIMS, PLAIN, {"untouchable": True}),
        (tracked(), SEEN, CLAIMS, TypeTraits(taggable=False), {"untouchable": True}),
        (tracked(), SEEN, CLAIMS, TypeTraits(holds_data=True), {"holds_data": True}),
        (tracked(readoption_by_tag=True), SEEN, CLAIMS, PLAIN, {"readoption_by_tag": True}),
        (tracked(memory(Stance.OVERRIDE)), SEEN, CLAIMS, PLAIN, {"stance": Stance.OVERRIDE}),
        (tracked(memory(intent=intent())), SEEN, CLAIMS, PLAIN, {"intent_open": True}),
        (
            tracked(),
            ABSENT,
            CLAIMS,
            PLAIN,
            {"presence": Presence.ABSENT, "manager": Manager.NOBODY, "owner": Party.NOBODY},
        ),
        (
            tracked(),
            View(error=ERROR),
            CLAIMS,
            PLAIN,
            {"presence": Presence.UNREADABLE, "manager": Manager.NOBODY, "owner": Party.NOBODY},
        ),
        (
            tracked(),
            View(sighting=sighting(ProtocolTags("terraform", True, OTHER))),
            Claims(frozenset({ME, OTHER}), OTHER),
            PLAIN,
            {
                "manager": Manager.OTHER,
                "reconcile": True,
                "owner": Party.OTHER,
                "heir": Party.OTHER,
                "claimant": Party.OTHER,
            },
        ),
        (
            tracked(),
            SEEN,
            Claims(frozenset({ME, OTHER})),
            PLAIN,
            {"heir": Party.NOBODY, "claimant": Party.CONTESTED},
        ),
        (tracked(ABSENCE), SEEN, CLAIMS, PLAIN, {"was_absent": True, "redeployed": True}),
        (tracked(ABSENCE, deployed_at=NOW - timedelta(hours=3)), SEEN, CLAIMS, PLAIN, {"was_absent": True}),
        (tracked(ABSENCE, deployed_at=NOW - timedelta(hours=2)), SEEN, CLAIMS, PLAIN, {"was_absent": True}),
        (tracked(memory(noticed_since=NOW)), SEEN, CLAIMS, PLAIN, {"was_absent": True}),
        (tracked(memory(restored=True)), SEEN, CLAIMS, PLAIN, {"was_absent": True}),
        (tracked(memory(intent=intent(restored=True))), SEEN, CLAIMS, PLAIN, {}),
        (
            tracked(memory(restored=True)),
            SEEN,
            CLAIMS,
            FROZEN,
            {"was_absent": True, "tags_frozen": True, "stance": Stance.NONE},
        ),
        (
            tracked(memory(Stance.OVERRIDE, restored=True)),
            SEEN,
            CLAIMS,
            FROZEN,
            {"was_absent": True, "tags_frozen": True, "stance": Stance.OVERRIDE},
        ),
        (
            tracked(memory(restored=True)),
            ABSENT,
            CLAIMS,
            FROZEN,
            {
                "presence": Presence.ABSENT,
                "manager": Manager.NOBODY,
                "owner": Party.NOBODY,
                "was_absent": True,
                "tags_frozen": True,
            },
        ),
        (tracked(), SEEN, CLAIMS, FROZEN, {"tags_frozen": True}),
        (
            tracked(),
            View(sighting=sighting(ProtocolTags(OURS, True, ME))),
            CLAIMS,
            FROZEN,
            {"tags_frozen": True},
        ),
    ],
)
def test_each_fact_of_a_situation_comes_from_where_it_stands(
    component: Any, view: View, claims: Claims, traits: TypeTraits, expected: dict[str, Any]
) -> None:
    found = situate(component, view, claims, traits, drifted=False, now=NOW, cycle=CYCLE)
    assert asdict(found) == asdict(_situation(**expected))


def test_drift_is_reported_as_it_was_found() -> None:
    for drifted in (False, True):
        found = situate(tracked(), SEEN, CLAIMS, PLAIN, drifted=drifted, now=NOW, cycle=CYCLE)
        assert found.drifted is drifted


@pytest.mark.rule("S12a")
@pytest.mark.parametrize(
    ("ago", "is_noticed"),
    [(timedelta(), False), (CYCLE - SECOND, False), (CYCLE, True), (CYCLE + SECOND, True), (-SECOND, False)],
)
def test_notice_lasts_one_whole_settled_cycle(ago: timedelta, is_noticed: bool) -> None:
    component = tracked(memory(noticed_since=NOW - ago))
    found = situate(component, SEEN, CLAIMS, PLAIN, drifted=True, now=NOW, cycle=CYCLE)
    assert found.noticed is is_noticed
    assert found.was_absent, "who is being shown came from somewhere, until the notice is over"


# --- handed back through the product, where tags are frozen

GIVEN_BACK = memory(Stance.OVERRIDE, override=Override(since=NOW, readopted_by="jo"))


@pytest.mark.rule("G13", "S9")
@pytest.mark.parametrize(
    ("component", "view", "expected", "reason"),
    [
        (tracked(GIVEN_BACK), SEEN, True, "the very resource that is seen"),
        (tracked(replace(GIVEN_BACK, override=None)), SEEN, False, "nothing is remembered"),
        (tracked(replace(GIVEN_BACK, override=Override(since=NOW))), SEEN, False, "nobody asked for it"),
        (tracked(GIVEN_BACK), ABSENT, False, "it is gone"),
        (tracked(GIVEN_BACK), View(sighting=sighting(resource_id="id-2")), False, "it is another one"),
        (tracked(replace(GIVEN_BACK, stance=Stance.MANAGED)), SEEN, False, "it is managed already"),
    ],
)
def test_what_was_handed_back_by_memory_counts_for_that_resource_only(
    component: Any, view: View, expected: bool, reason: str
) -> None:
    assert is_handed_back(component, view) is expected, reason
    found = situate(component, view, CLAIMS, FROZEN, drifted=False, now=NOW, cycle=CYCLE)
    assert found.reconcile is expected, reason
    plain = situate(component, view, CLAIMS, PLAIN, drifted=False, now=NOW, cycle=CYCLE)
    assert plain.reconcile is False, "where tags can be changed, the tag alone says it"


# --- where a name finds nothing


@pytest.mark.rule("O17", "S19")
def test_what_is_not_there_leaves_a_trace() -> None:
    assert (ABSENT.trace, NEVER.trace, GONE.trace) == (Trace.UNKNOWN, Trace.NEVER, Trace.GONE)
    other = sighting(name="other")
    assert found_elsewhere(other) == View(trace=Trace.ELSEWHERE, elsewhere=other)
    for view in (ABSENT, NEVER, GONE, found_elsewhere(other)):
        assert view.presence is Presence.ABSENT


@pytest.mark.rule("O17")
def test_the_tags_of_what_was_found_elsewhere_say_whose_it_is() -> None:
    view = found_elsewhere(sighting(ProtocolTags("terraform", True, OTHER)))
    found = situate(tracked(), view, CLAIMS, PLAIN, drifted=False, now=NOW, cycle=CYCLE)
    expected = _situation(presence=Presence.ABSENT, manager=Manager.OTHER, reconcile=True, owner=Party.OTHER)
    assert asdict(found) == asdict(expected)


@pytest.mark.rule("O19")
@pytest.mark.parametrize(
    ("component", "seen", "expected", "reason"),
    [
        (tracked(bound=Bound(resource_id="id-1")), {}, True, "the one that was published"),
        (tracked(bound=Bound(resource_id="id-0")), {}, False, "another one"),
        (tracked(memory(resource_id="id-1"), bound=Bound(resource_id="id-0")), {}, False, "whatever was seen since"),
        (tracked(bound=Bound(resource_id="id-1", incarnation="a")), {"incarnation": "a"}, True, "the same"),
        (tracked(bound=Bound(resource_id="id-1", incarnation="a")), {"incarnation": "b"}, False, "a later one"),
        (tracked(bound=Bound(resource_id="id-1", incarnation="a")), {}, True, "only two of them differ"),
        (tracked(bound=Bound(resource_id="id-1")), {"incarnation": "b"}, True, "only two of them differ"),
        (tracked(memory(intent=intent())), {}, True, "what the own creation makes"),
        (tracked(memory(intent=intent(resource_id="id-1"))), {}, True, "what the own creation made"),
        (tracked(memory(intent=intent(resource_id="id-9"))), {}, False, "not what it made"),
        (tracked(memory(resource_id="id-9", intent=intent())), {}, True, "an open creation comes first"),
        (tracked(memory(resource_id=None)), {}, True, "the first one seen"),
        (tracked(memory(resource_id="id-1")), {}, True, "the first one seen, again"),
        (tracked(memory(resource_id="id-2")), {}, False, "not another one after it"),
        (tracked(memory(incarnation="a")), {"incarnation": "b"}, False, "nor a later one of its id"),
        (tracked(memory(incarnation="a")), {"incarnation": "a"}, True, "the very same"),
    ],
)
def test_a_deletion_is_bound_to_one_resource(component: Any, seen: Any, expected: bool, reason: str) -> None:
    assert is_bound_to(component, sighting(**seen)) is expected, reason
