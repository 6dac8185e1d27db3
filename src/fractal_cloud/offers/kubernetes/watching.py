"""Waking a cycle early: streams of changes of what carries our label, in one namespace. No change is read from them.

A stream continues where the last one ended, so nothing between two of them is missed; where the server has forgotten
that place, it begins anew, and wakes. Bookmarks move the place on while nothing of ours changes. A stream that ends, is
refused or stands still does no harm: the cycles go on without it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from fractal_cloud.model.backoff import Backoff
from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.model.tags import OURS
from fractal_cloud.offers.kubernetes.calls import HEADS, Call, Kubernetes, Stream
from fractal_cloud.offers.kubernetes.errors import GONE, error_of
from fractal_cloud.offers.kubernetes.kinds import ObjectKind
from fractal_cloud.offers.kubernetes.tags import MANAGED_BY

STREAM_SECONDS: Final = 300
SHORTEST_STREAM: Final = 10.0
BACKOFF = Backoff.in_seconds(1.0, 60.0)
SPACING: Final = 2.0
"""So many seconds lie between two wakes of one scope."""
_OF_OURS: Final = {"labelSelector": f"{MANAGED_BY}={OURS}"}
_HEAD: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})


class Spaced:
    """Wakes at once, and then again after some time: a storm of changes on one object does not make a cycle each.

    The last change is never without a wake after it.
    """

    def __init__(self, wake: Callable[[], None], seconds: float) -> None:
        self._wake = wake
        self._seconds = seconds
        self._lock = threading.Lock()
        self._next = 0.0
        self._is_over = False
        self._timer: threading.Timer | None = None

    def __call__(self) -> None:
        """Note a change, from any thread."""
        with self._lock:
            if self._timer is not None or self._is_over:
                return
            left = self._next - time.monotonic()
            if left > 0:
                self._timer = threading.Timer(left, self._late)
                self._timer.daemon = True
                self._timer.start()
                return
            self._next = time.monotonic() + self._seconds
        self._wake()

    def _late(self) -> None:
        with self._lock:
            self._timer = None
            self._next = time.monotonic() + self._seconds
        self._wake()

    def stop(self) -> None:
        """Wake no more."""
        with self._lock:
            self._is_over = True
            if self._timer is not None:
                self._timer.cancel()


class Watch:
    """One stream per kind, each in a thread that ends with ``stop`` or with the process."""

    def __init__(self, cloud: Kubernetes, kinds: Collection[ObjectKind], wake: Callable[[], None]) -> None:
        self._cloud = cloud
        self._wake = Spaced(wake, SPACING)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._open: dict[ObjectKind, Stream] = {}
        for kind in sorted(kinds, key=lambda kind: kind.resource):
            threading.Thread(target=self._run, args=(kind,), name=f"watch {kind.plural}", daemon=True).start()

    def stop(self) -> None:
        """End all streams; returns at once."""
        self._stopping.set()
        self._wake.stop()
        with self._lock:
            streams = list(self._open.values())
        for stream in streams:
            stream.close()

    def _run(self, kind: ObjectKind) -> None:
        failures, since, was_lost = 0, "", False
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                if not since:
                    since = self._place(kind)
                    if was_lost:
                        self._notice()
                for event in self._events(kind, since):
                    failures = 0
                    since = _place_of(event) or since
                    if event.get("type") in _CHANGES:
                        self._notice()
                if time.monotonic() - began >= SHORTEST_STREAM:
                    continue
            except _Forgotten:
                since, was_lost = "", True
            except (CloudError, ValueError):
                pass  # the cycles report what is wrong, if anything
            # Whatever ended it, or ended it at once, the next try comes later each time.
            failures += 1
            self._stopping.wait(BACKOFF.delay(failures).total_seconds())

    def _notice(self) -> None:
        if not self._stopping.is_set():
            self._wake()

    def _place(self, kind: ObjectKind) -> str:
        """Where a stream begins that has no place to continue at: now."""
        answer = self._cloud.server.send(Call("GET", self._path(kind), {**_OF_OURS, "limit": "1"}, accept=HEADS))
        if not answer.is_good:
            raise error_of(answer)
        return str(answer.body()["metadata"]["resourceVersion"])

    def _path(self, kind: ObjectKind) -> str:
        return kind.path(self._cloud.namespace)

    def _events(self, kind: ObjectKind, since: str) -> Iterator[dict[str, Any]]:
        query = {**_OF_OURS, "watch": "1", "resourceVersion": since, "timeoutSeconds": str(STREAM_SECONDS)}
        query["allowWatchBookmarks"] = "true"
        seconds = (5.0, STREAM_SECONDS + 30.0)
        try:
            stream = self._cloud.server.open(Call("GET", self._path(kind), query, seconds=seconds, accept=_HEAD))
        except Unreadable as refused:
            raise (_Forgotten() if refused.code == str(GONE) else refused) from refused
        with self._lock:
            self._open[kind] = stream
        try:
            if self._stopping.is_set():
                return  # stopped while it was being opened: nobody else closes it
            for line in stream:
                if self._stopping.is_set():
                    return
                yield _event(line)
        finally:
            with self._lock:
                self._open.pop(kind, None)
            stream.close()


class _Forgotten(Exception):
    """The server no longer knows the place at which a stream was to continue."""


def _place_of(event: dict[str, Any]) -> str:
    """The place of an event, at which the next stream continues; empty where it says none."""
    item = event.get("object")
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return str(metadata.get("resourceVersion") or "") if isinstance(metadata, dict) else ""


def _event(line: str) -> dict[str, Any]:
    """One line of a stream; raises ``ValueError`` where it is an error: in an event, or a bare ``Status``."""
    event = json.loads(line)
    said = event if isinstance(event, dict) and event.get("kind") == "Status" else None
    if isinstance(event, dict) and event.get("type") == "ERROR":
        said = event.get("object")
    if isinstance(said, dict) and said.get("code") == GONE:
        raise _Forgotten
    if not isinstance(event, dict) or event.get("type") == "ERROR" or event.get("kind") == "Status":
        raise ValueError(f"the stream ended: {line[:300]}")
    return event
