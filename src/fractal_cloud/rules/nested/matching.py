"""Which elements of two lists are the same, where their order says nothing. Pure.

Elements are compared by a function of the caller's, so what «same» means is not known here. Bounded in what it costs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

MOST_PAIRS = 20_000
"""How many pairs of one list are compared; beyond that an element counts as no other's match."""

Same = Callable[[int, int], bool]


def matched(ours: int, theirs: int, buckets: Callable[[int], Sequence[int]], same: Same) -> dict[int, int]:
    """The largest pairing of so many elements with so many others; ``buckets``: those that may be the same as one."""
    pairs = 0
    candidates: list[list[int]] = []
    for one in range(ours):
        found = []
        for other in buckets(one):
            pairs += 1
            if pairs > MOST_PAIRS:
                break
            if other < theirs and same(one, other):
                found.append(other)
        candidates.append(found)
    taken: dict[int, int] = {}
    for one in sorted(range(ours), key=lambda at: len(candidates[at])):
        _augment(one, candidates, taken)
    return {ours_at: theirs_at for theirs_at, ours_at in sorted(taken.items(), key=lambda pair: pair[1])}


def _augment(start: int, candidates: Sequence[Sequence[int]], taken: dict[int, int]) -> None:
    """Find a partner for one more element; others give theirs up where they have another one."""
    came_from: dict[int, int] = {}
    waiting = [start]
    while waiting:
        one = waiting.pop()
        for other in candidates[one]:
            if other in came_from:
                continue
            came_from[other] = one
            if other in taken:
                waiting.append(taken[other])
                continue
            _flip(other, start, came_from, taken)
            return


def _flip(free: int, start: int, came_from: dict[int, int], taken: dict[int, int]) -> None:
    partners = {one: other for other, one in taken.items()}
    other: int | None = free
    while other is not None:
        one = came_from[other]
        before = partners.get(one)
        taken[other] = one
        other = None if one == start else before


def by_key(keys: Sequence[str]) -> dict[str, list[int]]:
    """The places of each key."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        found[key].append(place)
    return found
