"""The decision table of the protocol: purely computational, total, and the only place where a verb is picked.

Rules are tried from the top; the first that fits decides. No clock, no input or output, no memory of its own.
"""

from __future__ import annotations

from fractal_cloud.model.situation import Action, Decision, Fate, Hold, Manager, Party, Presence, Situation, Trace
from fractal_cloud.model.status import Stance, Status


def decide(situation: Situation) -> Decision:
    """What follows for one component that is declared (S0 to S14).

    A status of None means that the status stays as it is.
    """
    match situation.presence:
        case Presence.UNREADABLE:
            return Decision("S0", None, Action.NOTHING, situation.stance)
        case Presence.SEVERAL:
            status = None if situation.stance.is_read_only else Status.FAILED
            return Decision("S14", status, Action.NOTHING, situation.stance)
        case Presence.ABSENT:
            return _decide_absent(situation)
        case Presence.PRESENT:
            return _decide_present(situation)


def _decide_absent(s: Situation) -> Decision:
    if s.creates_once and (not s.made_here or s.redeployed or s.intent_open):
        return Decision("S1b", Status.INSTANTIATING, Action.CREATE, s.stance)
    if s.untouchable:
        stance = Stance.OVERRIDE if s.stance is Stance.OVERRIDE else Stance.IMPORTED
        return Decision("S1", Status.MISSING, Action.NOTHING, stance)
    if s.hold is not Hold.FREE:
        return _held_by_parent(s) or _decide_absent_part(s)
    if s.heir is Party.OTHER or (s.stance is Stance.IMPORTED and not s.redeployed):
        return Decision("S3", Status.MISSING, Action.NOTHING, Stance.IMPORTED)
    if s.stance is Stance.OVERRIDE and not s.redeployed:
        return Decision("S2", Status.MANUAL_OVERRIDE, Action.NOTHING, Stance.OVERRIDE)
    if s.holds_data and s.stance is Stance.MANAGED and not s.redeployed and not s.intent_open:
        return Decision("S4a", Status.MISSING, Action.NOTHING, Stance.MANAGED)
    return Decision("S4", Status.INSTANTIATING, Action.CREATE, Stance.MANAGED)


def _decide_present(s: Situation) -> Decision:
    if s.untouchable:
        stance = Stance.OVERRIDE if s.stance is Stance.OVERRIDE else Stance.IMPORTED
        return Decision("S5", Status.EXTERNALLY_MANAGED, Action.NOTHING, stance)
    if s.hold is not Hold.FREE:
        return _held_by_parent(s) or _decide_present_part(s)
    if s.owner is Party.OTHER:
        return Decision("S6", Status.EXTERNALLY_MANAGED, Action.NOTHING, Stance.IMPORTED)
    if s.tags_frozen and not (s.manager is Manager.OURS and s.owner is Party.ME):
        stance = Stance.OVERRIDE if s.stance is Stance.OVERRIDE else Stance.IMPORTED
        return Decision("S6a", Status.EXTERNALLY_MANAGED, Action.NOTHING, stance)
    if _awaits_tags(s):
        return Decision("S17", Status.INSTANTIATING, Action.TAG, Stance.MANAGED)
    if s.manager is not Manager.OURS:
        keeps_import = s.owner is Party.NOBODY and s.stance is Stance.IMPORTED
        stance = Stance.IMPORTED if keeps_import else Stance.OVERRIDE
        return Decision("S7", Status.MANUAL_OVERRIDE, Action.NOTHING, stance)
    if s.owner is Party.NOBODY:
        return _decide_unowned(s)
    return _decide_owned(s)


def _held_by_parent(s: Situation) -> Decision | None:
    """What follows for a part that its parent does not let the agent write to; None where it does (S25)."""
    is_present = s.presence is Presence.PRESENT
    match s.hold:
        case Hold.OPEN:
            return None
        case Hold.OVERRIDE:
            return Decision("S25", Status.MANUAL_OVERRIDE, Action.NOTHING, Stance.NONE)
        case Hold.OTHERS:
            status = Status.EXTERNALLY_MANAGED if is_present else Status.MISSING
            return Decision("S25", status, Action.NOTHING, Stance.IMPORTED)
        case Hold.NOTICED if is_present and needs_part_notice(s):
            return _notice_part(s)
        case _:
            return Decision("S25", None, Action.NOTHING, s.stance)


def _decide_absent_part(s: Situation) -> Decision:
    if s.holds_data and s.stance is Stance.MANAGED and not s.redeployed and not s.intent_open:
        return Decision("S4a", Status.MISSING, Action.NOTHING, Stance.MANAGED)
    was_kept = s.was_held or s.stance in (Stance.IMPORTED, Stance.OVERRIDE)
    if was_kept and not s.noticed and not s.redeployed and not s.intent_open:
        return Decision("S12a", Status.MUTATING, Action.NOTICE, s.stance)
    return Decision("S4", Status.INSTANTIATING, Action.CREATE, Stance.MANAGED)


def _decide_present_part(s: Situation) -> Decision:
    if needs_part_notice(s):
        return _notice_part(s)
    action = Action.RECONCILE if s.drifted else Action.NOTHING
    return Decision("S12", Status.ACTIVE, action, Stance.MANAGED)


def needs_part_notice(s: Situation) -> bool:
    """Whether a part that is there was neither made here nor taken over yet, or came back (S12a, S25)."""
    came_back = s.was_absent and not s.intent_open
    return not s.noticed and (s.stance is not Stance.MANAGED or came_back)


def _notice_part(s: Situation) -> Decision:
    return Decision("S12a", Status.MUTATING if s.drifted else Status.ACTIVE, Action.NOTICE, s.stance)


def _awaits_tags(s: Situation) -> bool:
    """Whether an own creation is still to be tagged: who put any of the three on it has said whose it is (S17)."""
    is_bare = s.manager is Manager.NOBODY and s.owner is Party.NOBODY and not s.reconcile
    return is_bare and s.owes_tags and s.intent_open and s.stance is Stance.MANAGED


def _decide_unowned(s: Situation) -> Decision:
    waiting = Stance.IMPORTED if s.stance is Stance.IMPORTED else Stance.OVERRIDE
    if not s.reconcile:
        return Decision("S10", Status.MANUAL_OVERRIDE, Action.NOTHING, waiting)
    match s.claimant:
        case Party.ME:
            return _readopt("S9")
        case Party.OTHER:
            return Decision("S8", Status.EXTERNALLY_MANAGED, Action.NOTHING, Stance.IMPORTED)
        case Party.CONTESTED | Party.NOBODY:
            return Decision("S8a", Status.MANUAL_OVERRIDE, Action.NOTHING, waiting)


def _decide_owned(s: Situation) -> Decision:
    if s.reconcile:
        return _readopt("S9")
    if s.stance is Stance.OVERRIDE:
        if s.readoption_by_tag and not s.tags_frozen:
            return _readopt("S11a")
        return Decision("S11", Status.MANUAL_OVERRIDE, Action.NOTHING, Stance.OVERRIDE)
    if s.tags_frozen and s.stance in (Stance.NONE, Stance.IMPORTED):
        return Decision("S11b", Status.MANUAL_OVERRIDE, Action.NOTHING, Stance.OVERRIDE)
    if needs_notice(s):
        status = Status.MUTATING if s.drifted else Status.ACTIVE
        return Decision("S12a", status, Action.NOTICE, s.stance)
    action = Action.RECONCILE if s.drifted else Action.NOTHING
    return Decision("S12", Status.ACTIVE, action, Stance.MANAGED)


def needs_notice(s: Situation) -> bool:
    """Whether a person gets to see what would change before anything is written (S12a)."""
    came_back = s.stance is Stance.MANAGED and s.was_absent and not s.intent_open
    return not s.noticed and (s.stance in (Stance.NONE, Stance.IMPORTED) or came_back)


def _readopt(rule: str) -> Decision:
    return Decision(rule, Status.RECONCILE_REQUESTED, Action.READOPT, Stance.MANAGED)


def decide_deletion(
    situation: Situation, *, trace: Trace, window_over: bool = True, is_bound: bool = True
) -> tuple[str, Fate]:
    """How the deletion of one component goes on (O10).

    ``trace``: what is known of the resource where its name finds nothing (O17). ``window_over``: an open create intent
    can show no more. ``is_bound``: what is there is the resource that the deletion was requested for (O19).
    Whoever is being deleted counts as no claimant, so what has no owner tag is never deleted.
    """
    s = situation
    if s.presence is Presence.UNREADABLE:
        return "S0", Fate.WAIT
    if s.presence is Presence.ABSENT:
        return _decide_absent_deletion(s, trace, window_over=window_over)
    if s.creates_once and s.presence is Presence.PRESENT:
        return "S1b", Fate.LEAVE
    if s.hold is not Hold.FREE and s.presence is Presence.PRESENT and not s.untouchable:
        return _decide_part_deletion(s, is_bound=is_bound)
    if s.presence is Presence.SEVERAL or _is_not_mine(s):
        return "O3", Fate.DROP
    decision = _decide_present(s)
    if decision.rule == "S6a":
        return "O3", Fate.DROP
    if not is_bound:
        return "O19", Fate.LEAVE
    if decision.action is Action.NOTICE:
        return "S12a", Fate.NOTICE
    if decision.rule in ("S9", "S11a", "S12"):
        return decision.rule, Fate.DELETE
    return decision.rule, Fate.LEAVE


def _decide_absent_deletion(s: Situation, trace: Trace, *, window_over: bool) -> tuple[str, Fate]:
    """Gone is proven, never concluded from a list that does not show it (O17)."""
    is_being_made = s.intent_open and not window_over
    if s.untouchable and not (s.creates_once and is_being_made):
        return "O3", Fate.DROP
    if is_being_made:
        return "S17", Fate.WAIT
    match trace:
        case Trace.UNKNOWN:
            return "O17", Fate.WAIT
        case Trace.ELSEWHERE:
            return "O17", Fate.DROP if s.hold is Hold.FREE and _is_not_mine(s) else Fate.LEAVE
        case Trace.NEVER | Trace.GONE:
            return "O10", Fate.GONE


def _decide_part_deletion(s: Situation, *, is_bound: bool) -> tuple[str, Fate]:
    """How the deletion of a part that is there goes on: as its parent's does, else only what was made or taken over."""
    match s.hold:
        case Hold.OTHERS:
            return "O3", Fate.DROP
        case Hold.OVERRIDE | Hold.LEFT:
            return "S25", Fate.LEAVE
        case Hold.WITH_PARENT | Hold.NOTICED | Hold.UNSETTLED:
            return "S25", Fate.WAIT
    if not is_bound:
        return "O19", Fate.LEAVE
    if s.hold is Hold.BEFORE_PARENT or s.stance is Stance.MANAGED or s.noticed:
        return "S25", Fate.DELETE
    return ("S12a", Fate.NOTICE) if s.was_held else ("S25", Fate.LEAVE)


def _is_not_mine(s: Situation) -> bool:
    """Whether it belongs to somebody else, or to nobody, and this component cannot claim it."""
    return s.untouchable or s.owner is Party.OTHER or (s.owner is Party.NOBODY and s.claimant is not Party.ME)
