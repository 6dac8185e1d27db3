"""The decision table in a moment: a sample of all situations, with a fixed seed, in which every row decides often.

`tests/deciding/test_decide.py` goes through every one of them, which takes its time; the table is the same.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from fractal_cloud.model.situation import Action, Decision, Fate, Hold, Manager, Party, Presence, Situation, Trace
from fractal_cloud.model.status import Stance
from fractal_cloud.rules.decide import decide, decide_deletion, needs_notice
from tests.deciding.test_decide import ANSWERS, ROWS, TABLE, against_the_table, fate_of_part, wrong_write

SIZE = 9_000
# What keeps a situation from the later rows is rarer than it would be by chance: every row is to be met.
RARE = {"untouchable": 12, "tags_frozen": 4, "reconcile": 2, "creates_once": 30}
LIKELY: dict[str, tuple[Any, ...]] = {
    "presence": (*[Presence.PRESENT] * 8, *[Presence.ABSENT] * 4, Presence.UNREADABLE, Presence.SEVERAL),
    "manager": (Manager.OURS, Manager.OURS, Manager.NOBODY, Manager.OTHER),
    "hold": (*[Hold.FREE] * 16, *[Hold.OPEN] * 4, *Hold),
    "owner": (Party.ME, Party.NOBODY, Party.NOBODY, Party.ME, Party.OTHER),
    "stance": (*Stance, Stance.MANAGED, Stance.MANAGED),
}


def situations() -> list[Situation]:
    """The same ones every time."""
    chance = random.Random(7)
    found = []
    for _ in range(SIZE):
        values = {name: chance.choice(LIKELY.get(name, possible)) for name, possible in ANSWERS.items()}
        values |= {name: chance.randrange(seldom) == 0 for name, seldom in RARE.items()}
        values["owes_tags"] = values["presence"] is Presence.PRESENT and chance.choice((True, False))
        found.append(Situation(**values))
    return found


@pytest.mark.rule("S0", "S1", "S2", "S3", "S4", "S4a", "S5", "S6", "S7", "S8", "S8a", "S9", "S10", "S11", "S11a")
def test_decide_says_what_the_table_says() -> None:
    met: Counter[str] = Counter()
    for situation in situations():
        decision = decide(situation)
        assert against_the_table(situation, decision) == ""
        assert wrong_write(situation, decision) == ""
        met[decision.rule] += 1
    assert {row.rule for row in TABLE} == met.keys()
    assert min(met.values()) > 5, met


def test_a_decision_has_no_words_unless_given() -> None:
    assert Decision("S0", None, Action.NOTHING, Stance.NONE).message == ""


@pytest.mark.rule("S12a")
@pytest.mark.parametrize(
    ("stance", "was_absent", "intent_open", "noticed", "expected"),
    [
        (Stance.MANAGED, False, False, False, False),
        (Stance.MANAGED, True, False, False, True),
        (Stance.MANAGED, True, True, False, False),
        (Stance.MANAGED, True, False, True, False),
        (Stance.NONE, False, False, False, True),
        (Stance.NONE, False, True, False, True),
        (Stance.NONE, False, False, True, False),
        (Stance.IMPORTED, False, False, False, True),
        (Stance.IMPORTED, False, False, True, False),
        (Stance.OVERRIDE, True, False, False, False),
    ],
)
def test_a_person_gets_to_see_first_what_arrives_or_comes_back(
    stance: Stance, was_absent: bool, intent_open: bool, noticed: bool, expected: bool
) -> None:
    situation = Situation(
        Presence.PRESENT, stance=stance, was_absent=was_absent, intent_open=intent_open, noticed=noticed
    )
    assert needs_notice(situation) is expected


def is_for_somebody_else(s: Situation) -> bool:
    """O10: untaggable, importOnly, another owner, or no owner and not mine to claim: the reference is dropped."""
    return s.untouchable or s.owner is Party.OTHER or (s.owner is Party.NOBODY and s.claimant is not Party.ME)


def fate_of(s: Situation, trace: Trace, *, window_over: bool, is_bound: bool) -> tuple[str, Fate]:
    """O10, O17 and O19 once more, in the order in which the protocol asks."""
    if s.presence is Presence.UNREADABLE:
        return "S0", Fate.WAIT
    if s.presence is Presence.ABSENT:
        if s.untouchable and not (s.creates_once and s.intent_open and not window_over):
            return "O3", Fate.DROP
        if s.intent_open and not window_over:
            return "S17", Fate.WAIT
        ends = {
            Trace.UNKNOWN: ("O17", Fate.WAIT),
            Trace.NEVER: ("O10", Fate.GONE),
            Trace.GONE: ("O10", Fate.GONE),
            Trace.ELSEWHERE: ("O17", Fate.DROP if s.hold is Hold.FREE and is_for_somebody_else(s) else Fate.LEAVE),
        }
        return ends[trace]
    if s.presence is Presence.PRESENT and s.creates_once:
        return "S1b", Fate.LEAVE
    if s.presence is Presence.PRESENT and s.hold is not Hold.FREE and not s.untouchable:
        return rule_of_part(s, is_bound=is_bound)
    if s.presence is Presence.SEVERAL or is_for_somebody_else(s):
        return "O3", Fate.DROP
    rule = next(row for row in ROWS[s.presence] if row.applies(s)).rule
    if rule == "S6a":
        return "O3", Fate.DROP
    if not is_bound:
        return "O19", Fate.LEAVE
    fates = {"S12a": Fate.NOTICE, "S9": Fate.DELETE, "S11a": Fate.DELETE, "S12": Fate.DELETE}
    return rule, fates.get(rule, Fate.LEAVE)


def rule_of_part(s: Situation, *, is_bound: bool) -> tuple[str, Fate]:
    """S25, with the rule that is said."""
    fate = fate_of_part(s, is_bound=is_bound)
    if fate is Fate.DROP:
        return "O3", fate
    if fate is Fate.NOTICE:
        return "S12a", fate
    is_asked_for_another = s.hold in (Hold.OPEN, Hold.BEFORE_PARENT) and not is_bound
    return "O19" if is_asked_for_another else "S25", fate


@pytest.mark.rule("O10", "O17", "O19", "O3", "O12", "S0", "S17", "S25", "S1b")
def test_a_deletion_ends_exactly_as_the_protocol_says() -> None:
    met: Counter[tuple[str, Fate]] = Counter()
    chance = random.Random(11)
    for s in situations():
        trace, window_over, is_bound = chance.choice(list(Trace)), chance.random() < 0.5, chance.random() < 0.8
        found = decide_deletion(s, trace=trace, window_over=window_over, is_bound=is_bound)
        assert found == fate_of(s, trace, window_over=window_over, is_bound=is_bound), (s, trace, window_over, is_bound)
        met[found] += 1
    assert {rule for rule, _ in met} == {
        *(
            "S0",
            "O3",
            "S17",
            "O17",
            "O10",
            "O19",
            "S7",
            "S9",
            "S10",
            "S11",
            "S11a",
            "S11b",
            "S12",
            "S12a",
            "S25",
            "S1b",
        ),
    }
    assert met["O17", Fate.DROP]
    assert met["O17", Fate.LEAVE]


@pytest.mark.rule("O17", "O19")
def test_a_deletion_is_bound_and_its_window_over_unless_said_otherwise() -> None:
    present = Situation(Presence.PRESENT, manager=Manager.OURS, owner=Party.ME, stance=Stance.MANAGED)
    assert decide_deletion(present, trace=Trace.UNKNOWN) == ("S12", Fate.DELETE)
    absent = Situation(Presence.ABSENT, intent_open=True)
    assert decide_deletion(absent, trace=Trace.GONE) == ("O10", Fate.GONE)
