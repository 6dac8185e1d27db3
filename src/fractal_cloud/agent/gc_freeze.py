"""Freezes what an agent holds for good, so that Python's garbage collector does not walk through it again.

Types, schemas, the SDKs' models and the components of all scopes are hundreds of thousands of objects. Walking through
them takes a tenth of a second and more, in which nothing else runs; left alone, Python does so in the middle of a
deploy. They are given back as ever when the last one lets go of them: only rings of objects wait for the next time.
"""

from __future__ import annotations

import gc
from typing import Final

GROWTH: Final = 1.25
"""How much more is held than at the last time before everything is gone through once more."""


class Heap:
    """The objects of this process, and how many components were held when they were frozen."""

    def __init__(self) -> None:
        self._held: int | None = None

    def freeze(self, held: int) -> bool:
        """Called at rest, with the number of components held; True if there was something to do."""
        if self._held is not None and held <= self._held * GROWTH:
            return False
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._held = held
        return True
