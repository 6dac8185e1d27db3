"""Following events for as long as somebody watches: a control plane that restarts or a cut connection ends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import stamina

from fractal_cloud.cli.client import ControlPlane
from fractal_cloud.cli.errors import Unreachable
from fractal_cloud.cli.output import warn
from fractal_cloud.model.backoff import Backoff

BACKOFF = Backoff.in_seconds(0.2, 5.0, jitter=0.2)


def follow(control: ControlPlane, path: str, seen: int) -> Iterator[Any]:
    """Events after the number ``seen``, in order, each once; a stream that ends is taken up where it ended.

    A refusal (no such LiveSystem, a token that was revoked) is raised: no other try would change it.
    """
    # Its own hooks would log every try, and with structlog's defaults to standard output, among the events.
    stamina.instrumentation.set_on_retry_hooks(())
    while True:
        for attempt in stamina.retry_context(
            on=_RetryWithWarning().retry,
            attempts=None,
            timeout=None,
            **BACKOFF.for_stamina(),
        ):
            with attempt:
                for event in _until_it_ends(control, path, seen):
                    seen = int(event["seq"])
                    yield event


def _until_it_ends(control: ControlPlane, path: str, seen: int) -> Iterator[Any]:
    """The events of one connection; raises ``Unreachable`` if it brought none, so that the next try waits longer."""
    brought = False
    try:
        for event in control.stream(path, seen):
            brought = True
            yield event
    except Unreachable:
        if not brought:
            raise
        return
    if not brought:
        raise Unreachable(f"the control plane at {control.url} ended the stream")


class _RetryWithWarning:
    """Retries for as long as the control plane is unreachable, and warns of it once, however many tries follow."""

    def __init__(self) -> None:
        self._warned = False

    def retry(self, error: Exception) -> bool:
        """Return whether to try again, with a warning the first time."""
        if not isinstance(error, Unreachable):
            return False
        if not self._warned:
            warn(f"{error.cause}: following on as soon as it answers again")
            self._warned = True
        return True
