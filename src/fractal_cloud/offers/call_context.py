"""For which component this thread calls a cloud: what the user agent says, and which writing requests were sent (C7).

All providers share it: a session sends ``user_agent()`` with every call and passes the ids of writing requests to
``note_request()``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from fractal_cloud import __version__


@dataclass(frozen=True, slots=True)
class CallContext:
    """The component and the reason of calls; collects the provider's request ids for the journal (C7)."""

    live_system_id: str
    component_id: str
    reason: str
    request_ids: list[str] = field(default_factory=list)


_current: ContextVar[CallContext | None] = ContextVar("fractal_cloud_call_context", default=None)


@contextmanager
def calling_as(context: CallContext) -> Iterator[CallContext]:
    """Name the component and the reason in the user agent of every call inside; collect the request ids of writes."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def current_context() -> CallContext | None:
    """The context of this thread's calls; None while it only reads."""
    return _current.get()


def note_request(request_id: str) -> None:
    """Keep the provider's id of a writing request for the journal."""
    context = _current.get()
    if context is not None and request_id:
        context.request_ids.append(request_id)


def user_agent() -> str:
    """The user agent of this thread's calls: version, LiveSystem, component and reason, for the vendor's audit log."""
    context = _current.get()
    if context is None:
        return f"fractal-cloud/{__version__} reason/read"
    return (
        f"fractal-cloud/{__version__} ls/{_token(context.live_system_id)} "
        f"component/{_token(context.component_id)} reason/{_token(context.reason)}"
    )


def _token(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text) or "-"
