"""How a deploy or a delete is doing, from how its components are doing (C8). Pure.

Which components belong to a mutation, and what is frozen when a newer one takes its place, is the store's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fractal_cloud.model.status import SETTLED, MutationStatus, Status


@dataclass(frozen=True, slots=True)
class Progress:
    """One component as a mutation sees it.

    ``dealt_generation`` is the newest generation an agent has reported on: a failure that an older generation left
    behind says nothing about this one. A component that is gone for good is not listed.
    """

    component_id: str
    status: Status
    generation: int
    observed_generation: int
    dealt_generation: int = 0
    deleting: bool = False
    waits_for: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether it has reached its generation and rests there."""
        if self.deleting:
            return self.status is Status.DELETED
        return self.observed_generation >= self.generation and self.status in SETTLED

    @property
    def has_failed(self) -> bool:
        """Whether this generation was tried and did not work out."""
        tried = max(self.observed_generation, self.dealt_generation) >= self.generation
        return tried and self.status in (Status.FAILED, Status.MISSING)


def mutation_status(components: Iterable[Progress]) -> MutationStatus:
    """``Completed`` when all rest; ``Failed`` when nothing moves any more, but for what failed or waits on that."""
    unsettled = {component.component_id: component for component in components if not component.is_settled}
    if not unsettled:
        return MutationStatus.COMPLETED
    stuck = _stuck(unsettled)
    return MutationStatus.FAILED if len(stuck) == len(unsettled) else MutationStatus.IN_PROGRESS


def _stuck(unsettled: Mapping[str, Progress]) -> set[str]:
    """Those that failed, and all that wait on them, however far away."""
    waiting: dict[str, list[str]] = {}
    for component in unsettled.values():
        for other in component.waits_for:
            waiting.setdefault(other, []).append(component.component_id)
    stuck = {component_id for component_id, component in unsettled.items() if component.has_failed}
    reached = list(stuck)
    while reached:
        for other in waiting.get(reached.pop(), ()):
            if other not in stuck:
                stuck.add(other)
                reached.append(other)
    return stuck
