"""The decision table in a moment: a sample of all situations, with a fixed seed, in which every row decides often.

`tests/deciding/test_decide.py` goes through every one of them, which takes its time; the table is the same.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from fractal_cloud.model.situation import Action, Decision, Manager, Party, Presence, Situation
from fractal_cloud.model.status import Stance
from fractal_cloud.rules.decide import decide, needs_notice
from tests.deciding.test_decide import ANSWERS, TABLE, against_the_table, wrong_write

SIZE = 6_000
# What keeps a situation from the later rows is rarer than it would be by chance: every row is to be met.
RARE = {"untouchable": 12, "tags_frozen": 4, "reconcile": 2}
LIKELY: dict[str, tuple[Any, ...]] = {
    "presence": (*[Presence.PRESENT] * 8, *[Presence.ABSENT] * 4, Presence.UNREADABLE, Presence.SEVERAL),
    "manager": (Manager.OURS, Manager.OURS, Manager.NOBODY, Manager.OTHER),
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
