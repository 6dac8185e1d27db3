"""What the suites over the whole registry need to know of Azure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fractal_cloud.model.component import Component
from fractal_sandbox import Sandbox
from tests.offers.azure import operator_actions
from tests.offers.azure.examples import EXAMPLES
from tests.offers.azure.worlds import AzureWorld
from tests.offers.suites import Case, Stage, Suite
from tests.offers.worlds import provider_world


@contextmanager
def stage(sandbox: Sandbox, folder: Path, kind: type[Component]) -> Iterator[Stage]:
    """One type in a world of its own."""
    with provider_world(sandbox, folder, AzureWorld) as world:
        yield Stage(world, operator_actions.example_of(kind, world.azure))


SUITE = Suite(
    provider="azure",
    cases={
        kind: Case(
            only_up=bool(case.only_up),
            immutable=bool(EXAMPLES[kind].immutable_changes),
            is_slow=case.is_slow,
            hazardous=bool(case.hazards),
        )
        for kind, case in operator_actions.CASES.items()
    },
    stage=stage,
    effects={kind.__name__: case.effects for kind, case in operator_actions.CASES.items()},
    always=("AzureNsg",),
    machine="AzureNsg",
    creates="createOrUpdate*",
)
