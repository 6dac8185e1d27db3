"""What becomes of an operator's request: the whole answer, each refusal to the letter, each limit to the second."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from fractal_cloud.model.errors import Unreadable
from fractal_cloud.model.observed import Override
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tags import NO_TAGS, OURS, ProtocolTags
from fractal_cloud.model.wire import OperatorRequest, RequestKind
from fractal_cloud.rules.requests import Answer, answer_request
from fractal_cloud.rules.situate import ABSENT, TypeTraits, View
from tests.direct.things import CYCLE, ME, MINE, NOW, OTHER, SECOND, TYPE, memory, request, sighting, tracked

FREE = ProtocolTags(owner=ME)
PUSH, BREAK = request(), request(RequestKind.BREAK)
PLAIN, FROZEN, UNTAGGABLE = TypeTraits(), TypeTraits(tags_frozen=True), TypeTraits(taggable=False)
LET_GO = memory(Stance.OVERRIDE, override=Override(since=NOW - timedelta(minutes=5)))


def seen(tags: ProtocolTags = FREE, **more: Any) -> View:
    return View(sighting=sighting(tags, **more))


def answer(component: Any, view: View, traits: TypeTraits = PLAIN) -> Answer | None:
    return answer_request(component, view, traits, now=NOW, cycle=CYCLE)


@pytest.mark.rule("G10", "S0")
def test_without_a_request_or_a_reading_there_is_no_answer() -> None:
    assert answer(tracked(LET_GO), seen()) is None
    for asked in (PUSH, BREAK):
        assert answer(tracked(LET_GO, request=asked), View(error=Unreadable("throttled"))) is None


@pytest.mark.rule("G10", "G13")
@pytest.mark.parametrize(
    ("asked", "remembered", "view", "traits", "expected"),
    [
        (PUSH, LET_GO, seen(), PLAIN, Answer(PUSH, acts=True)),
        (PUSH, LET_GO, seen(NO_TAGS), PLAIN, Answer(PUSH, acts=True)),
        (PUSH, memory(), seen(MINE), PLAIN, Answer(PUSH, acts=True)),
        (PUSH, LET_GO, seen(MINE), FROZEN, Answer(PUSH, acts=True, by_memory=True)),
        (PUSH, memory(Stance.NONE), seen(MINE), FROZEN, Answer(PUSH, acts=True, by_memory=True)),
        (PUSH, memory(), seen(MINE), FROZEN, Answer(PUSH, acts=False, by_memory=True)),
        (BREAK, memory(), seen(MINE), PLAIN, Answer(BREAK, acts=True)),
        (BREAK, memory(), seen(FREE), PLAIN, Answer(BREAK, acts=False)),
        (BREAK, memory(), seen(ProtocolTags("helm", owner=ME)), PLAIN, Answer(BREAK, acts=False)),
        (BREAK, memory(), seen(MINE), FROZEN, Answer(BREAK, acts=True, by_memory=True)),
    ],
)
def test_what_can_be_carried_out_is(asked: Any, remembered: Any, view: View, traits: TypeTraits, expected: Any) -> None:
    assert answer(tracked(remembered, request=asked), view, traits) == expected


TWO = View(fitting=(sighting(), sighting(resource_id="id-2")))


@pytest.mark.rule("G10", "G13", "T7", "S6", "O12", "S14")
@pytest.mark.parametrize("asked", [PUSH, BREAK])
@pytest.mark.parametrize(
    ("more", "view", "traits", "refusal"),
    [
        ({}, ABSENT, UNTAGGABLE, f"{TYPE} cannot carry tags: it is only ever read"),
        (
            {"import_only": True},
            ABSENT,
            PLAIN,
            "the component is importOnly: take importOnly out of its declaration first",
        ),
        ({}, TWO, PLAIN, "several resources are named 'web' (id-1, id-2): rename all but one"),
        ({}, ABSENT, PLAIN, "the resource is absent: only a deploy creates it"),
        ({}, seen(ProtocolTags(OURS, owner=OTHER)), PLAIN, "'ls-b' owns it: only its owner can be pushed"),
        ({}, seen(FREE), FROZEN, "its tags are frozen and not ours: it can never be adopted, and is only read"),
        (
            {},
            seen(ProtocolTags(OURS)),
            FROZEN,
            "its tags are frozen and not ours: it can never be adopted, and is only read",
        ),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_the_reason(
    asked: Any, more: Any, view: View, traits: TypeTraits, refusal: str
) -> None:
    found = answer(tracked(LET_GO, request=asked, **more), view, traits)
    assert found == Answer(asked, refusal=refusal)
    assert found is not None
    assert found.is_used_up


@pytest.mark.rule("G10", "T7")
def test_another_manager_is_in_the_way_of_a_force_push_only() -> None:
    view = seen(ProtocolTags("helm", owner=ME))
    refusal = "managed-by says 'helm': remove that tag first, if the resource is yours to take"
    assert answer(tracked(LET_GO, request=PUSH), view) == Answer(PUSH, refusal=refusal)
    assert answer(tracked(LET_GO, request=BREAK), view) == Answer(BREAK)


@pytest.mark.rule("G10")
@pytest.mark.parametrize(
    ("asked", "more", "remembered", "refusal"),
    [
        (PUSH, {"deleting": True}, LET_GO, "the component is being deleted"),
        (request(generation=2), {}, LET_GO, "the LiveSystem was deployed again since: ask once more"),
        (request(generation=4), {}, LET_GO, "the LiveSystem was deployed again since: ask once more"),
        (
            request(resource_id="id-0"),
            {},
            LET_GO,
            "it was asked for id-0, but the name now finds id-1: ask once more",
        ),
        (
            request(at=NOW - 2 * CYCLE - 11 * SECOND),
            {},
            memory(Stance.OVERRIDE, override=Override(since=NOW - timedelta(hours=1))),
            "it was not carried out within two cycles: ask once more",
        ),
        (
            PUSH,
            {},
            memory(Stance.OVERRIDE, override=Override(since=NOW - 59 * SECOND)),
            "managed-by was removed after it was asked for: somebody took the resource over; ask once more",
        ),
        (
            request(stance=Stance.MANAGED),
            {},
            memory(),
            "managed-by was removed after it was asked for: somebody took the resource over; ask once more",
        ),
    ],
)
def test_a_force_push_becomes_void(asked: Any, more: Any, remembered: Any, refusal: str) -> None:
    assert answer(tracked(remembered, request=asked, **more), seen()) == Answer(asked, refusal=refusal)


@pytest.mark.rule("G10")
@pytest.mark.parametrize(
    ("asked", "remembered", "tags"),
    [
        (request(resource_id=None), LET_GO, FREE),
        (request(at=NOW - 2 * CYCLE - 10 * SECOND), replace(LET_GO, override=Override(since=NOW - timedelta(1))), FREE),
        (PUSH, memory(Stance.OVERRIDE, override=Override(since=NOW - 60 * SECOND)), FREE),
        (request(stance=Stance.MANAGED), memory(), MINE),
        (PUSH, memory(Stance.OVERRIDE, override=Override(since=NOW)), MINE),
        (request(stance=Stance.IMPORTED), memory(Stance.IMPORTED), FREE),
        (request(stance=Stance.NONE), memory(Stance.NONE), FREE),
        (request(stance=Stance.OVERRIDE), memory(Stance.NONE, override=Override(since=NOW)), FREE),
        (request(stance=Stance.OVERRIDE), memory(Stance.OVERRIDE), FREE),
    ],
)
def test_a_force_push_is_good_up_to_its_limits(asked: Any, remembered: Any, tags: ProtocolTags) -> None:
    assert answer(tracked(remembered, request=asked), seen(tags)) == Answer(asked, acts=True)


@pytest.mark.rule("G13")
def test_a_broken_glass_has_no_limit() -> None:
    old = request(RequestKind.BREAK, generation=1, resource_id="id-0", at=NOW - timedelta(days=9))
    assert answer(tracked(request=old, deleting=True), seen(MINE)) == Answer(old, acts=True)


@pytest.mark.rule("S17", "G10", "G13")
@pytest.mark.parametrize(
    ("given", "used_up"),
    [
        (Answer(PUSH, acts=True), True),
        (Answer(PUSH, refusal="no"), True),
        (Answer(PUSH, by_memory=True), True),
        (Answer(BREAK, acts=True), False),
        (Answer(BREAK), True),
        (Answer(BREAK, refusal="no"), True),
        (Answer(BREAK, acts=True, by_memory=True), True),
    ],
)
def test_a_request_is_used_up_by_acting_but_broken_glass_only_when_nothing_is_left(
    given: Answer, used_up: bool
) -> None:
    assert given.is_used_up is used_up
    assert given.breaks_glass is (given.request is BREAK)


def test_an_answer_says_nothing_by_default() -> None:
    assert Answer(PUSH) == Answer(PUSH, acts=False, refusal="", by_memory=False)


# --- a transfer (O8)

MOVE = request(RequestKind.TRANSFER, to=OTHER, resource_id="id-1")


def replace_at(asked: OperatorRequest, at: datetime) -> OperatorRequest:
    return asked.model_copy(update={"at": at})


FIXED_OWNER = TypeTraits(owner_moves=False)


def moving(
    component: Any, view: View, traits: TypeTraits = PLAIN, declarers: tuple[str, ...] = (ME, OTHER)
) -> Answer | None:
    return answer_request(component, view, traits, now=NOW, cycle=CYCLE, declarers=declarers)


@pytest.mark.rule("O8", "S17")
def test_a_transfer_is_carried_out_while_the_owner_is_still_the_one_it_was_asked_of() -> None:
    found = moving(tracked(memory(), request=MOVE), seen(MINE))
    assert found == Answer(MOVE, acts=True)
    assert found.moves_owner
    assert found.is_used_up, "by its intent, so at most once"
    assert moving(tracked(memory(), request=MOVE, deleting=True), seen(MINE)) == Answer(MOVE, acts=True)
    assert moving(tracked(memory(), request=MOVE), View(error=Unreadable("throttled"))) is None


@pytest.mark.rule("O8", "S9", "S12a")
def test_a_transfer_waits_for_a_handshake() -> None:
    asked = tracked(memory(), request=MOVE)
    assert moving(asked, seen(ProtocolTags(OURS, reconcile=True, owner=ME))) is None


@pytest.mark.rule("O8", "T4", "T7", "S14", "O12")
@pytest.mark.parametrize(
    ("more", "view", "traits", "declarers", "refusal"),
    [
        ({}, seen(MINE), UNTAGGABLE, (ME, OTHER), f"{TYPE} cannot carry tags: it is only ever read"),
        (
            {"import_only": True},
            seen(MINE),
            PLAIN,
            (ME, OTHER),
            "the component is importOnly: take importOnly out of its declaration first",
        ),
        ({}, TWO, PLAIN, (ME, OTHER), "several resources are named 'web' (id-1, id-2): rename all but one"),
        ({}, ABSENT, PLAIN, (ME, OTHER), "the resource is absent: there is nothing to move"),
        (
            {},
            seen(ProtocolTags(OURS, owner=OTHER)),
            PLAIN,
            (ME, OTHER),
            "'ls-b' owns it by now, and not 'ls-a': nothing was written",
        ),
        (
            {},
            seen(ProtocolTags(OURS)),
            PLAIN,
            (ME, OTHER),
            "nobody owns it by now, and not 'ls-a': nothing was written",
        ),
        ({}, seen(MINE), FROZEN, (ME, OTHER), "its tags are frozen: its owner can never be moved"),
        (
            {},
            seen(MINE),
            FIXED_OWNER,
            (ME, OTHER),
            f"one call cannot replace the owner of {TYPE}: move the tag by hand",
        ),
        (
            {},
            seen(ProtocolTags("helm", owner=ME)),
            PLAIN,
            (ME, OTHER),
            "managed-by says 'helm': it is not ours to move",
        ),
        ({}, seen(FREE), PLAIN, (ME, OTHER), "it is in manual override: hand it back first, or move the tag by hand"),
        (
            {"remembered": LET_GO},
            seen(MINE),
            PLAIN,
            (ME, OTHER),
            "it is in manual override: hand it back first, or move the tag by hand",
        ),
        ({}, seen(MINE), PLAIN, (ME,), "'ls-b' does not declare it, or only imports it: declare it there first"),
        (
            {"generation": 2},
            seen(MINE),
            PLAIN,
            (ME, OTHER),
            "the LiveSystem was deployed again since: ask once more",
        ),
        (
            {},
            seen(MINE, resource_id="id-2"),
            PLAIN,
            (ME, OTHER),
            "it was asked for id-1, but the name now finds id-2: ask once more",
        ),
        (
            {"request": replace_at(MOVE, NOW - 2 * CYCLE - 11 * SECOND)},
            seen(MINE),
            PLAIN,
            (ME, OTHER),
            "it was not carried out within two cycles: ask once more",
        ),
    ],
)
def test_a_transfer_is_refused_with_the_reason(
    more: Any, view: View, traits: TypeTraits, declarers: tuple[str, ...], refusal: str
) -> None:
    values = {"request": MOVE, **more}
    component = tracked(values.pop("remembered", memory()), **values)
    found = moving(component, view, traits, declarers)
    assert found is not None
    assert (found.acts, found.refusal, found.is_used_up) == (False, refusal, True)
