"""Waking a cycle early: streams of changes of what carries our label, in one namespace. No change is read from them.

A stream that ends, is refused or stands still does no harm: the cycles go on without it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from fractal_cloud.model.backoff import Backoff
from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.tags import OURS
from fractal_cloud.offers.kubernetes.calls import Call, Kubernetes, Stream
from fractal_cloud.offers.kubernetes.errors import error_of
from fractal_cloud.offers.kubernetes.kinds import ObjectKind
from fractal_cloud.offers.kubernetes.tags import MANAGED_BY

STREAM_SECONDS: Final = 300
SHORTEST_STREAM: Final = 10.0
BACKOFF = Backoff.in_seconds(1.0, 60.0)
_CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})


class Watch:
    """One stream per kind, each in a thread that ends with ``stop`` or with the process."""

    def __init__(self, cloud: Kubernetes, kinds: Collection[ObjectKind], wake: Callable[[], None]) -> None:
        self._cloud = cloud
        self._wake = wake
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._open: dict[ObjectKind, Stream] = {}
        for kind in sorted(kinds, key=lambda kind: kind.resource):
            threading.Thread(target=self._run, args=(kind,), name=f"watch {kind.plural}", daemon=True).start()

    def stop(self) -> None:
        """End all streams; returns at once."""
        self._stopping.set()
        with self._lock:
            streams = list(self._open.values())
        for stream in streams:
            stream.close()

    def _run(self, kind: ObjectKind) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                for event in self._events(kind):
                    failures = 0
                    if event.get("type") in _CHANGES and not self._stopping.is_set():
                        self._wake()
                if time.monotonic() - began >= SHORTEST_STREAM:
                    continue
            except (CloudError, ValueError):
                pass  # the cycles report what is wrong, if anything
            # Whatever ended it, or ended it at once, the next try comes later each time.
            failures += 1
            self._stopping.wait(BACKOFF.delay(failures).total_seconds())

    def _events(self, kind: ObjectKind) -> Iterator[dict[str, Any]]:
        ours = {"labelSelector": f"{MANAGED_BY}={OURS}"}
        path = kind.path(self._cloud.namespace)
        answer = self._cloud.server.send(Call("GET", path, {**ours, "limit": "1"}))
        if not answer.is_good:
            raise error_of(answer)
        since = str(answer.body()["metadata"]["resourceVersion"])
        query = {**ours, "watch": "1", "resourceVersion": since, "timeoutSeconds": str(STREAM_SECONDS)}
        stream = self._cloud.server.open(Call("GET", path, query, seconds=(5.0, STREAM_SECONDS + 30.0)))
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


def _event(line: str) -> dict[str, Any]:
    """One line of a stream; raises ``ValueError`` where it is an error: in an event, or a bare ``Status``."""
    event = json.loads(line)
    if not isinstance(event, dict) or event.get("type") == "ERROR" or event.get("kind") == "Status":
        raise ValueError(f"the stream ended: {line[:300]}")
    return event
