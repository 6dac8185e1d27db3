"""The world in which generic types of AWS are tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fractal_sandbox import Sandbox
from tests.faults.worlds import FaultyWorld, faulty_world


class GenericWorld(FaultyWorld):
    """A world whose agent may do anything, and in which what generated values refer to need not be there.

    Its rights are tried where they are printed, and references where they are checked.
    """

    def prepare_cloud(self) -> None:
        self.sandbox.aws.lift_limits()
        self.cloud.knobs.checks_references = False


@contextmanager
def generic_world(sandbox: Sandbox, folder: Path) -> Iterator[GenericWorld]:
    """A world over a sandbox that was reset."""
    with faulty_world(sandbox, folder, GenericWorld) as made:
        made.prepare_cloud()
        yield made
