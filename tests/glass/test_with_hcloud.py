"""Break the glass with hcloud, with the commands that the product prints."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from tests.glass.override_scenario import OverrideScenario, not_ours, play
from tests.glass.printed_commands import Run, break_and_hand_back, commands, terminal
from tests.offers.hetzner.examples import EXAMPLES, Example, server
from tests.offers.hetzner.worlds import HetznerWorld, hetzner_world

PROVIDER = "hetzner"
HCLOUD = shutil.which("hcloud")
pytestmark = pytest.mark.skipif(HCLOUD is None, reason="hcloud is not installed")


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[HetznerWorld]:
    with hetzner_world(session_sandbox, tmp_path) as made:
        yield made


@pytest.fixture
def hcloud(world: HetznerWorld, tmp_path: Path) -> Run:
    """Runs one command of hcloud, as a person with a terminal would."""
    return terminal(tmp_path, world.hetzner.env)


@pytest.mark.rule("G1", "G7", "G12", "T1", "T8")
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=[kind.__name__ for kind in EXAMPLES])
def test_every_offer_is_let_go_and_handed_back_by_the_printed_commands(
    world: HetznerWorld, hcloud: Run, example: Example
) -> None:
    world.deploy("ls-a", *example.components)
    world.settle()
    component = example.components[-1]["id"]
    assert world.status("ls-a", component) == "Active"
    command = shlex.split(commands(world, component)[0][0])
    noun, number = command[1], command[3]
    hcloud(f"hcloud {noun} add-label {number} team=payments")
    break_and_hand_back(world, hcloud, component, world.settle)
    labels = world.hetzner.labels(f"{noun.replace('-', '_')}s", number)
    assert labels == {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a", "team": "payments"}
    world.assert_safe()


@pytest.mark.rule("G1", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12", "P")
def test_a_whole_manual_override_of_one_server(world: HetznerWorld, hcloud: Run) -> None:
    scenario = OverrideScenario(
        declare=server,
        parameter="serverType",
        declared="cx23",
        edited="cx33",
        third="cx43",
        edit=lambda _: [
            "hcloud server poweroff mine",
            "hcloud server change-type mine cx33 --keep-disk",
            "hcloud server poweron mine",
        ],
        delete=lambda _: ["hcloud server delete mine"],
        create=["hcloud server create --name legacy --type cx23 --image debian-13 --location fsn1"],
        label=lambda _: hcloud("hcloud server add-label mine team=payments"),
        others=lambda found: not_ours(world.hetzner.labels("servers", found)),
    )
    play(world, hcloud, scenario)
