"""What the suites over the whole registry need to know of vSphere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from fractal_cloud.model.component import Component
from fractal_cloud.offers.vsphere.vm import VsphereVm
from fractal_sandbox import Sandbox
from fractal_sandbox.vsphere.cloud import VERSION
from fractal_sandbox.vsphere.simulator import why_not
from tests.offers.suites import Case, Stage, Suite
from tests.offers.vsphere.operator_actions import example_of
from tests.offers.vsphere.worlds import WITH_TAGS, vsphere_world


@contextmanager
def stage(sandbox: Sandbox, folder: Path, kind: type[Component], version: str = VERSION) -> Iterator[Stage]:
    """Machines in a world of their own."""
    assert kind is VsphereVm
    with vsphere_world(sandbox, folder, version) as world:
        yield Stage(world, example_of(world.vsphere))


SUITE = Suite(
    provider="vsphere",
    cases={VsphereVm: Case(only_up=True, immutable=True, is_slow=True, hazardous=True)},
    stage=stage,
    effects={"VsphereVm": 20},
    always=("VsphereVm",),
    machine="VsphereVm",
    why_not=why_not,
    has_long_lives=True,  # the simulator is a process that is started anew for each
)

VARIANTS = (
    replace(
        SUITE,
        variant=" 9.1",
        stage=partial(stage, version=WITH_TAGS),
        effects={"VsphereVm 9.1": 20},
        always=("VsphereVm 9.1",),
        machine="VsphereVm 9.1",
    ),
)
