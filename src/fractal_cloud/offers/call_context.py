"""For which component this thread calls a cloud: what the user agent says, and which writing requests were sent (C7).

All providers share it: a session sends ``user_agent()`` with every call, which counts it, and passes the ids of writing
requests to ``note_request()``.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from urllib.parse import quote

from fractal_cloud import __version__
from fractal_cloud.model.errors import Throttled


@dataclass(frozen=True, slots=True)
class CallContext:
    """The component and the reason of calls; collects the provider's request ids for the journal (C7).

    ``tags``: the user's own tags that a call writes; their keys are named, so that a log shows which were meant.
    """

    live_system_id: str
    component_id: str
    reason: str
    request_ids: list[str] = field(default_factory=list)
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class CallCount:
    """The calls to a cloud, from however many threads: all that were sent, and those that failed.

    ``throttles``: the cloud wanted fewer calls; ``errors``: whatever else went wrong.
    """

    calls: int = 0
    throttles: int = 0
    errors: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add_call(self) -> None:
        """Count a request that is about to be sent."""
        with self._lock:
            self.calls += 1

    def add_error(self, error: Exception) -> None:
        """Count an error."""
        with self._lock:
            if isinstance(error, Throttled):
                self.throttles += 1
            else:
                self.errors += 1


_count: ContextVar[CallCount | None] = ContextVar("fractal_cloud_call_count", default=None)


@contextmanager
def counting(count: CallCount) -> Iterator[CallCount]:
    """Count every call inside, also those of threads that were given this context."""
    token = _count.set(count)
    try:
        yield count
    finally:
        _count.reset(token)


def count_error(error: Exception) -> None:
    """Count an error that came of a call."""
    count = _count.get()
    if count is not None:
        count.add_error(error)


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
    """The user agent of a call of this thread: version, LiveSystem, component and reason, for the vendor's audit log.

    It is asked for once with every request that is sent, and counts it.
    """
    count = _count.get()
    if count is not None:
        count.add_call()
    context = _current.get()
    if context is None:
        return f"fractal-cloud/{__version__} reason/read"
    tags = f" tags/{','.join(quote(key, safe='') for key in sorted(context.tags))}" if context.tags else ""
    return (
        f"fractal-cloud/{__version__} ls/{_token(context.live_system_id)} "
        f"component/{_token(context.component_id)} reason/{_token(context.reason)}{tags}"
    )


def _token(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text) or "-"
