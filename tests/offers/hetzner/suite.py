"""What the suites over the whole registry need to know of Hetzner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fractal_cloud.model.component import Component
from fractal_sandbox import Sandbox
from tests.offers.hetzner import operator_actions
from tests.offers.hetzner.examples import EXAMPLES
from tests.offers.hetzner.worlds import hetzner_world
from tests.offers.suites import Case, Stage, Suite


@contextmanager
def stage(sandbox: Sandbox, folder: Path, kind: type[Component]) -> Iterator[Stage]:
    """One type in a world of its own."""
    with hetzner_world(sandbox, folder) as world:
        yield Stage(world, operator_actions.example_of(kind, world.hetzner))


SUITE = Suite(
    provider="hetzner",
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
    always=("HetznerFirewall",),
    machine="HetznerNetwork",
    refusals={
        "denied": {"status": 403, "code": "forbidden"},
        "throttled": {"status": 429, "code": "rate_limit_exceeded"},
        "failing": {"status": 500, "code": "service_error"},
        "cut off": {"cut": True},
    },
)
