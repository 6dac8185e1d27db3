"""What counts as a change from outside, how long it is kept, in which words it is shown: exactly, without a clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fractal_cloud.model.observed import ChangedBy, Observed
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tags import MANAGED_BY, ProtocolTags
from fractal_cloud.rules.changed_by import MOST, Moment, after_reading, is_waiting, shown, text
from fractal_cloud.rules.drift import Difference
from fractal_cloud.rules.judge import Judgement
from fractal_cloud.rules.setbacks import digest
from tests.direct.things import ME, NOW, SECOND, intent, memory, sighting, tracked

pytestmark = pytest.mark.rule("C4")
MANAGED, OVERRIDE, IMPORTED = Stance.MANAGED, Stance.OVERRIDE, Stance.IMPORTED
BEFORE = NOW - 180 * SECOND
MOMENT = Moment(now=NOW, before=BEFORE, source="CloudTrail")
FREE = ProtocolTags(owner=ME)
SEEN = "seen by the agent at 2026-01-01 12:00:00 UTC"
AT = "2026-01-01 11:59:00 UTC"
LARGE: dict[str, Any] = {"actual": {"size": 5}}


def known(**more: Any) -> Observed:
    """What is remembered of a component at rest, whose size was read as declared."""
    return memory(**{"status": Status.ACTIVE, "output_fields": {"size": 3}, **more})


def judged(rule: str = "S12", stance: Stance = MANAGED, **drift: tuple[Any, Any]) -> Judgement:
    """What follows, with what differs: declared and actual."""
    return Judgement(rule, Status.ACTIVE, stance, "", {name: Difference(*pair) for name, pair in drift.items()})


def after(
    remembered: Observed, seen: Sighting | None, judgement: Judgement, moment: Moment = MOMENT, **more: Any
) -> tuple[ChangedBy, ...]:
    return after_reading(tracked(remembered, **more), seen, judgement, moment)


CHANGED = ChangedBy(
    parameter="size", value=digest(5), seen=NOW, after=BEFORE, state="waiting", source="CloudTrail", stands=True
)


def test_a_value_that_reads_otherwise_was_changed_after_the_last_read() -> None:
    assert after(known(), sighting(**LARGE), judged(size=(3, 5))) == (CHANGED,)


def test_without_a_record_there_is_nobody_to_wait_for() -> None:
    [one] = after(known(), sighting(**LARGE), judged(size=(3, 5)), replace(MOMENT, source=""))
    assert (one.state, one.source) == ("unknown", "")


def test_what_is_read_one_by_one_was_changed_after_its_own_last_read() -> None:
    moment = replace(MOMENT, swept=frozenset({"size"}), swept_before=NOW - 900 * SECOND)
    [one] = after(known(), sighting(**LARGE), judged(size=(3, 5)), moment)
    assert one.after == NOW - 900 * SECOND


@pytest.mark.parametrize(
    "remembered",
    [
        known(output_fields={"size": 5}),
        known(status=Status.MUTATING),
        known(status=Status.INSTANTIATING),
        known(intent=intent()),
        known(stance=IMPORTED),
        known(output_fields={}),
    ],
    ids=["the declaration is new", "being changed", "being made", "creation open", "just became ours", "never read"],
)
def test_what_nobody_changed_is_no_change(remembered: Observed) -> None:
    assert after(remembered, sighting(**LARGE), judged(size=(3, 5))) == ()


def test_what_is_found_in_override_at_first_sight_is_listed() -> None:
    [one] = after(Observed(), sighting(FREE, **LARGE), judged("S7", OVERRIDE, size=(3, 5)))
    assert (one.parameter, one.stands) == ("size", True)


@pytest.mark.rule("S20")
def test_what_was_shown_as_drift_already_is_not_seen_for_the_first_time() -> None:
    shown_before = known(stance=OVERRIDE, output_fields={"drift": {"size": {"declared": 3, "actual": 5}}})
    assert after(shown_before, sighting(**LARGE), judged("S7", OVERRIDE, size=(3, 5))) == ()
    [changed] = after(shown_before, sighting(actual={"size": 6}), judged("S7", OVERRIDE, size=(3, 6)))
    assert changed.value == digest(6)


def test_what_links_set_and_what_our_own_writes_made_is_no_change() -> None:
    linked = replace(MOMENT, linked=frozenset({"size"}))
    assert after(known(), sighting(**LARGE), judged(size=(3, 5)), linked) == ()
    assert after(known(), sighting(**LARGE), judged(size=(3, 5)), replace(MOMENT, begins=False)) == ()


@pytest.mark.rule("O5")
def test_an_importer_keeps_nothing() -> None:
    assert after(known(changed_by=(CHANGED,)), sighting(**LARGE), judged("S6", IMPORTED, size=(3, 5))) == ()


@pytest.mark.rule("S0")
@pytest.mark.parametrize("rule", ["S0", "S24", "C9"])
def test_what_could_not_be_read_changes_nothing(rule: str) -> None:
    kept = (CHANGED,)
    assert after(known(changed_by=kept), sighting(**LARGE), judged(rule)) is kept
    assert after(known(changed_by=kept), None, judged()) is kept
    assert after(known(changed_by=kept), sighting(), judged(), deleting=True) is kept


def test_a_change_stands_until_it_is_undone_and_another_one_is_another() -> None:
    kept = (CHANGED,)
    same = after(known(changed_by=kept), sighting(**LARGE), judged(size=(3, 5)))
    assert same is kept, "nothing new, nothing to publish"
    [gone] = after(known(changed_by=kept), sighting(actual={"size": 3}), judged())
    assert gone == CHANGED.model_copy(update={"stands": False})
    later = replace(MOMENT, now=NOW + SECOND)
    remembered = known(changed_by=kept, output_fields={"size": 5})
    new, old = after(remembered, sighting(actual={"size": 7}), judged(size=(3, 7)), later)
    assert (new.value, new.stands, old.stands) == (digest(7), True, False)
    again = after(known(changed_by=(gone,)), sighting(**LARGE), judged(size=(3, 5)), later)
    assert [one.stands for one in again] == [True, False]


def test_no_more_than_ten_are_kept_and_those_that_stand_first() -> None:
    past = [CHANGED.model_copy(update={"stands": False, "seen": NOW - n * SECOND}) for n in range(MOST)]
    kept = after(known(changed_by=tuple(past)), sighting(**LARGE), judged(size=(3, 5)), replace(MOMENT, now=NOW))
    assert len(kept) == MOST
    assert [one.stands for one in kept] == [True, *[False] * (MOST - 1)]
    assert past[-1] not in kept


@pytest.mark.rule("G1")
def test_a_removed_managed_by_is_a_change_of_what_was_managed() -> None:
    [one] = after(known(), sighting(FREE), judged("S7", OVERRIDE))
    assert (one.parameter, one.stands) == (MANAGED_BY, True)
    assert after(known(stance=OVERRIDE), sighting(FREE), judged("S7", OVERRIDE)) == (), "known already, or through us"
    [back] = after(known(stance=OVERRIDE, changed_by=(one,)), sighting(), judged("S11", OVERRIDE))
    assert not back.stands


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("known", f"anna changed it at {AT} (ModifyVpcAttribute, CloudTrail)"),
        (
            "related",
            f"{SEEN}; anna called ModifyVpcAttribute at {AT} (CloudTrail), which does not say what it set",
        ),
        ("waiting", f"{SEEN}; not in CloudTrail yet"),
        ("denied", f"{SEEN}; the agent may not read CloudTrail"),
        ("unknown", SEEN),
    ],
)
def test_the_sentence_names_somebody_only_where_that_is_known(state: str, said: str) -> None:
    at = NOW - timedelta(minutes=1)
    found = {"by": "anna", "at": at, "how": "ModifyVpcAttribute"} if state in ("known", "related") else {}
    one = CHANGED.model_copy(update={"state": state, **found})
    assert text(one) == said
    assert is_waiting((one,)) is (state == "waiting")
    assert shown(one.to_json())["text"] == said
    assert "value" not in shown(one.to_json())


def test_a_tag_that_is_gone_was_removed() -> None:
    values = {"state": "known", "by": "anna", "at": NOW, "how": "DeleteTags", "parameter": MANAGED_BY}
    for left, verb in ((None, "removed"), ("terraform", "changed")):
        one = CHANGED.model_copy(update={**values, "value": digest(left)})
        assert text(one) == f"anna {verb} it at 2026-01-01 12:00:00 UTC (DeleteTags, CloudTrail)"
