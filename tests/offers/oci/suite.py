"""What the suites over the whole registry need to know of Oracle Cloud."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fractal_cloud.model.component import Component
from fractal_sandbox import Sandbox
from tests.offers.oci import operator_actions
from tests.offers.oci.examples import EXAMPLES
from tests.offers.oci.worlds import OciWorld
from tests.offers.suites import REFUSALS, Case, Stage, Suite
from tests.offers.worlds import provider_world


@contextmanager
def stage(sandbox: Sandbox, folder: Path, kind: type[Component]) -> Iterator[Stage]:
    """One type in a world of its own."""
    with provider_world(sandbox, folder, OciWorld) as world:
        yield Stage(world, operator_actions.example_of(kind, world.oci))


SUITE = Suite(
    provider="oci",
    cases={
        kind: Case(
            immutable=bool(EXAMPLES[kind].immutable_changes),
            is_slow=case.is_slow,
            hazardous=bool(case.hazards),
        )
        for kind, case in operator_actions.CASES.items()
    },
    stage=stage,
    effects={kind.__name__: case.effects for kind, case in operator_actions.CASES.items()},
    always=("OciVcn",),
    machine="OciVcn",
    refusals={**REFUSALS, "hidden": {"status": 404, "code": "NotAuthorizedOrNotFound"}},
)
