"""What every provider brings for the suites that run over the whole registry: found by walking this folder.

A provider's folder has a ``suite.py`` with a ``SUITE``. There is no list to add one to.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.sandbox import Sandbox
from fractal_cloud.testing import OfferExample
from tests.faults.worlds import FaultyWorld


@dataclass(frozen=True)
class Stage:
    """A world and the example of one type in it, with a person's hands on it."""

    world: FaultyWorld
    example: OfferExample


@dataclass(frozen=True)
class Case:
    """What must be known of a type before a world is made, to choose what is tried on it."""

    only_up: bool = False
    immutable: bool = False
    takes_time: bool = False
    hazardous: bool = False


@dataclass(frozen=True)
class Suite:
    """``stage``: a world of its own for one type. ``cases``: every taggable type of the provider.

    ``effects``: how many effects the life of a type has at least; what is struck must not shrink unnoticed.
    ``always``: the types whose crashes are tried in the quick run; ``refusals``: how lists are refused, as the knob
    ``fail`` takes it; ``lists``: what list calls are named on the knobs. ``why_not``: why it cannot run here.
    """

    provider: str
    cases: Mapping[type[Component], Case]
    stage: Callable[[Sandbox, Path, type[Component]], AbstractContextManager[Stage]]
    effects: Mapping[str, int] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    refusals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    lists: str = "list*"
    cloud: str = ""
    why_not: Callable[[], str] = str

    def kinds(self) -> dict[str, type[Component]]:
        """The types by their class names."""
        return {kind.__name__: kind for kind in self.cases}


@cache
def suites() -> dict[str, Suite]:
    """Every provider's suite, by its name."""
    found = [
        importlib.import_module(f"tests.offers.{path.parent.name}.suite").SUITE
        for path in sorted(Path(__file__).parent.glob("*/suite.py"))
    ]
    return {suite.provider: suite for suite in found}


@cache
def kinds() -> dict[str, tuple[Suite, type[Component]]]:
    """Every taggable type of every provider, by its class's name."""
    return {kind.__name__: (suite, kind) for suite in suites().values() for kind in suite.cases}
