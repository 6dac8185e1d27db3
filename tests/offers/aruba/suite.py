"""What the suites over the whole registry need to know of Aruba Cloud."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fractal_cloud.model.component import Component
from fractal_cloud.offers.aruba.cloud_server import ArubaCloudServer
from fractal_sandbox import Sandbox
from tests.offers.aruba import operator_actions
from tests.offers.aruba.examples import EXAMPLES
from tests.offers.aruba.worlds import ArubaWorld
from tests.offers.suites import Case, Stage, Suite
from tests.offers.worlds import provider_world


@contextmanager
def stage(sandbox: Sandbox, folder: Path, kind: type[Component]) -> Iterator[Stage]:
    """One type in a world of its own."""
    with provider_world(sandbox, folder, ArubaWorld) as world:
        yield Stage(world, operator_actions.example_of(kind, world.aruba))


SUITE = Suite(
    provider="aruba",
    cases={
        kind: Case(
            only_up=bool(case.only_up),
            immutable=bool(EXAMPLES[kind].immutable_changes),
            is_slow=True,
            hazardous=bool(case.hazards),
            tags_frozen=kind is ArubaCloudServer,
        )
        for kind, case in operator_actions.CASES.items()
    },
    stage=stage,
    effects={kind.__name__: case.effects for kind, case in operator_actions.CASES.items()},
    always=("ArubaSecurityGroup", "ArubaCloudServer"),
    machine="ArubaBlockStorage",
)
