"""The safety monitor: whether any write of the agent broke the protocol, seen from inside the cloud.

For every writing call of the agent it compares two moments: the agent's last read of the resource, and the instant of
the write, under one lock with the write itself. Forbidden already at the read: a violation, a fault of the agent.
Forbidden only since: a lost race. It knows resources only by reference and by their tags; how a vendor's call maps to
them, the cloud says. What is forbidden is decided in `judging.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fractal_cloud.sandbox.calls import Call

__all__ = ["Finding", "Monitor"]

_SECRETS = ("password", "secret", "token", "userdata")


@dataclass(frozen=True)
class Finding:
    """One write that should not have happened, with all that is needed to see why."""

    kind: Literal["violation", "lost-race"]
    rule: str
    text: str
    call: Call
    resource: str
    tags_then: Mapping[str, str] | None
    tags_at_last_read: Mapping[str, str] | None
    when: float = field(default_factory=time.time)

    def as_json(self) -> dict[str, Any]:
        return {
            "when": self.when,
            "kind": self.kind,
            "rule": self.rule,
            "text": self.text,
            "service": self.call.service,
            "operation": self.call.operation,
            "parameters": without_secrets(self.call.parameters),
            "resource": self.resource,
            "liveSystem": self.call.origin.live_system,
            "component": self.call.origin.component,
            "reason": self.call.origin.reason,
            "tagsThen": self.tags_then,
            "tagsAtLastRead": self.tags_at_last_read,
        }

    def __str__(self) -> str:
        return (
            f"{self.kind} of {self.rule}: {self.text} ({self.call.service}:{self.call.operation} on {self.resource!r}, "
            f"reason {self.call.origin.reason!r}, tags then {self.tags_then}, at last read {self.tags_at_last_read})"
        )


class Monitor:
    """Keeps what the agents have seen, and what it found."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.reset()

    def reset(self) -> None:
        with self._lock:
            self._findings: list[Finding] = []

    @property
    def violations(self) -> list[Finding]:
        with self._lock:
            return [finding for finding in self._findings if finding.kind == "violation"]

    @property
    def lost_races(self) -> list[Finding]:
        with self._lock:
            return [finding for finding in self._findings if finding.kind == "lost-race"]

    def as_json(self) -> dict[str, Any]:
        return {
            "violations": [finding.as_json() for finding in self.violations],
            "lostRaces": [finding.as_json() for finding in self.lost_races],
        }


def without_secrets(value: Any, name: str = "") -> Any:
    """Return a JSON form of parameters in which everything that may be secret is only named."""
    if any(word in name.lower() for word in _SECRETS):
        return "(hidden)"
    if isinstance(value, Mapping):
        return {str(key): without_secrets(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
