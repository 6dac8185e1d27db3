"""Events of what was refused to agents, few enough that a flood of refusals is no flood of events."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.model.event import EventKind

AT_MOST: Final = 20
"""So many events for one token in one span of time; what comes beyond is counted in the next event."""
SPAN: Final = timedelta(minutes=1)
_LONGEST: Final = 1_000


@dataclass(slots=True)
class _Recorded:
    """When the last events of one token were recorded, and how many refusals had none since."""

    at: deque[datetime] = field(default_factory=lambda: deque(maxlen=AT_MOST))
    unsaid: int = 0


class Refusals:
    """Records refusals of one process. What an agent sent stands in them quoted, and cut where it is long."""

    def __init__(self) -> None:
        self._recorded: dict[str, _Recorded] = {}
        self._lock = threading.Lock()

    def record(self, tx: Tx, kind: EventKind, token_name: str, agent_id: str, why: str) -> None:
        """Append an event that names the token and the agent, unless there were too many of them just now."""
        with self._lock:
            known = self._recorded.setdefault(token_name, _Recorded())
            if len(known.at) == AT_MOST and tx.now - known.at[0] < SPAN:
                known.unsaid += 1
                return
            known.at.append(tx.now)
            unsaid, known.unsaid = known.unsaid, 0
        message = f"token {token_name!r}, agent {agent_id[:100]!r}: {why[:_LONGEST]}"
        if unsaid:
            message += f"; {unsaid} more were refused before it, without an event each"
        tx.record(PendingEvent("", kind, token_name, message=message))
