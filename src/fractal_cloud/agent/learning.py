"""Types that a family lacks, asked of the cloud itself: when the control plane asks, and before one is served.

What the answer must be like is in ``offers.learned_types``; which types are served, in ``served_types``.
"""

from __future__ import annotations

import time
from typing import Final

import structlog

from fractal_cloud.agent.isolation import read_safely
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import ServedTypes
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.offers.learned_types import learned_errors
from fractal_cloud.offers.offer import Cloud

log = structlog.get_logger()

LEARN_SECONDS: Final = 6.0
"""How long, in seconds, a cloud may take to say what a type is: somebody waits for their deploy."""


class Learner:
    """Asks clouds about types. ``retry_after``: how long, in seconds, a type that was not learned is left alone."""

    def __init__(self, types: ServedTypes, watchdog: Watchdog, retry_after: float) -> None:
        self._types = types
        self._watchdog = watchdog
        self._retry_after = retry_after
        self._tried: dict[tuple[str, str], float] = {}

    def learn(self, cloud: Cloud, component_type: str) -> TypeFacts | None:
        """What a type is, as the cloud says; None where it has none. Raises ``CloudError`` where it does not say."""
        served = self._types.get(component_type)
        if served is not None:
            return served.facts
        family = self._types.family_of(component_type)
        if family is None:
            return None
        what, key = f"the family {family.name!r}", ("learn", family.name, component_type)
        learn = family.learn
        found = read_safely(self._watchdog, key, what, lambda _: learn(cloud, component_type), seconds=LEARN_SECONDS)
        if found is None:
            return None
        problem = next(learned_errors(found, component_type, family), "")
        if problem:
            raise Unreadable(f"what the cloud says of {component_type} cannot be used: {problem}")
        return found

    def learn_lacking(self, held: HeldScope) -> bool:
        """Ask about the types that are declared in a scope and that nobody here knows; True if one is known now."""
        lacking = [name for name in sorted(held.work.unserved) if self._types.family_of(name) is not None]
        return sum(self._is_learned(held, name) for name in lacking) > 0

    def _is_learned(self, held: HeldScope, component_type: str) -> bool:
        now, key = time.monotonic(), (held.scope.key, component_type)
        if component_type in self._types:
            return True
        if now - self._tried.get(key, -self._retry_after) < self._retry_after:
            return False
        self._tried[key] = now
        try:
            found = self.learn(held.cloud, component_type)
        except CloudError as error:
            log.warning("type cannot be learned", type=component_type, scope=held.scope.key, error=error.message)
            return False
        return found is not None and component_type in self._types
