"""Break the glass with govc, with the commands that the product prints."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.vsphere.simulator import govc as built
from fractal_sandbox.vsphere.simulator import why_not
from tests.glass.override_scenario import OverrideScenario, play
from tests.glass.printed_commands import Run, break_and_hand_back, terminal
from tests.offers.vsphere.examples import DATASTORE, POOL, declaration
from tests.offers.vsphere.worlds import VsphereWorld, vsphere_world

PROVIDER = "vsphere"
GOVC = shutil.which("govc") or shutil.which(built())
pytestmark = [
    pytest.mark.clis,
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "never"),
    pytest.mark.skipif(GOVC is None, reason="govc is not there: `make test-clis` builds it on Debian"),
]


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[VsphereWorld]:
    with vsphere_world(session_sandbox, tmp_path) as made:
        yield made


@pytest.fixture
def govc(world: VsphereWorld, tmp_path: Path) -> Run:
    """Runs one command of govc, as a person with a terminal would."""
    path = f"{Path(GOVC or '').parent}{os.pathsep}{os.environ['PATH']}"
    return terminal(tmp_path, {**world.vsphere.env, "PATH": path})


def _tags(govc: Run, path: str) -> set[str]:
    return set(govc(f"govc tags.attached.ls -r {path}").split())


@pytest.mark.rule("G1", "G7", "G12", "T1", "T8")
def test_a_machine_is_let_go_and_handed_back_by_the_printed_commands(world: VsphereWorld, govc: Run) -> None:
    world.deploy("ls-a", declaration("machine"))
    world.settle()
    assert world.status("ls-a", "machine") == "Active"
    path = world.output("ls-a", "machine", "inventoryPath")
    govc("govc tags.category.create -t VirtualMachine team")
    govc("govc tags.create -c team payments")
    govc(f"govc tags.attach -c team payments {path}")

    def assert_other_tags_stay() -> None:
        assert _tags(govc, path) == {"fractal-cloud-owner:ls-a", "payments"}

    break_and_hand_back(world, govc, "machine", world.settle, assert_other_tags_stay)
    assert _tags(govc, path) == {"managed-by:fractal-cloud", "fractal-cloud-owner:ls-a", "payments"}
    world.assert_safe()


@pytest.mark.rule("G1", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12", "P")
def test_a_whole_manual_override_of_one_machine(world: VsphereWorld, govc: Run) -> None:
    path = "/DC0/vm/mine"
    make = f"govc vm.create -on=false -ds {DATASTORE} -pool /{POOL} -net 'VM Network' -disk 10GB -c 2 -m 1024"

    def label(_: str) -> None:
        govc("govc tags.category.create -t VirtualMachine team")
        govc("govc tags.create -c team payments")
        govc(f"govc tags.attach -c team payments {path}")

    scenario = OverrideScenario(
        declare=declaration,
        parameter="numCpus",
        declared=2,
        edited=4,
        third=8,
        edit=lambda _: [
            f"govc vm.power -off {path}",
            f"govc vm.change -vm {path} -c 4",
            f"govc vm.power -on {path}",
        ],
        delete=lambda _: [f"govc vm.destroy {path}"],
        create=[f"{make} -g otherGuest64 legacy"],
        label=label,
        others=lambda _: {one: "" for one in _tags(govc, path) if ":" not in one},
    )
    play(world, govc, scenario)
