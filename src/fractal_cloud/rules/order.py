"""In which order components come: what depends on others comes after them. Links order nothing (L2).

Whether a component may be created or deleted at all is not decided here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter


def order(dependencies: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Arrange ids in waves: each id depends only on ids of earlier waves, and stands in the earliest one it can.

    Within a wave ids keep the order of the mapping. Dependencies that are no key of the mapping order nothing.
    For deleting, read the waves backwards. Raises ``ValueError`` naming the cycle if there is one.
    """
    waves, cycle = arrange(dependencies)
    if cycle:
        raise ValueError(f"dependency cycle: {' → '.join(cycle)}")
    return waves


def arrange(dependencies: Mapping[str, Collection[str]]) -> tuple[list[list[str]], list[str] | None]:
    """The waves of ``order`` as far as cycles let them come, and one of the cycles (see ``find_cycle``)."""
    cycle = None
    sorter = _sorter(dependencies)
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = _forwards(error)
    position = {name: index for index, name in enumerate(dependencies)}
    waves = []
    while wave := sorted(sorter.get_ready(), key=position.__getitem__):
        sorter.done(*wave)
        waves.append(wave)
    return waves, cycle


def find_cycle(dependencies: Mapping[str, Collection[str]]) -> list[str] | None:
    """Name one cycle: each id depends on the next, and the last is the first again. None if there is no cycle."""
    try:
        _sorter(dependencies).prepare()
    except CycleError as error:
        return _forwards(error)
    return None


def _sorter(dependencies: Mapping[str, Collection[str]]) -> TopologicalSorter[str]:
    return TopologicalSorter(
        {name: [other for other in needed if other in dependencies] for name, needed in dependencies.items()}
    )


def _forwards(error: CycleError) -> list[str]:
    cycle: list[str] = error.args[1]  # each is needed by the next: turned round, each depends on the next
    return cycle[::-1]
