"""What every provider brings for the suites that run over the whole registry: found by walking this folder.

A provider's folder has a ``suite.py`` with a ``SUITE``, and ``VARIANTS`` of it if there are any. There is no list to
add one to.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pytest

from fractal_cloud.model.component import Component
from fractal_cloud.testing import Found, OfferExample
from fractal_sandbox import Sandbox
from tests.faults.worlds import FaultyWorld


@dataclass(frozen=True)
class Stage:
    """A world and the example of one type in it, with the actions of a person on it.

    ``others``: components that it needs, by name, where random histories are about them too.
    """

    world: FaultyWorld
    example: OfferExample
    others: Mapping[str, OfferExample] = field(default_factory=dict)


@runtime_checkable
class MakesAnew(Protocol):
    """OperatorActions that can delete and create again under the same name: another resource, with nobody's tags."""

    def make_anew(self, found: Found) -> None:
        """Do so."""


@dataclass(frozen=True)
class Case:
    """What must be known of a type before a world is made, to choose what is tried on it."""

    only_up: bool = False
    immutable: bool = False
    is_slow: bool = False
    hazardous: bool = False
    tags_frozen: bool = False


REFUSALS: Mapping[str, Mapping[str, Any]] = {
    "denied": {"status": 403, "code": "Forbidden"},
    "throttled": {"status": 429, "code": "TooManyRequests"},
    "failing": {"status": 500, "code": "InternalError"},
    "cut off": {"cut": True},
}


@dataclass(frozen=True)
class Suite:
    """``stage``: a world of its own for one type. ``cases``: every taggable type of the provider.

    ``effects``: how many effects the life of each type has at least (by class name): what is struck must not shrink
    unnoticed; a provider without them has crashes of its own elsewhere. ``always``: the types that are struck in the
    quick run too. ``whole``: the type whose example comes and goes as a whole LiveSystem, and how many effects that has
    at least. ``machine``: the type that random histories are about. ``refusals``: how lists are refused, as the knob
    ``fail`` takes it; ``lists`` and ``gets``: what those calls are named on the knobs, ``creates`` the creation.
    ``why_not``: why none of it can run here, if so. ``has_long_lives``: crashes are struck in the long run only.
    ``variant``: what distinguishes it from the provider's other suites; those with one run in the long run only.
    ``is_the_first``: the demands at the core of the contract are made of every type in the quick run too.
    """

    provider: str
    cases: Mapping[type[Component], Case]
    stage: Callable[[Sandbox, Path, type[Component]], AbstractContextManager[Stage]]
    effects: Mapping[str, int] = field(default_factory=dict)
    always: tuple[str, ...] = ()
    whole: tuple[str, int] | None = None
    machine: str = ""
    refusals: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: REFUSALS)
    lists: str = "list*"
    gets: str = "get*"
    creates: str = "create*"
    why_not: Callable[[], str] = str
    has_long_lives: bool = False
    variant: str = ""
    is_the_first: bool = False

    @property
    def key(self) -> str:
        """What it is called among all suites."""
        return f"{self.provider}{self.variant}"

    def kinds(self) -> dict[str, type[Component]]:
        """The types by their class names."""
        return {f"{kind.__name__}{self.variant}": kind for kind in self.cases}

    def is_quick(self, kind: str) -> bool:
        """Whether all that can be asked of a type is asked in the quick run."""
        return kind in self.always

    def is_frozen(self, kind: str) -> bool:
        """Whether nobody can change a tag of the type."""
        return self.cases[self.kinds()[kind]].tags_frozen

    def marks(self) -> list[pytest.MarkDecorator]:
        """What every test over this provider bears: that it is skipped, and why, where it cannot run."""
        reason = self.why_not()
        skipped = [pytest.mark.skip(reason=reason)] if reason else []
        return [*skipped, pytest.mark.soak] if self.variant else skipped


@cache
def suites() -> dict[str, Suite]:
    """Every provider's suites, by their names."""
    modules = [
        importlib.import_module(f"tests.offers.{path.parent.name}.suite")
        for path in sorted(Path(__file__).parent.glob("*/suite.py"))
    ]
    return {suite.key: suite for module in modules for suite in (module.SUITE, *getattr(module, "VARIANTS", ()))}


@cache
def kinds() -> dict[str, tuple[Suite, type[Component]]]:
    """Every taggable type of every provider, by its class's name."""
    return {name: (suite, kind) for suite in suites().values() for name, kind in suite.kinds().items()}
