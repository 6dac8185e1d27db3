"""The jobs there are: every module of this package that holds ``JOBS`` takes part by being there.

A job is a name, a sentence that says what it measures, its place in the run, and what yields its results.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import benchmarks
from benchmarks.result import Result
from benchmarks.rig import Canned, canned_cloud, settled_work
from benchmarks.stock import VPC, Declared


class Stage:
    """What jobs may use, made when first asked for and shared by all: the canned cloud, a folder, works at rest."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._works: dict[int, Path] = {}

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Let go of everything: whoever comes next begins on an empty stage."""
        self._works.clear()
        for made in ("canned", "folder"):
            self.__dict__.pop(made, None)
        self._open.close()

    @cached_property
    def canned(self) -> Canned:
        """The cloud of canned pages, at which the AWS SDK of this process and its children is pointed from now on."""
        return self._open.enter_context(canned_cloud())

    @cached_property
    def folder(self) -> Path:
        """A folder that goes with the run."""
        return Path(self._open.enter_context(TemporaryDirectory()))

    def work(self, count: int) -> Path:
        """The work of a scope at rest with so many VPCs, as a file: children take it from there as from the wire."""
        if count not in self._works:
            declared = Declared(VPC, count)
            self.canned.stock(declared.lots)
            path = self.folder / f"{count}.json"
            path.write_text(settled_work(declared).model_dump_json(by_alias=True))
            self._works[count] = path
        return self._works[count]


@dataclass(frozen=True, slots=True)
class Job:
    """One job; ``order`` is its place in the run."""

    name: str
    title: str
    run: Callable[[Stage], Iterator[Result]]
    order: int = 100


def all_jobs() -> list[Job]:
    """Every job of every module, in the order of the run."""
    found: list[Job] = []
    for module in pkgutil.iter_modules(benchmarks.__path__, "benchmarks."):
        if module.name != "benchmarks.__main__":
            found.extend(getattr(importlib.import_module(module.name), "JOBS", ()))
    return sorted(found, key=lambda job: (job.order, job.name))
