"""What is held for good is set aside from the search for garbage, again once it has grown."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fractal_cloud.agent.gc_freeze import Heap


@pytest.fixture(autouse=True)
def taken_back() -> Iterator[None]:
    """The objects of the other tests are looked through as ever."""
    yield
    gc.unfreeze()


def test_what_is_held_is_frozen_once_and_again_when_it_has_grown() -> None:
    heap = Heap()
    assert heap.freeze(0)
    assert gc.get_freeze_count() > 0
    assert not heap.freeze(0)
    assert heap.freeze(100)
    assert not heap.freeze(125)
    assert heap.freeze(126)


def test_reference_cycles_that_were_frozen_and_dropped_are_collected_the_next_time() -> None:
    class Ring:
        def __init__(self) -> None:
            self.itself = self

    heap = Heap()
    ring = [Ring()]
    heap.freeze(1)
    ring.clear()
    gc.collect()
    assert any(isinstance(found, Ring) for found in _frozen())
    heap.freeze(2)
    assert not any(isinstance(found, Ring) for found in _frozen())


def _frozen() -> list[object]:
    gc.unfreeze()
    found = gc.get_objects()
    gc.freeze()
    return found
