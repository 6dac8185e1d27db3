"""Which clouds the sandbox has: one `Mount` each, found by walking this folder. There is no list to add one to.

A provider's package brings `MOUNTS`, and loads its server only when one is started: asking for settings is quick.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import fractal_sandbox
from fractal_sandbox.calls import Actor
from fractal_sandbox.control_api import Cloud

__all__ = ["Mount", "mounts", "nothing"]

Environment: TypeAlias = Callable[[str, Actor, Path | None], Mapping[str, str]]


def nothing(url: str, actor: Actor, folder: Path | None) -> Mapping[str, str]:
    """The settings of a mount that another mount's settings lead to."""
    del url, actor, folder
    return {}


@dataclass(frozen=True)
class Mount:
    """One cloud of the sandbox.

    `name` is unique, `provider` is whose agent serves it, and `path` is where it answers (empty: at the root). `load`
    makes it. `environment` returns the variables that point the vendor's own tools and our agent at it, from the
    sandbox's address, whose tools they are, and a folder for files (None: leave files away). `clears` are the
    beginnings of the names of variables that could lead an agent to the real cloud instead. `also`: paths at the root
    that a vendor's tool insists on; there it sees them whole.
    """

    name: str
    provider: str
    title: str
    path: str
    load: Callable[[], Cloud]
    environment: Environment = nothing
    clears: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


@cache
def mounts() -> tuple[Mount, ...]:
    """Every cloud there is, by name."""
    return tuple(sorted(_found(), key=lambda mount: mount.name))


def _found() -> Iterator[Mount]:
    for found in pkgutil.iter_modules(fractal_sandbox.__path__, fractal_sandbox.__name__ + "."):
        if found.ispkg:
            yield from getattr(importlib.import_module(found.name), "MOUNTS", ())
