"""In whose name this thread calls a cloud: what is signed into every call, and which requests it made (C7).

The same for all providers: a session takes its user agent from ``purpose()`` and tells ``note_request()`` of writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from fractal_cloud import __version__


@dataclass(frozen=True, slots=True)
class Act:
    """In whose name calls are made; the provider's request ids are collected for the journal (C7)."""

    live_system_id: str
    component_id: str
    reason: str
    request_ids: list[str] = field(default_factory=list)


_current: ContextVar[Act | None] = ContextVar("fractal_cloud_act", default=None)


@contextmanager
def acting(act: Act) -> Iterator[Act]:
    """Sign every call this thread makes inside with who it is for and why; collect the request ids of writes."""
    token = _current.set(act)
    try:
        yield act
    finally:
        _current.reset(token)


def current_act() -> Act | None:
    """In whose name this thread calls now; None while it only reads."""
    return _current.get()


def note_request(request_id: str) -> None:
    """Keep the provider's id of a writing request for the journal."""
    act = _current.get()
    if act is not None and request_id:
        act.request_ids.append(request_id)


def purpose() -> str:
    """What the calls of this thread say of themselves in their user agent; the vendor's audit log shows it."""
    act = _current.get()
    if act is None:
        return f"fractal-cloud/{__version__} reason/read"
    return (
        f"fractal-cloud/{__version__} ls/{_token(act.live_system_id)} "
        f"component/{_token(act.component_id)} reason/{_token(act.reason)}"
    )


def _token(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text) or "-"
