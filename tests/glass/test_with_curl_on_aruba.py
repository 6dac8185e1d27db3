"""Break the glass on Aruba Cloud in the very words that the product prints: curl and jq, which Aruba's users have."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.sandbox import Sandbox
from tests.glass.printed import Run, commands, terminal
from tests.offers.aruba.examples import EXAMPLES, Example
from tests.offers.aruba.worlds import ArubaWorld
from tests.offers.worlds import provider_world

PROVIDER = "aruba"

MISSING = [name for name in ("curl", "jq") if shutil.which(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} not installed")


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[ArubaWorld]:
    with provider_world(session_sandbox, tmp_path, ArubaWorld) as made:
        yield made


@pytest.fixture
def shell(world: ArubaWorld, tmp_path: Path) -> Run:
    """Runs one line in a shell, as a person with a terminal would."""
    return terminal(tmp_path, world.aruba.env)


@pytest.mark.rule("G1", "G7", "G12", "T1", "T8")
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=[kind.__name__ for kind in EXAMPLES])
def test_every_offer_is_let_go_and_handed_back_by_the_printed_commands(
    world: ArubaWorld, shell: Run, example: Example
) -> None:
    world.deploy("ls-a", *example.components)
    world.survive()
    component = example.components[-1]["id"]
    assert world.status("ls-a", component) == "Active"
    uri = world.component("ls-a", component)["resourceId"]
    world.aruba.put(uri, tags=[*world.aruba.tags(uri), 'team "pay" ü'])
    break_glass, readopt = commands(world, component)
    for command in break_glass:
        shell(command)
    assert world.aruba.tags(uri) == ["fractal-cloud-owner:ls-a", 'team "pay" ü']
    world.cycle()
    assert world.status("ls-a", component) == "ManualOverride"
    for command in readopt:
        shell(command)
    world.survive()
    assert world.status("ls-a", component) == "Active"
    expected = ["fractal-cloud-owner:ls-a", "managed-by:fractal-cloud", 'team "pay" ü']
    assert sorted(world.aruba.tags(uri)) == expected
    world.assert_safe()
