"""What was asked of a sandbox cloud, by whom, and how it was answered.

One neutral shape for all clouds: tests count calls by it, knobs filter by it, the monitor checks it. How a call is
read from a vendor's wire format does not belong here, nor what it does to a resource.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal
from urllib.parse import unquote

__all__ = ["Actor", "Call", "CallLog", "Filter", "Origin", "RecordedCall"]

Actor = Literal["agent", "person"]


@dataclass(frozen=True)
class Origin:
    """On whose behalf the agent calls, as its user agent says; all empty for a person's tools.

    `tags`: the keys of the user's own tags that it says its declaration names, and that it writes now.
    """

    agent: str = ""
    live_system: str = ""
    component: str = ""
    reason: str = ""
    tags: frozenset[str] = frozenset()

    @classmethod
    def from_user_agent(cls, user_agent: str) -> Origin:
        """Read the tokens `ls/…`, `component/…`, `reason/…`, `tags/…` and, where several agents run, `agent/…`."""
        tokens = dict(token.split("/", 1) for token in user_agent.split() if "/" in token)
        return cls(
            agent=tokens.get("agent", ""),
            live_system=tokens.get("ls", ""),
            component=tokens.get("component", ""),
            reason=tokens.get("reason", ""),
            tags=frozenset(unquote(key) for key in tokens.get("tags", "").split(",") if key),
        )


@dataclass(frozen=True)
class Call:
    """One call to a cloud, parsed, before it is carried out."""

    actor: Actor
    access_key: str
    service: str
    operation: str
    region: str
    parameters: Mapping[str, Any]
    is_write: bool
    origin: Origin
    user_agent: str
    resource_ids: tuple[str, ...] = ()
    page: int = 1

    def __str__(self) -> str:
        return f"{self.service}:{self.operation} by {self.actor}"


@dataclass(frozen=True)
class Filter:
    """Which calls something is about; what is left empty fits every call. Names may hold `*` (`Describe*`)."""

    service: str = "*"
    operation: str = "*"
    actor: Actor | None = None
    resource: str = "*"
    writes_only: bool = False

    def fits(self, call: Call) -> bool:
        return (
            fnmatchcase(call.service, self.service)
            and fnmatchcase(call.operation, self.operation)
            and self.actor in (None, call.actor)
            and (call.is_write or not self.writes_only)
            and (self.resource == "*" or any(fnmatchcase(one, self.resource) for one in call.resource_ids))
        )


@dataclass(frozen=True)
class RecordedCall:
    """A call with its answer: `status` is the HTTP status, 0 where the connection was cut; `effect` says whether the
    call reached the cloud and was accepted by it, whatever answer the client then got."""

    call: Call
    status: int
    error: str
    effect: bool
    when: float = field(default_factory=time.time)

    @property
    def actor(self) -> Actor:
        return self.call.actor

    @property
    def service(self) -> str:
        return self.call.service

    @property
    def operation(self) -> str:
        return self.call.operation

    @property
    def is_write(self) -> bool:
        return self.call.is_write

    @property
    def origin(self) -> Origin:
        return self.call.origin

    @property
    def resource_ids(self) -> tuple[str, ...]:
        return self.call.resource_ids

    def as_json(self) -> dict[str, Any]:
        return {
            "when": self.when,
            "actor": self.actor,
            "service": self.service,
            "operation": self.operation,
            "region": self.call.region,
            "resourceIds": list(self.resource_ids),
            "isWrite": self.is_write,
            "status": self.status,
            "error": self.error,
            "effect": self.effect,
            "agent": self.origin.agent,
            "liveSystem": self.origin.live_system,
            "component": self.origin.component,
            "reason": self.origin.reason,
            "userAgent": self.call.user_agent,
        }


class CallLog:
    """The calls so far, oldest first. Safe to use from many threads; iterating sees a snapshot."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[RecordedCall] = []

    def append(self, call: RecordedCall) -> None:
        with self._lock:
            self._calls.append(call)

    def clear(self) -> None:
        with self._lock:
            self._calls.clear()

    def all(self) -> list[RecordedCall]:
        with self._lock:
            return list(self._calls)

    def find(
        self,
        service: str = "*",
        operation: str = "*",
        *,
        actor: Actor | None = None,
        resource: str = "*",
        writes_only: bool = False,
    ) -> list[RecordedCall]:
        wanted = Filter(service, operation, actor, resource, writes_only)
        return [recorded for recorded in self.all() if wanted.fits(recorded.call)]

    def count(
        self,
        service: str = "*",
        operation: str = "*",
        *,
        actor: Actor | None = None,
        resource: str = "*",
        writes_only: bool = False,
    ) -> int:
        return len(self.find(service, operation, actor=actor, resource=resource, writes_only=writes_only))

    def __iter__(self) -> Iterator[RecordedCall]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self.all())
