"""Watches of scopes between two cycles: where a provider's session can report changes, the next cycle begins early.

A watch only wakes; what changed is read by the cycle. Nothing depends on a session that fails or hangs at it (S24).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fractal_cloud.agent.isolation import try_session
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.offers.offer import Session


@dataclass(slots=True)
class Watch:
    """The watch of one scope. ``woken``: something changed in it; set by the session, from any thread.

    ``types``: the component types that are watched. ``end``: what ends the watch, where the provider began one.
    """

    woken: threading.Event = field(default_factory=threading.Event)
    types: frozenset[str] = frozenset()
    end: Callable[[], None] | None = None


class Watcher:
    """Begins and ends watches by the session of a scope's provider.

    ``wake`` is called, from any thread, when something changed in a watched scope.
    """

    def __init__(
        self,
        session_of: Callable[[str], Session],
        offers: Mapping[str, OfferFacts],
        watchdog: Watchdog,
        wake: Callable[[], None],
    ) -> None:
        self._session_of = session_of
        self._offers = offers
        self._watchdog = watchdog
        self._wake = wake

    def begin(self, watch: Watch, held: HeldScope) -> None:
        """Watch a scope for the types that are in it now; a watch for other types is replaced."""
        types = frozenset(tracked.type for tracked in held.work.tracked.values())
        if types == watch.types:
            return
        self.end(watch, held)
        watch.types = types
        scope = held.scope
        session = self._session_of(scope.provider)
        offers = [self._offers[component_type].own for component_type in sorted(types)]

        def wake() -> None:
            watch.woken.set()
            self._wake()

        watch.end = try_session(
            self._watchdog, ("watch", scope.provider), lambda: session.watch(scope, offers, wake), late=_end_late
        )

    def end(self, watch: Watch, held: HeldScope) -> None:
        """End a watch, if there is one."""
        end, watch.end, watch.types = watch.end, None, frozenset()
        if end is not None:
            try_session(self._watchdog, ("unwatch", held.scope.provider), end)


def _end_late(end: Callable[[], None] | None) -> None:
    """End a watch that began after it had been given up."""
    if end is not None:
        end()
