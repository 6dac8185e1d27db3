"""Break the glass with hcloud, in the very words that the product prints."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.sandbox import Sandbox
from tests.glass.printed import Run, commands, terminal
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
    break_glass, readopt = commands(world, component)
    noun, number = shlex.split(break_glass[0])[1], shlex.split(break_glass[0])[3]
    hcloud(f"hcloud {noun} add-label {number} team=payments")
    for command in break_glass:
        hcloud(command)
    world.cycle()
    assert world.status("ls-a", component) == "ManualOverride"
    for command in readopt:
        hcloud(command)
    world.settle()
    assert world.status("ls-a", component) == "Active"
    labels = world.hetzner.labels(f"{noun.replace('-', '_')}s", number)
    assert labels == {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a", "team": "payments"}
    world.assert_safe()


@pytest.mark.rule("G1", "G3", "G6", "G7", "G8", "G10", "G11", "G12")
def test_a_night_on_one_server(world: HetznerWorld, hcloud: Run) -> None:
    world.deploy("ls-a", server("web"), server("calm"))
    world.settle()
    break_glass, readopt = commands(world, "web")
    hcloud(break_glass[0])
    hcloud("hcloud server poweroff web")
    hcloud("hcloud server change-type web cx33 --keep-disk")
    hcloud("hcloud server poweron web")
    world.cycle()
    assert world.drift("ls-a", "web") == {"serverType": {"declared": "cx23", "actual": "cx33"}}
    assert world.status("ls-a", "web") == "ManualOverride"
    assert world.status("ls-a", "calm") == "Active", "it concerns nobody else"

    world.deploy("ls-a", server("web", serverType="cx33"), server("calm"))
    world.cycle()
    assert world.drift("ls-a", "web") is None
    before = len(world.writes())
    for command in readopt:
        hcloud(command)
    world.settle()
    assert world.status("ls-a", "web") == "Active"
    assert [write.reason for write in world.writes()[before:]] == ["handshake"], "only the reconcile label goes (G8)"

    hcloud(break_glass[0])
    hcloud("hcloud server poweroff web")
    world.cycle()
    assert world.force_push("ls-a", "web").status_code == 202
    world.settle()
    assert world.status("ls-a", "web") == "Active"
    assert world.output("ls-a", "web", "status") == "running"

    hcloud("hcloud server create --name legacy --type cx23 --image debian-13 --location fsn1")
    world.deploy("ls-a", server("web", serverType="cx33"), server("calm"), server("legacy"))
    world.cycle()
    assert world.status("ls-a", "legacy") == "ManualOverride"
    for command in commands(world, "legacy")[1]:
        hcloud(command)
    world.settle()
    assert world.status("ls-a", "legacy") == "Active"
    legacy = world.output("ls-a", "legacy", "serverId")
    assert world.hetzner.labels("servers", legacy)["fractal-cloud-owner"] == "ls-a"
    world.assert_safe()
