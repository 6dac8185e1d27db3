"""What the suites over the whole registry need to know of Google Cloud."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from fractal_cloud.model.component import Component
from fractal_cloud.offers.gcp.bucket import GcpGcsBucket
from fractal_cloud.offers.gcp.cloud_run import GcpCloudRun
from fractal_sandbox import Sandbox
from tests.offers.gcp import operator_actions
from tests.offers.gcp.examples import EXAMPLES
from tests.offers.gcp.person import GcpPerson
from tests.offers.gcp.rights import printed_rights
from tests.offers.suites import Case, Stage, Suite
from tests.offers.worlds import ProviderWorld, provider_world


class GcpWorld(ProviderWorld):
    """A world whose agent serves the sandbox's projects."""

    providers = ("gcp",)
    cloud_name = "gcp"

    @classmethod
    def rights(cls, sandbox: Sandbox) -> AbstractContextManager[None]:
        """As they are printed."""
        return printed_rights(sandbox)


class AtomicWorld(GcpWorld):
    """The same for types whose every write carries a precondition: there are no lost races (S16)."""

    is_atomic = True


@contextmanager
def stage(sandbox: Sandbox, folder: Path, kind: type[Component]) -> Iterator[Stage]:
    """One type, with a person in the same project."""
    world_of = AtomicWorld if kind in (GcpGcsBucket, GcpCloudRun) else GcpWorld
    with provider_world(sandbox, folder, world_of) as world:
        yield Stage(world, operator_actions.example_of(kind, GcpPerson(sandbox.url)))


SUITE = Suite(
    provider="gcp",
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
    always=("GcpCloudRun",),
    machine="GcpVm",
    creates="insert*",
)
