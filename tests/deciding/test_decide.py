"""The decision table, written down once more as a table, and held against ``decide`` in every situation there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import pytest

from fractal_cloud.model.situation import Action, Decision, Fate, Manager, Party, Presence, Situation
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


def override_stays(s: Situation) -> Stance:
    return OVERRIDE if s.stance is OVERRIDE else IMPORTED


def imported_stays(s: Situation) -> Stance:
    return IMPORTED if s.stance is IMPORTED else OVERRIDE


def as_it_was(s: Situation) -> Stance:
    return s.stance


def s7_stance(s: Situation) -> Stance:
    return IMPORTED if unowned(s) and s.stance is IMPORTED else OVERRIDE


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
    Row("S1", ABSENT, lambda s: s.untouchable, Status.MISSING, Action.NOTHING, override_stays),
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
        lambda s: owned_without_reconcile(s) and s.tags_frozen and s.stance is NONE,
        Status.MANUAL_OVERRIDE,
        Action.NOTHING,
        OVERRIDE,
    ),
    Row(
        "S12a",
        PRESENT,
        lambda s: owned_without_reconcile(s) and just_arrived(s) and not s.noticed,
        lambda s: Status.MUTATING if s.drifted else Status.ACTIVE,
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


def situations() -> Iterator[Situation]:
    """Every situation there is, also those that cannot come about."""
    for presence, untouchable, manager, reconcile, owner, heir, claimant, stance in product(
        Presence, FLAGS, Manager, FLAGS, (Party.NOBODY, Party.ME, Party.OTHER), (Party.NOBODY, Party.ME, Party.OTHER),
        Party, Stance,
    ):  # fmt: skip
        for rest in product(*([FLAGS] * 8), FLAGS if presence is PRESENT else (False,)):
            yield Situation(presence, untouchable, manager, reconcile, owner, heir, claimant, stance, *rest)


HOW_MANY = (4 + 1) * 2 * 3 * 2 * 3 * 3 * 4 * 4 * 2**8


@pytest.mark.rule(
    "S0", "S1", "S2", "S3", "S4", "S4a", "S5", "S6", "S6a", "S7", "S8", "S8a", "S9", "S10", "S11", "S11a", "S11b",
    "S12", "S12a", "S14", "S17",
)  # fmt: skip
def test_decide_says_what_the_table_says_in_every_situation() -> None:
    rows = {presence: [row for row in TABLE if row.presence is presence] for presence in Presence}
    count = 0
    for situation in situations():
        expected = next(row for row in rows[situation.presence] if row.applies(situation)).decision(situation)
        if decide(situation) != expected:
            pytest.fail(f"{situation}: decide says {decide(situation)}, the table says {expected}")
        count += 1
    assert count == HOW_MANY == 2_211_840


WRITES = frozenset({Action.RECONCILE, Action.READOPT, Action.CREATE})


@pytest.mark.rule("T3", "T4", "T7", "S6", "S6a", "S7", "S11b", "S15", "O3", "O12")
def test_no_decision_ever_writes_to_what_is_not_ours() -> None:
    for s in situations():
        decision = decide(s)
        if decision.action is Action.CREATE:
            assert s.presence is ABSENT, f"creates while something is sighted: {s}"
            assert not s.untouchable, f"creates what it must not own: {s}"
            assert s.heir is not Party.OTHER, f"creates what another LiveSystem has the right to: {s}"
        elif decision.action is Action.TAG:
            assert s.presence is PRESENT, f"tags what it does not see: {s}"
            assert not s.untouchable, f"tags what is only ever read: {s}"
            assert s.owes_tags, f"tags what its own creation did not make, or tags it again: {s}"
            assert is_bare(s), f"tags what somebody tagged: {s}"
            assert not s.stance.hands_off, f"tags what was let go: {s}"
        elif decision.action in WRITES:
            assert s.presence is PRESENT, f"writes to what it does not see: {s}"
            assert not s.untouchable, f"writes to what is only ever read: {s}"
            assert s.manager is Manager.OURS, f"writes without managed-by: {s}"
            assert s.owner is not Party.OTHER, f"writes to another LiveSystem's resource: {s}"
            if s.tags_frozen:
                assert s.owner is Party.ME, f"writes to what it can never own: {s}"
                assert s.stance is not NONE or s.reconcile, f"writes though an override may be forgotten: {s}"
                assert s.stance is not OVERRIDE or s.reconcile, f"writes though nobody handed it back: {s}"
            if s.owner is Party.NOBODY:
                assert s.reconcile, f"claims what nobody asked it to: {s}"
                assert s.claimant is Party.ME, f"claims what is not its own to claim: {s}"


@pytest.mark.rule("O3", "O10", "O12", "S0", "S17")
def test_no_deletion_ever_touches_what_is_not_ours() -> None:
    for s in situations():
        for window_over in FLAGS:
            rule, fate = decide_deletion(s, window_over=window_over)
            if s.presence is Presence.UNREADABLE:
                assert fate is Fate.WAIT
            elif s.presence is ABSENT:
                assert fate is (Fate.WAIT if s.intent_open and not window_over else Fate.GONE)
            elif s.presence is Presence.SEVERAL or s.untouchable or s.owner is Party.OTHER:
                assert fate is Fate.DROP
            elif s.manager is not Manager.OURS:
                assert fate in (Fate.LEAVE, Fate.DROP)
            if fate is Fate.DELETE:
                assert rule in ("S9", "S11a", "S12")
                assert s.presence is PRESENT
                assert s.manager is Manager.OURS
                assert s.owner is Party.ME or (s.owner is Party.NOBODY and s.claimant is Party.ME and s.reconcile)
                assert s.stance is not OVERRIDE or s.reconcile or (s.readoption_by_tag and not s.tags_frozen)
                assert not s.tags_frozen or s.owner is Party.ME
                assert not s.tags_frozen or s.stance is not NONE or s.reconcile
