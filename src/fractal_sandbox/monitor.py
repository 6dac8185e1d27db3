"""The safety monitor: whether any write of the agent broke the protocol, seen from inside the cloud.

For every writing call of the agent it compares two moments: the agent's last read of the resource, and the instant of
the write, under one lock with the write itself. Forbidden already at the read: a violation, an error of the agent.
Forbidden only since: a lost race. It knows resources only by reference and by their tags; how a vendor's call maps to
them, the cloud says. A call that the cloud cannot map is a violation too, whatever becomes of it: the monitor fails
closed. What is forbidden is decided in `monitor_rules.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fractal_sandbox.calls import Call
from fractal_sandbox.monitor_rules import Broken, Change, forbidden, forbidden_creation, forbidden_in_link

__all__ = ["UNCLASSIFIED", "Creation", "Finding", "Monitor", "Touch", "without_secrets"]

FindingKind = Literal["violation", "lost-race"]

UNCLASSIFIED = "unclassified"
"""Stands in the place of a rule where nobody knows what a write does."""
_SECRETS = ("password", "secret", "token", "userdata")


@dataclass(frozen=True)
class Finding:
    """One write that should not have happened, with all that is needed to see why."""

    kind: FindingKind
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


@dataclass(frozen=True)
class Touch:
    """An existing resource that a call is about to change, with the tags it carries at this instant.

    `intended_change`: the change as it was at the agent's last read, where a call replaces a whole set of tags that
    somebody edited since. `is_link_resource`: only links make this kind, so that the mark of its link decides.
    """

    resource: str
    change: Change
    tags: Mapping[str, str]
    intended_change: Change | None = None
    is_link_resource: bool = False


@dataclass(frozen=True)
class Creation:
    """A resource that a call is about to create, and the live ones that already bear its name in its scope.

    `is_bare`: this cloud takes no tags in the call. `is_link_resource`: only links make this kind.
    """

    kind: str
    region: str
    name: tuple[str, str]
    tags: Mapping[str, str]
    twins: tuple[str, ...] = ()
    is_bare: bool = False
    is_link_resource: bool = False


class Monitor:
    """Keeps what the agents have seen, and what it found. A cloud calls it under the lock of its dispatch.

    Several agents on one key are distinguished by an `agent/…` token; what one read, another has not seen.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.reset()

    def reset(self) -> None:
        with self._lock:
            self._findings: list[Finding] = []
            self._seen: dict[tuple[str, str], Mapping[str, str]] = {}
            self._listed: dict[tuple[str, str, str], Mapping[str, tuple[str, str]]] = {}

    @property
    def violations(self) -> list[Finding]:
        """Writes that were forbidden already at the agent's last read. There are none, ever (S16)."""
        with self._lock:
            return [finding for finding in self._findings if finding.kind == "violation"]

    @property
    def lost_races(self) -> list[Finding]:
        """Writes that became forbidden between the agent's last read and the write, and had an effect."""
        with self._lock:
            return [finding for finding in self._findings if finding.kind == "lost-race"]

    def as_json(self) -> dict[str, Any]:
        return {
            "violations": [finding.as_json() for finding in self.violations],
            "lostRaces": [finding.as_json() for finding in self.lost_races],
        }

    def saw(self, call: Call, resource: str, tags: Mapping[str, str]) -> None:
        """Remember that an answer showed the agent these tags of a resource."""
        with self._lock:
            self._seen[(_reader(call), resource)] = dict(tags)

    def last_seen(self, call: Call, resource: str) -> Mapping[str, str] | None:
        """The tags that the agent of a call saw at its last read of a resource; None if it never read it."""
        with self._lock:
            return self._seen.get((_reader(call), resource))

    def listed(self, call: Call, kind: str, names: Mapping[str, tuple[str, str]]) -> None:
        """Remember what the agent could see when it listed a kind: each resource's name and scope."""
        with self._lock:
            self._listed[(_reader(call), kind, call.region)] = dict(names)

    def check(self, call: Call, touches: list[Touch], creation: Creation | None = None) -> list[Finding]:
        """Record the violations of a call that is about to be carried out; return the races it is about to lose."""
        with self._lock:
            if not call.origin.live_system or not call.origin.component:
                text = "the user agent of a writing call names no LiveSystem or no component"
                return self._record_violations([Finding("violation", "C7", text, call, "", None, None)])
            findings = [self._check_touch(call, touch) for touch in touches]
            findings += [] if creation is None else [self._check_tags(call, creation), self._check_name(call, creation)]
            return self._record_violations([finding for finding in findings if finding is not None])

    def unclassified(self, call: Call, why: str) -> None:
        """Record a write of the agent of which nobody can say what it does: it is a violation, whatever comes of it."""
        text = f"a write that the monitor cannot classify: {why}"
        resource = ", ".join(call.resource_ids)
        with self._lock:
            self._findings.append(Finding("violation", UNCLASSIFIED, text, call, resource, None, None))

    def confirm(self, lost_races: list[Finding]) -> None:
        """Record the lost races of a call that had an effect; a call that was refused lost nothing."""
        with self._lock:
            self._findings += lost_races

    def _record_violations(self, findings: list[Finding]) -> list[Finding]:
        """Record the violations among findings, and return the others: races that the call may lose."""
        self._findings += [finding for finding in findings if finding.kind == "violation"]
        return [finding for finding in findings if finding.kind == "lost-race"]

    def _check_touch(self, call: Call, touch: Touch) -> Finding | None:
        seen = self._seen.get((_reader(call), touch.resource))
        if touch.is_link_resource:
            return self._check_mark(call, touch, seen)
        if seen is not None:
            broken = forbidden(touch.intended_change or touch.change, seen, call.origin)
            if broken is not None:
                return Finding("violation", broken.rule, broken.text, call, touch.resource, touch.tags, seen)
        broken = forbidden(touch.change, touch.tags, call.origin)
        if broken is None and seen is None:
            broken = Broken("S16", "the agent wrote it, and had never read it")
        if broken is None:
            return None
        kind: FindingKind = "violation" if seen is None else "lost-race"
        return Finding(kind, broken.rule, broken.text, call, touch.resource, touch.tags, seen)

    def _check_mark(self, call: Call, touch: Touch, seen: Mapping[str, str] | None) -> Finding | None:
        """By the mark at this instant alone: marks are written once, so that there is no race about them to lose."""
        broken = forbidden_in_link(touch.tags, call.origin)
        if broken is None:
            return None
        return Finding("violation", broken.rule, broken.text, call, touch.resource, touch.tags, seen)

    def _check_tags(self, call: Call, creation: Creation) -> Finding | None:
        rule = forbidden_in_link if creation.is_link_resource else forbidden_creation
        broken = rule(creation.tags, call.origin)
        if broken is None or (creation.is_bare and not creation.tags):
            return None
        return Finding("violation", broken.rule, broken.text, call, creation.kind, creation.tags, None)

    def _check_name(self, call: Call, creation: Creation) -> Finding | None:
        if not creation.twins:
            return None
        visible = self._listed.get((_reader(call), creation.kind, creation.region))
        seen = [twin for twin in creation.twins if visible is None or visible.get(twin) == creation.name]
        kind: FindingKind = "violation" if seen else "lost-race"
        text = f"duplicate: {creation.name[0]!r} already exists as {', '.join(seen or creation.twins)}"
        return Finding(kind, "S15", text, call, creation.kind, creation.tags, None)


def _reader(call: Call) -> str:
    return f"{call.access_key}/{call.origin.agent}"


def without_secrets(value: Any, name: str = "") -> Any:
    """Return a JSON form of parameters in which everything that may be secret is only named."""
    if any(word in name.lower() for word in _SECRETS):
        return "(hidden)"
    if isinstance(value, Mapping):
        return {str(key): without_secrets(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
