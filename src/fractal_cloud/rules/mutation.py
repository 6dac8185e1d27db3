"""How a deploy or a delete is doing, from how its components are doing (C8). Pure.

Which components belong to a mutation, and what is frozen when a newer one takes its place, is the store's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fractal_cloud.model.status import SETTLED, MutationStatus, Status


@dataclass(frozen=True, slots=True)
class Progress:
    """One component as a mutation sees it.

    ``dealt_generation`` is the newest generation an agent has reported on: a failure that an older generation left
    behind says nothing about this one. ``stuck``: nothing goes on with it until a person acts; a new generation begins
    without it. A component that is gone for good is not listed.
    """

    component_id: str
    status: Status
    generation: int
    observed_generation: int
    dealt_generation: int = 0
    deleting: bool = False
    waits_for: tuple[str, ...] = ()
    stuck: bool = False

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

    @property
    def is_halted(self) -> bool:
        """Whether it makes no progress by itself, and neither does what waits for it."""
        return self.has_failed or self.stuck


def mutation_status(components: Iterable[Progress]) -> MutationStatus:
    """``Completed`` when all are settled; ``Failed`` when all others are halted, or wait for one that is."""
    known = list(components)
    unsettled = [component for component in known if not component.is_settled]
    if not unsettled:
        return MutationStatus.COMPLETED
    held_up = _held_up(known)
    if all(component.component_id in held_up for component in unsettled):
        return MutationStatus.FAILED
    return MutationStatus.IN_PROGRESS


def causes(components: Iterable[Progress]) -> list[str]:
    """The ids of the components because of which a mutation is ``Failed``, in the order given.

    One that rests where it is counts only if something that is not settled waits for it, however far away.
    """
    known = list(components)
    awaited = _awaited(known)
    return [c.component_id for c in known if c.is_halted and (not c.is_settled or c.component_id in awaited)]


def _awaited(components: Sequence[Progress]) -> set[str]:
    """All that those wait for which are not settled, however far away."""
    waits_for = {component.component_id: component.waits_for for component in components}
    reached = [other for component in components if not component.is_settled for other in component.waits_for]
    found: set[str] = set()
    while reached:
        other = reached.pop()
        if other not in found:
            found.add(other)
            reached.extend(waits_for.get(other, ()))
    return found


def _held_up(components: Sequence[Progress]) -> set[str]:
    """Those that are halted, and all that wait for them, however far away."""
    waiting: dict[str, list[str]] = {}
    for component in components:
        for other in component.waits_for:
            waiting.setdefault(other, []).append(component.component_id)
    found = {component.component_id for component in components if component.is_halted}
    reached = list(found)
    while reached:
        for other in waiting.get(reached.pop(), ()):
            if other not in found:
                found.add(other)
                reached.append(other)
    return found
