"""What the parent of a part says of writing to the part (S25). Pure.

A part carries no tags: whether it may be written, left or deleted follows from its parent, judged at the same moment.
What follows for the part itself is in ``decide``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from fractal_cloud.model.situation import Fate, Hold
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.rules.judge import Judgement, Verb

_BY_RULE: Final[Mapping[str, Hold]] = {
    **dict.fromkeys(("S9", "S11a", "S12"), Hold.OPEN),
    "S12a": Hold.NOTICED,
    **dict.fromkeys(("S2", "S7", "S8a", "S10", "S11", "S11b", "G13"), Hold.OVERRIDE),
    **dict.fromkeys(("S1", "S3", "S5", "S6", "S6a", "S8"), Hold.OTHERS),
}


def hold_of(parent: Judgement) -> Hold:
    """What a parent says that is not being deleted."""
    return _BY_RULE.get(parent.rule, Hold.UNSETTLED)


def hold_of_deleted(parent: Tracked, judgement: Judgement, others: Collection[str], *, blocks: bool) -> Hold:
    """What a parent says that is being deleted like its part.

    ``others``: what else has to end before the parent. ``blocks``: the cloud does not delete the parent with the part.
    """
    match judgement.fate:
        case Fate.LEAVE:
            return Hold.LEFT
        case Fate.DROP:
            return Hold.OTHERS
        case Fate.DELETE if blocks and not others and not _is_refused(parent) and not judgement.waits_for_cloud:
            return Hold.BEFORE_PARENT
        case _:
            return Hold.WITH_PARENT


def _is_refused(parent: Tracked) -> bool:
    """Whether the cloud has refused to delete the parent, so that something else is known to be in the way."""
    refusal = parent.memory.refusal
    return refusal is not None and refusal.verb == Verb.DELETE
