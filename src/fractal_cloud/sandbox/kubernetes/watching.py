"""Watches: what happens to objects, told as it happens.

A watch waits in short slices, so that what only time brings about happens while somebody waits for it, and so that it
notices soon that its client is gone or the server stops.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from fractal_cloud.sandbox.kubernetes.errors import ApiError, gone
from fractal_cloud.sandbox.kubernetes.forms import form_of, shown_object
from fractal_cloud.sandbox.kubernetes.kinds import Object
from fractal_cloud.sandbox.kubernetes.reading import selection_of
from fractal_cloud.sandbox.kubernetes.request import KubeRequest
from fractal_cloud.sandbox.kubernetes.selecting import Selection
from fractal_cloud.sandbox.kubernetes.store import Event, Store

__all__ = ["watch"]

_SLICE = 0.1
_LONGEST = 1800


def watch(request: KubeRequest, store: Store, settle: Callable[[], None]) -> Iterator[bytes]:
    """Yield the lines of a watch; empty ones while nothing happens."""
    selection = selection_of(request)
    deadline = time.monotonic() + (request.number("timeoutSeconds") or _LONGEST)
    wanted = request.query.get("resourceVersion", "")
    wants_state = request.query.get("sendInitialEvents") == "true"
    with store.changed:
        version = request.number("resourceVersion") or 0
        state: list[Object] = []
        if wants_state or wanted in ("", "0"):
            version = store.version
            state = store.items(request.target.kind, request.target.namespace)
    lines = _Lines(request)
    for item in state:
        if selection.fits(item):
            yield lines.line("ADDED", item)
    if wants_state:
        yield lines.bookmark(version, {"k8s.io/initial-events-end": "true"})
    while time.monotonic() < deadline:
        with store.changed:
            settle()
            if store.version <= version:
                store.changed.wait(min(_SLICE, max(deadline - time.monotonic(), 0)))
            events = store.since(version)
            latest = store.version
        if events is None:
            yield lines.error(gone(f"too old resource version: {version} ({latest})"))
            return
        version = latest
        told = [line for event in events if (line := _told(request, selection, event, lines))]
        yield b"".join(told)


def _told(request: KubeRequest, selection: Selection, event: Event, lines: _Lines) -> bytes:
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
