"""What the suites over the whole registry need to know of AWS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fractal_cloud.model.component import Component
from fractal_sandbox import Sandbox
from tests.faults.worlds import FaultyWorld, faulty_world
from tests.offers.aws import cases
from tests.offers.aws.examples import EXAMPLES
from tests.offers.suites import Case, Stage, Suite


class AwsWorld(FaultyWorld):
    """A world that has what the example takes for granted, also after it was thrown away."""

    kind: type[Component]

    def start_over(self) -> None:
        super().start_over()
        cases.prepare(self.kind, self.person.client)


@contextmanager
def stage(sandbox: Sandbox, folder: Path, kind: type[Component]) -> Iterator[Stage]:
    """One type in a world of its own."""
    with faulty_world(sandbox, folder, AwsWorld) as world:
        world.kind = kind
        cases.prepare(kind, world.person.client)
        yield Stage(world, cases.example_of(kind, world.person.client))


SUITE = Suite(
    provider="aws",
    cases={
        kind: Case(
            only_up=bool(example.only_up),
            immutable=bool(example.immutable_changes),
            is_slow=example.is_slow,
            hazardous=bool(example.hazards),
        )
        for kind, example in EXAMPLES.items()
    },
    stage=stage,
    always=("AwsVpc", "AwsS3"),
    is_the_first=True,
)
