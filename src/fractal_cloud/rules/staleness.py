"""When something counts as stale: nobody has read it for two cycles (C11). The status is another matter, and stays."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

CYCLES: Final = 2
_SILENT_CYCLES: Final = 1.25
"""An agent is heard of in every cycle; one that was not for somewhat longer is silent."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who reads a scope: the length of its cycle, and when it was last heard of."""

    cycle: timedelta
    last_seen: datetime


def is_stale(last_read: datetime, now: datetime, cycle: timedelta, holder: Holder | None = None) -> bool:
    """Whether two cycles went by since the last read; ``cycle`` counts where nobody holds the scope.

    What a living holder has read since its last heartbeat is not known yet: as long as it is heard of in every cycle,
    its own word of that moment counts.
    """
    patience = CYCLES * (cycle if holder is None else holder.cycle)
    if now - last_read <= patience:
        return False
    if holder is None or holder.last_seen - last_read > patience:
        return True
    return now - holder.last_seen > _SILENT_CYCLES * holder.cycle


def stale_words(last_read: datetime | None, now: datetime) -> str:
    """What stands beside the status of something stale: «stale: last read 12 min ago».

    An agent that died between its first read and the heartbeat that reports it leaves no time: that is not «never».
    """
    return "stale: no read reported" if last_read is None else f"stale: last read {ago(last_read, now)}"


def ago(at: datetime, now: datetime) -> str:
    """How long ago something was, in the largest unit that says it."""
    seconds = max(0, int((now - at).total_seconds()))
    for unit, name, most in ((1, "s", 120), (60, "min", 120), (3_600, "h", 48)):
        if seconds < unit * most:
            return f"{seconds // unit} {name} ago"
    return f"{seconds // 86_400} days ago"
