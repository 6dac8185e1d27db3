"""Watches: what happens to objects, streamed as it happens.

A watch waits in short slices, so that what only time brings about happens while somebody waits for it, and so that it
notices soon that its client is gone or the server stops.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from fractal_sandbox.kubernetes.errors import ApiError, gone, invalid_options
from fractal_sandbox.kubernetes.forms import form_of, shown_object
from fractal_sandbox.kubernetes.kinds import Object
from fractal_sandbox.kubernetes.reading import selection_of
from fractal_sandbox.kubernetes.request import KubeRequest
from fractal_sandbox.kubernetes.selecting import Selection
from fractal_sandbox.kubernetes.store import Event, Store

__all__ = ["watch"]

_SHORT, _LONG = 0.1, 1.0
_LONGEST = 1800
_NOT_OLDER = "NotOlderThan"


class Clock(Protocol):
    """What time brings about: whether anything waits for it, and making happen what is due."""

    @property
    def is_awaited(self) -> bool: ...

    def settle(self) -> None: ...


def watch(request: KubeRequest, store: Store, clock: Callable[[], Clock]) -> Iterator[bytes]:
    """Begin a watch, under the cloud's lock; returns its lines, with empty ones while nothing happens."""
    selection, lines = selection_of(request), _Lines(request)
    deadline = time.monotonic() + (request.number("timeoutSeconds") or _LONGEST)
    version = request.number("resourceVersion") or 0
    wants_state = request.query.get("sendInitialEvents") == "true"
    wants_bookmarks = request.query.get("allowWatchBookmarks") in ("1", "true")
    matches = request.query.get("resourceVersionMatch", "")
    if wants_state and matches != _NOT_OLDER:
        raise invalid_options(f"sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER}")
    if matches and "sendInitialEvents" not in request.query:
        raise invalid_options("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    begin: list[bytes] = []
    if wants_state or not version:
        version = store.version
        state = store.items(request.target.kind, request.target.namespace)
        begin = [lines.line("ADDED", item) for item in state if selection.fits(item)]
    if wants_state:
        begin.append(lines.bookmark(version, {"k8s.io/initial-events-end": "true"}))

    def stream() -> Iterator[bytes]:
        nonlocal version
        yield b"".join(begin)
        while time.monotonic() < deadline:
            with store.changed:
                clock().settle()
                if store.version <= version:
                    seconds = _SHORT if clock().is_awaited else _LONG
                    store.changed.wait(min(seconds, max(deadline - time.monotonic(), 0)))
                events = store.since(version)
                latest = store.version
            if events is None:
                yield lines.error(gone(f"too old resource version: {version} ({latest})"))
                return
            seen, version = version, latest
            shown = b"".join(_line_of(request, selection, event, lines) for event in events)
            yield shown or (lines.bookmark(version, {}) if wants_bookmarks and version > seen else b"")

    return stream()


def _line_of(request: KubeRequest, selection: Selection, event: Event, lines: _Lines) -> bytes:
    """Return the line of an event as this watch's selection sees it: what no longer fits it is gone to it."""
    namespace = request.target.namespace
    if event.resource != request.target.kind.resource:
        return b""
    if namespace and event.item["metadata"].get("namespace", "") != namespace:
        return b""
    fitted = event.before is not None and selection.fits(event.before)
    fits = event.type != "DELETED" and selection.fits(event.item)
    if fits:
        return lines.line("MODIFIED" if fitted else "ADDED", event.item)
    return lines.line("DELETED", event.item) if fitted else b""


class _Lines:
    """Writes events in the form that the client asked for; a table's columns come with the first only."""

    def __init__(self, request: KubeRequest) -> None:
        self._kind = request.target.kind
        self._query = request.query
        self._form = form_of(request.accept, is_list=False)
        self._is_first = True

    def line(self, kind: str, item: Object) -> bytes:
        shown = shown_object(self._kind, item, self._form, self._query)
        if self._form == "table" and not self._is_first:
            shown = {**shown, "columnDefinitions": None}
        self._is_first = False
        return _line(kind, shown)

    def bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(version), "annotations": annotations}
        return _line("BOOKMARK", {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata})

    def error(self, fault: ApiError) -> bytes:
        return _line("ERROR", fault.as_status())


def _line(kind: str, shown: Object) -> bytes:
    return json.dumps({"type": kind, "object": shown}).encode() + b"\n"
