"""What a read of a scope did not show: types and components that could not be read, types nobody here serves (C11).

That such a thing is neither absent nor present is decided elsewhere (S0); here it is only noted since when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from fractal_cloud.agent.evaluator import Evaluator
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wire import Unread

MOST_NAMED: Final = 500
"""Beyond so many single components of a type that were not read, the whole type counts as unread."""


def unread_parts(
    held: HeldScope, evaluator: Evaluator, read_before: datetime | None, judged: Collection[str] | None = None
) -> dict[str, Unread]:
    """By type, or by uid where others of its type were read: what the last read did not show.

    ``read_before``: when the scope was read before that. ``judged``: who was observed in this cycle, None for all; the
    others are as they were. What was unread already keeps its times.
    """
    known, now, every = held.observed.unread, evaluator.now, held.work.tracked
    parts = {name: known.get(name) or Unread(since=now) for name in held.work.unserved}
    observed = every.values() if judged is None else [every[uid] for uid in judged if uid in every]
    unread = [tracked for tracked in observed if evaluator.view(tracked).error is not None]
    whole = _whole_types(every.values(), unread)
    for tracked in unread:
        name = tracked.type if tracked.type in whole else tracked.uid
        if name not in parts:
            before = known.get(tracked.uid) or known.get(tracked.type)
            parts[name] = before or Unread(since=now, last_read=_last_read(tracked, read_before))
    if judged is not None:
        parts |= {name: one for name, one in known.items() if name in every and name not in judged}
    return parts


def _whole_types(every: Iterable[Tracked], unread: Iterable[Tracked]) -> set[str]:
    """The types of which nothing was read, or of which too many were not to name them one by one."""
    missing = Counter(tracked.type for tracked in unread)
    there = Counter(tracked.type for tracked in every if tracked.type in missing) if missing else missing
    return {name for name, many in missing.items() if many == there[name] or many > MOST_NAMED}


def _last_read(tracked: Tracked, read_before: datetime | None) -> datetime | None:
    """When it was last read: with the read before, unless nobody has ever reconciled it."""
    return read_before if tracked.memory.observed_generation else None
