"""A control plane in this process, called from several threads at once, as tests call it.

Starlette's client runs the application on an event loop of its own. A call of another thread that is still under way
when the loop ends is lost half-way: nobody receives its answer, and the loop waits for that for ever. So calls are
counted here, and the loop ends after the last one.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Final

from starlette.testclient import TestClient

STOP_SECONDS: Final = 30.0
"""How long, in seconds, calls under way may take to end once the control plane stops."""


class InProcessClient(TestClient):
    """A client of a control plane in this process; `with` starts and stops it."""

    def __init__(self, app: Any, **more: Any) -> None:
        self._calls = 0
        self._changed = threading.Condition()
        super().__init__(app, **more)

    def send(self, *given: Any, **more: Any) -> Any:
        """Send a request, counted until it is answered."""
        with self._changed:
            self._calls += 1
        try:
            return super().send(*given, **more)
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()

    @property
    def calls_under_way(self) -> int:
        """How many requests were sent and not answered yet."""
        return self._calls

    def end_calls(self) -> None:
        """End every wait at the control plane, and let the calls that are under way be answered."""
        self.app.state.store.signals.close()  # type: ignore[attr-defined]  # create_app() made it
        with self._changed:
            ended = self._changed.wait_for(lambda: not self._calls, STOP_SECONDS)
        assert ended, f"{self._calls} calls were still under way {STOP_SECONDS:g} s after the control plane stopped"

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Stop the control plane once the calls under way were answered."""
        try:
            self.end_calls()
        finally:
            super().__exit__(exc_type, exc_value, traceback)
