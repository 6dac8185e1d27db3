"""The objects, their versions, and what happened to them, in the order it happened.

Objects in here are never changed in place: every write puts a new one in the old one's place, so that a reader may
keep what it was given. All calls happen under the cloud's lock. What may be written is decided elsewhere.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from fractal_sandbox.kubernetes.kinds import Kind, Object

__all__ = ["Event", "Store", "now"]

_HISTORY = 20_000


@dataclass(frozen=True)
class Event:
    """Something that happened to an object; `before` is what it was until then."""

    version: int
    resource: str
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    item: Object
    before: Object | None = None


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """Objects by resource, namespace and name; one growing version for all of them."""

    def __init__(self, lock: threading.RLock) -> None:
        self.changed = threading.Condition(lock)
        # Not begun anew by a reset: a watch from before it must not take old versions for new ones.
        self.version = 100
        self.reset()

    def reset(self) -> None:
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}
        self._events: deque[Event] = deque(maxlen=_HISTORY)
        self.version += 1
        self.oldest = self.version

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        return self._objects.get(kind.resource, {}).get((namespace, name))

    def items(self, kind: Kind, namespace: str = "") -> list[Object]:
        """Return the objects of a kind in the order of their keys, as etcd does; of all namespaces without one."""
        found = self._objects.get(kind.resource, {})
        return [found[key] for key in sorted(found) if not namespace or key[0] == namespace]

    def all_in(self, namespace: str) -> list[tuple[str, Object]]:
        return [
            (resource, item)
            for resource, found in self._objects.items()
            for key, item in found.items()
            if key[0] == namespace
        ]

    def add(self, kind: Kind, item: Object) -> Object:
        """Keep a new object, with the identity that the server gives it."""
        metadata = {
            **item["metadata"],
            "uid": str(uuid.uuid4()),
            "creationTimestamp": now(),
        }
        return self._put(kind.resource, {**item, "metadata": metadata}, None)

    def replace(self, resource: str, item: Object) -> Object:
        """Put a new state in the place of the old one."""
        return self._put(resource, item, self._objects[resource][_key(item)])

    def remove(self, resource: str, item: Object) -> Object:
        """Take an object away; returns its last state, with the version of its end."""
        before = self._objects[resource].pop(_key(item))
        last = self._stamped(before)
        self._record(Event(self.version, resource, "DELETED", last, before))
        return last

    def since(self, version: int) -> list[Event] | None:
        """Return what happened after a version; None where that is no longer known."""
        if version < self.oldest - 1 or (
            self._events.maxlen == len(self._events) and version < self._events[0].version
        ):
            return None
        found: list[Event] = []
        for event in reversed(self._events):
            if event.version <= version:
                break
            found.append(event)
        return found[::-1]

    def _put(self, resource: str, item: Object, before: Object | None) -> Object:
        stamped = self._stamped(item)
        self._objects.setdefault(resource, {})[_key(item)] = stamped
        self._record(Event(self.version, resource, "MODIFIED" if before else "ADDED", stamped, before))
        return stamped

    def _stamped(self, item: Object) -> Object:
        self.version += 1
        return {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}

    def _record(self, event: Event) -> None:
        self._events.append(event)
        self.changed.notify_all()


def _key(item: Object) -> tuple[str, str]:
    metadata: dict[str, Any] = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
