"""The decision table, written down once more as a table, and held against ``decide`` in every situation there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import product
from math import prod
from typing import Any, cast

import pytest

from fractal_cloud.model.situation import Action, Decision, Fate, Hold, Manager, Party, Presence, Situation, Trace
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.rules.decide import decide, decide_deletion

ABSENT, PRESENT = Presence.ABSENT, Presence.PRESENT
NONE, MANAGED, OVERRIDE, IMPORTED = Stance.NONE, Stance.MANAGED, Stance.OVERRIDE, Stance.IMPORTED
FLAGS = (False, True)


@dataclass(frozen=True)
class Row:
    """One row of the table: where it applies, and what it says."""

    rule: str
    presence: Presence
    applies: Callable[[Situation], bool]
    status: Status | Callable[[Situation], Status | None] | None
    action: Action | Callable[[Situation], Action]
    stance: Stance | Callable[[Situation], Stance]

    def decision(self, s: Situation) -> Decision:
        """What this row says of a situation."""
        return Decision(
            self.rule,
            self.status(s) if callable(self.status) else self.status,
            self.action(s) if callable(self.action) else self.action,
            self.stance(s) if callable(self.stance) else self.stance,
        )


def ours(s: Situation) -> bool:
    return s.manager is Manager.OURS


def mine(s: Situation) -> bool:
    return s.owner is Party.ME


def unowned(s: Situation) -> bool:
    return s.owner is Party.NOBODY


def is_bare(s: Situation) -> bool:
    return s.manager is Manager.NOBODY and unowned(s) and not s.reconcile


def handshake(s: Situation) -> bool:
    return ours(s) and s.reconcile


def owned_without_reconcile(s: Situation) -> bool:
    return ours(s) and mine(s) and not s.reconcile


def just_arrived(s: Situation) -> bool:
    """Ownership just moved here, the memory was lost, or it came back from the dead."""
    return s.stance in (IMPORTED, NONE) or (s.stance is MANAGED and s.was_absent and not s.intent_open)


def is_forgotten(s: Situation) -> bool:
    """Whether nothing is remembered from which it follows that the agent may change it."""
    return s.stance in (NONE, IMPORTED)


def override_stays(s: Situation) -> Stance:
    return OVERRIDE if s.stance is OVERRIDE else IMPORTED


def imported_stays(s: Situation) -> Stance:
    return IMPORTED if s.stance is IMPORTED else OVERRIDE


def as_it_was(s: Situation) -> Stance:
    return s.stance


def s7_stance(s: Situation) -> Stance:
    return IMPORTED if unowned(s) and s.stance is IMPORTED else OVERRIDE


def may_be_created_once(s: Situation) -> bool:
    """Whether it was never created here, is to be created anew, or its creation is under way."""
    return s.creates_once and (not s.made_here or s.redeployed or s.intent_open)


def is_part(s: Situation) -> bool:
    return s.hold is not Hold.FREE


def part_just_arrived(s: Situation) -> bool:
    """Whether nobody remembers to have made it or taken it over, or it came back from the dead."""
    return not s.noticed and (s.stance is not MANAGED or (s.was_absent and not s.intent_open))


def part_was_kept(s: Situation) -> bool:
    """Whether its parent was in override, or another's, until now, and nobody has seen yet what would be created."""
    was_kept = s.was_held or s.stance in (IMPORTED, OVERRIDE)
    return was_kept and not s.noticed and not s.redeployed and not s.intent_open


def drift_status(s: Situation) -> Status:
    return Status.MUTATING if s.drifted else Status.ACTIVE


TABLE = (
    Row("S0", Presence.UNREADABLE, lambda _: True, None, Action.NOTHING, as_it_was),
    Row(
        "S14",
        Presence.SEVERAL,
        lambda _: True,
        lambda s: None if s.stance in (OVERRIDE, IMPORTED) else Status.FAILED,
        Action.NOTHING,
        as_it_was,
    ),
    Row("S1b", ABSENT, may_be_created_once, Status.INSTANTIATING, Action.CREATE, as_it_was),
    Row("S1", ABSENT, lambda s: s.untouchable, Status.MISSING, Action.NOTHING, override_stays),
    Row("S25", ABSENT, lambda s: s.hold is Hold.OVERRIDE, Status.MANUAL_OVERRIDE, Action.NOTHING, NONE),
    Row("S25", ABSENT, lambda s: s.hold is Hold.OTHERS, Status.MISSING, Action.NOTHING, IMPORTED),
    Row("S25", ABSENT, lambda s: is_part(s) and s.hold is not Hold.OPEN, None, Action.NOTHING, as_it_was),
    Row(
        "S4a",
        ABSENT,
        lambda s: is_part(s) and s.holds_data and s.stance is MANAGED and not s.redeployed and not s.intent_open,
        Status.MISSING,
        Action.NOTHING,
        MANAGED,
    ),
    Row("S12a", ABSENT, lambda s: is_part(s) and part_was_kept(s), Status.MUTATING, Action.NOTICE, as_it_was),
    Row("S4", ABSENT, is_part, Status.INSTANTIATING, Action.CREATE, MANAGED),
    Row(
        "S3",
        ABSENT,
        lambda s: s.heir is Party.OTHER or (s.stance is IMPORTED and not s.redeployed),
        Status.MISSING,
        Action.NOTHING,
        IMPORTED,
    ),
    Row(
        "S2",
        ABSENT,
        lambda s: s.stance is OVERRIDE and not s.redeployed,
        Status.MANUAL_OVERRIDE,
        Action.NOTHING,
        OVERRIDE,
    ),
    Row(
        "S4a",
        ABSENT,
        lambda s: s.holds_data and s.stance is MANAGED and not s.redeployed and not s.intent_open,
        Status.MISSING,
        Action.NOTHING,
        MANAGED,
    ),
    Row("S4", ABSENT, lambda _: True, Status.INSTANTIATING, Action.CREATE, MANAGED),
    Row("S5", PRESENT, lambda s: s.untouchable, Status.EXTERNALLY_MANAGED, Action.NOTHING, override_stays),
    Row("S25", PRESENT, lambda s: s.hold is Hold.OVERRIDE, Status.MANUAL_OVERRIDE, Action.NOTHING, NONE),
    Row("S25", PRESENT, lambda s: s.hold is Hold.OTHERS, Status.EXTERNALLY_MANAGED, Action.NOTHING, IMPORTED),
    Row(
        "S12a",
        PRESENT,
        lambda s: s.hold in (Hold.OPEN, Hold.NOTICED) and part_just_arrived(s),
        drift_status,
        Action.NOTICE,
        as_it_was,
    ),
    Row("S25", PRESENT, lambda s: is_part(s) and s.hold is not Hold.OPEN, None, Action.NOTHING, as_it_was),
    Row(
        "S12",
        PRESENT,
        is_part,
        Status.ACTIVE,
        lambda s: Action.RECONCILE if s.drifted else Action.NOTHING,
        MANAGED,
    ),
    Row("S6", PRESENT, lambda s: s.owner is Party.OTHER, Status.EXTERNALLY_MANAGED, Action.NOTHING, IMPORTED),
    Row(
        "S6a",
        PRESENT,
        lambda s: s.tags_frozen and not (ours(s) and mine(s)),
        Status.EXTERNALLY_MANAGED,
        Action.NOTHING,
        override_stays,
    ),
    Row(
        "S17",
        PRESENT,
        lambda s: s.owes_tags and is_bare(s) and s.stance is MANAGED and s.intent_open,
        Status.INSTANTIATING,
        Action.TAG,
        MANAGED,
    ),
    Row("S7", PRESENT, lambda s: not ours(s), Status.MANUAL_OVERRIDE, Action.NOTHING, s7_stance),
    Row(
        "S8",
        PRESENT,
        lambda s: handshake(s) and unowned(s) and s.claimant is Party.OTHER,
        Status.EXTERNALLY_MANAGED,
        Action.NOTHING,
        IMPORTED,
    ),
    Row(
        "S8a",
        PRESENT,
        lambda s: handshake(s) and unowned(s) and s.claimant in (Party.CONTESTED, Party.NOBODY),
        Status.MANUAL_OVERRIDE,
        Action.NOTHING,
        imported_stays,
    ),
    Row("S9", PRESENT, handshake, Status.RECONCILE_REQUESTED, Action.READOPT, MANAGED),
    Row("S10", PRESENT, unowned, Status.MANUAL_OVERRIDE, Action.NOTHING, imported_stays),
    Row(
        "S11a",
        PRESENT,
        lambda s: owned_without_reconcile(s) and s.stance is OVERRIDE and s.readoption_by_tag and not s.tags_frozen,
        Status.RECONCILE_REQUESTED,
        Action.READOPT,
        MANAGED,
    ),
    Row(
        "S11",
        PRESENT,
        lambda s: owned_without_reconcile(s) and s.stance is OVERRIDE,
        Status.MANUAL_OVERRIDE,
        Action.NOTHING,
        OVERRIDE,
    ),
    Row(
        "S11b",
        PRESENT,
        lambda s: owned_without_reconcile(s) and s.tags_frozen and is_forgotten(s),
        Status.MANUAL_OVERRIDE,
        Action.NOTHING,
        OVERRIDE,
    ),
    Row(
        "S12a",
        PRESENT,
        lambda s: owned_without_reconcile(s) and just_arrived(s) and not s.noticed,
        drift_status,
        Action.NOTICE,
        as_it_was,
    ),
    Row(
        "S12",
        PRESENT,
        owned_without_reconcile,
        Status.ACTIVE,
        lambda s: Action.RECONCILE if s.drifted else Action.NOTHING,
        MANAGED,
    ),
)


OWNERS = (Party.NOBODY, Party.ME, Party.OTHER)
ANSWERS: dict[str, tuple[Any, ...]] = {
    "presence": tuple(Presence), "untouchable": FLAGS, "manager": tuple(Manager), "reconcile": FLAGS, "owner": OWNERS,
    "heir": OWNERS, "claimant": tuple(Party), "stance": tuple(Stance), "redeployed": FLAGS, "holds_data": FLAGS,
    "intent_open": FLAGS, "was_absent": FLAGS, "readoption_by_tag": FLAGS, "noticed": FLAGS, "drifted": FLAGS,
    "tags_frozen": FLAGS, "owes_tags": FLAGS, "hold": tuple(Hold), "was_held": FLAGS, "creates_once": FLAGS,
    "made_here": FLAGS,
}  # fmt: skip
# What carries tags of its own: all of it is gone through one by one, in the long tests.
TAGGED: dict[str, tuple[Any, ...]] = {
    "hold": (Hold.FREE,), "was_held": (False,), "creates_once": (False,), "made_here": (False,)
}  # fmt: skip
HOW_MANY_TAGGED = (4 + 1) * 2 * 3 * 2 * 3 * 3 * 4 * 4 * 2**8
HOW_MANY = HOW_MANY_TAGGED * 9 * 2**3
ROWS = {presence: [row for row in TABLE if row.presence is presence] for presence in Presence}
WRITES = frozenset({Action.RECONCILE, Action.READOPT, Action.CREATE})


def answers(presence: Presence) -> dict[str, tuple[Any, ...]]:
    """What each field may say: also what cannot come about, but owing tags, which is asked of what is there."""
    return {**ANSWERS, "presence": (presence,), "owes_tags": FLAGS if presence is PRESENT else (False,)}


class Walk:
    """What a walk through all situations showed: how many there are, and the first fault of each kind."""

    count = 0
    expected = HOW_MANY
    against_the_table = ""
    wrong_write = ""
    wrong_deletion = ""

    def judge(self, situation: Situation) -> None:
        """Decide once, and look for faults."""
        decision = decide(situation)
        self.against_the_table = self.against_the_table or against_the_table(situation, decision)
        self.wrong_write = self.wrong_write or wrong_write(situation, decision)
        self.wrong_deletion = self.wrong_deletion or wrong_deletion(situation)

    def one_by_one(self) -> None:
        """Judge every situation of what carries tags."""
        self.expected = HOW_MANY_TAGGED
        for presence in Presence:
            for values in product(*{**answers(presence), **TAGGED}.values()):
                self.judge(Situation(*values))
                self.count += 1

    def by_what_is_asked(self) -> None:
        """Judge every situation there is, those at once that differ in nothing that anybody asks.

        What decides, and what it is held against, have nothing of a situation but the answers to what they ask.
        """
        for presence in Presence:
            possible = answers(presence)
            left: list[dict[str, Any]] = [{}]
            while left:
                asked = Asked(left.pop(), possible, left)
                self.judge(cast("Situation", asked))
                self.count += prod(len(values) for name, values in possible.items() if name not in vars(asked))


class Asked:
    """All situations that give the same answers to what was asked; the other answers are left for later."""

    __slots__ = ("__dict__", "_left", "_possible")

    def __init__(
        self, known: Mapping[str, Any], possible: Mapping[str, tuple[Any, ...]], left: list[dict[str, Any]]
    ) -> None:
        self._possible, self._left = possible, left
        vars(self).update(known)

    def __getattr__(self, name: str) -> Any:
        answer, *others = self._possible[name]
        self._left += [{**vars(self), name: other} for other in others]
        vars(self)[name] = answer
        return answer

    def __repr__(self) -> str:
        return f"Situation({', '.join(f'{name}={answer!r}' for name, answer in vars(self).items())})"


# All tests here share one walk, which takes its time.
pytestmark = pytest.mark.xdist_group("decide")


@pytest.fixture(scope="module", params=[Walk.by_what_is_asked, pytest.param(Walk.one_by_one, marks=pytest.mark.soak)])
def walk(request: pytest.FixtureRequest) -> Walk:
    """Every situation, decided."""
    found = Walk()
    request.param(found)
    return found


def against_the_table(situation: Situation, decision: Decision) -> str:
    """Where ``decide`` and the table differ."""
    expected = next(row for row in ROWS[situation.presence] if row.applies(situation)).decision(situation)
    return "" if decision == expected else f"{situation}: decide says {decision}, the table says {expected}"


def wrong_write(s: Situation, decision: Decision) -> str:
    """Why a decision writes to what is not ours, if it does."""
    if decision.action is Action.CREATE:
        wrong = {
            "creates while something is sighted": s.presence is not ABSENT,
            "creates what it must not own": s.untouchable and not may_be_created_once(s),
            "creates what another LiveSystem has the right to": s.heir is Party.OTHER
            and not (is_part(s) or s.creates_once),
            "creates a part of what is not being reconciled": is_part(s)
            and s.hold is not Hold.OPEN
            and not s.creates_once,
            "creates a part anew before anybody saw that it would": is_part(s)
            and part_was_kept(s)
            and not s.creates_once,
        }
    elif decision.action is Action.TAG:
        wrong = {
            "tags what it does not see": s.presence is not PRESENT,
            "tags what is only ever read": s.untouchable,
            "tags what its own creation did not make, or tags it again": not s.owes_tags,
            "tags what somebody tagged": not is_bare(s),
            "tags what was let go": s.stance.is_read_only,
        }
    elif decision.action in WRITES and is_part(s):
        wrong = {
            "writes to a part that it does not see": s.presence is not PRESENT,
            "writes to a part that is only ever read": s.untouchable,
            "writes to a part of what is not being reconciled": s.hold is not Hold.OPEN,
            "writes to a part that nobody made or took over": s.stance is not MANAGED and not s.noticed,
        }
    elif decision.action in WRITES:
        wrong = {
            "writes to what it does not see": s.presence is not PRESENT,
            "writes to what is only ever read": s.untouchable,
            "writes without managed-by": s.manager is not Manager.OURS,
            "writes to another LiveSystem's resource": s.owner is Party.OTHER,
            "writes to what it can never own": s.tags_frozen and s.owner is not Party.ME,
            "writes though an override may be forgotten": s.tags_frozen and is_forgotten(s) and not s.reconcile,
            "writes though nobody handed it back": s.tags_frozen and s.stance is OVERRIDE and not s.reconcile,
            "claims what nobody asked it to": unowned(s) and not s.reconcile,
            "claims what is not its own to claim": unowned(s) and s.claimant is not Party.ME,
        }
    else:
        return ""
    return next((f"{why}: {s}" for why, is_so in wrong.items() if is_so), "")


def wrong_deletion(s: Situation) -> str:
    """Where the fate of something whose LiveSystem is deleted is not the one that SPEC says, if it is not."""
    for trace, window_over, is_bound in product(Trace, FLAGS, FLAGS):
        rule, fate = decide_deletion(s, trace=trace, window_over=window_over, is_bound=is_bound)
        expected = fate_by_spec(s, trace, window_over=window_over, is_bound=is_bound)
        if fate is not expected or (fate is Fate.DELETE and not may_delete(s, rule)):
            return f"{rule} says {fate}, not {expected} ({trace=}, {window_over=}, {is_bound=}): {s}"
    return ""


def fate_by_spec(s: Situation, trace: Trace, *, window_over: bool, is_bound: bool) -> Fate:
    """O10 with O17 and O19, in their order."""
    if s.presence is Presence.UNREADABLE:
        return Fate.WAIT
    is_not_mine = s.untouchable or s.owner is Party.OTHER or (unowned(s) and s.claimant is not Party.ME)
    if s.presence is ABSENT:
        return fate_of_absent(s, trace, window_over=window_over, is_not_mine=is_not_mine)
    if s.creates_once and s.presence is PRESENT:
        return Fate.LEAVE
    if is_part(s) and s.presence is PRESENT and not s.untouchable:
        return fate_of_part(s, is_bound=is_bound)
    if s.presence is Presence.SEVERAL or is_not_mine or (s.tags_frozen and not (ours(s) and mine(s))):
        return Fate.DROP
    if not is_bound or not ours(s):
        return Fate.LEAVE
    if s.reconcile:
        return Fate.DELETE
    if unowned(s):
        return Fate.LEAVE
    if s.stance is OVERRIDE:
        return Fate.DELETE if s.readoption_by_tag and not s.tags_frozen else Fate.LEAVE
    if s.tags_frozen and is_forgotten(s):
        return Fate.LEAVE
    came_back = s.stance is MANAGED and s.was_absent and not s.intent_open
    is_news = s.stance in (NONE, IMPORTED) or came_back
    return Fate.NOTICE if is_news and not s.noticed else Fate.DELETE


def fate_of_absent(s: Situation, trace: Trace, *, window_over: bool, is_not_mine: bool) -> Fate:
    """O17."""
    is_being_made = s.intent_open and not window_over
    if s.untouchable and not (s.creates_once and is_being_made):
        return Fate.DROP
    if is_being_made or trace is Trace.UNKNOWN:
        return Fate.WAIT
    if trace is Trace.ELSEWHERE:
        return Fate.DROP if is_not_mine and not is_part(s) else Fate.LEAVE
    return Fate.GONE


def fate_of_part(s: Situation, *, is_bound: bool) -> Fate:
    """What becomes of a part that is there (S25)."""
    of_parent = {
        Hold.OTHERS: Fate.DROP,
        Hold.OVERRIDE: Fate.LEAVE,
        Hold.LEFT: Fate.LEAVE,
        Hold.WITH_PARENT: Fate.WAIT,
        Hold.NOTICED: Fate.WAIT,
        Hold.UNSETTLED: Fate.WAIT,
    }
    if s.hold in of_parent:
        return of_parent[s.hold]
    if not is_bound:
        return Fate.LEAVE
    if s.hold is Hold.BEFORE_PARENT or s.stance is MANAGED or s.noticed:
        return Fate.DELETE
    return Fate.NOTICE if s.was_held else Fate.LEAVE


def may_delete(s: Situation, rule: str) -> bool:
    """Whether something is there, ours, and not in manual override."""
    if is_part(s):
        is_known = s.hold is Hold.BEFORE_PARENT or s.stance is MANAGED or s.noticed
        is_open = s.hold in (Hold.OPEN, Hold.BEFORE_PARENT)
        return rule == "S25" and s.presence is PRESENT and not s.untouchable and is_open and is_known
    claimed = unowned(s) and s.claimant is Party.ME and s.reconcile
    let_go = s.stance is OVERRIDE and not s.reconcile and (not s.readoption_by_tag or s.tags_frozen)
    forgotten = s.tags_frozen and (not mine(s) or (is_forgotten(s) and not s.reconcile))
    return (
        rule in ("S9", "S11a", "S12")
        and s.presence is PRESENT
        and ours(s)
        and (mine(s) or claimed)
        and not let_go
        and not forgotten
    )


@pytest.mark.rule(
    "S0", "S1", "S1b", "S2", "S3", "S4", "S4a", "S5", "S6", "S6a", "S7", "S8", "S8a", "S9", "S10", "S11", "S11a",
    "S11b", "S12", "S12a", "S14", "S17", "S25",
)  # fmt: skip
def test_decide_says_what_the_table_says_in_every_situation(walk: Walk) -> None:
    assert walk.against_the_table == ""
    assert list(ANSWERS) == [field.name for field in fields(Situation)]
    assert walk.count == walk.expected
    assert (HOW_MANY_TAGGED, HOW_MANY) == (2_211_840, 159_252_480)


@pytest.mark.rule("S25", "S1b", "T3", "T4", "T7", "S6", "S6a", "S7", "S11b", "S15", "O3", "O12")
def test_no_decision_ever_writes_to_what_is_not_ours(walk: Walk) -> None:
    assert walk.wrong_write == ""


@pytest.mark.rule("O3", "O10", "O12", "S0", "S17", "S25", "S1b")
def test_no_deletion_ever_touches_what_is_not_ours(walk: Walk) -> None:
    assert walk.wrong_deletion == ""
