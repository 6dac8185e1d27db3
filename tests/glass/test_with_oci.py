"""Break the glass with Oracle's own command line, with the commands that the product prints."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.glass.override_scenario import OverrideScenario, not_ours, play
from tests.glass.printed_commands import Run, break_and_hand_back, commands, terminal
from tests.offers.oci.declaring import vcn
from tests.offers.oci.examples import EXAMPLES, Example
from tests.offers.oci.person import COMPARTMENT, CORE
from tests.offers.oci.worlds import OciWorld
from tests.offers.worlds import provider_world

PROVIDER = "oci"

OCI = shutil.which("oci")
pytestmark = [
    pytest.mark.clis,
    pytest.mark.timeout(600),
    pytest.mark.skipif(OCI is None, reason="oci, Oracle's command line, is not installed: `make test-clis` brings it"),
]


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[OciWorld]:
    with provider_world(session_sandbox, tmp_path, OciWorld) as made:
        yield made


@pytest.fixture
def oci(world: OciWorld, tmp_path: Path) -> Run:
    """Runs one line in a shell, as a person with a terminal would."""
    return terminal(tmp_path, world.oci.env, seconds=180)


@pytest.mark.rule("G1", "G7", "G12", "T8")
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=[kind.__name__ for kind in EXAMPLES])
def test_every_offer_is_let_go_and_handed_back_by_the_printed_commands(
    world: OciWorld, oci: Run, example: Example
) -> None:
    world.deploy("ls-a", *example.components)
    world.survive()
    component = example.components[-1]["id"]
    assert world.status("ls-a", component) == "Active"
    break_and_hand_back(world, oci, component, world.survive)
    world.assert_safe()


@pytest.mark.rule("G1", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12", "P", "T1")
def test_a_whole_manual_override_of_one_vcn(world: OciWorld, oci: Run) -> None:
    blocks, others = ["10.0.0.0/16", "10.9.0.0/16"], {"Team": 'pay "later" ü', "note": '"managed-by":"fractal-cloud"'}

    def tags(vcn_id: str) -> dict[str, str]:
        found = world.oci.get(f"{CORE}/vcns/{vcn_id}")
        assert found is not None
        return dict(found["freeformTags"])

    def label(vcn_id: str) -> None:
        world.oci.call("PUT", f"{CORE}/vcns/{vcn_id}", {"freeformTags": {**tags(vcn_id), **others}})

    create = f"oci network vcn create --compartment-id {COMPARTMENT} --display-name legacy"
    scenario = OverrideScenario(
        declare=vcn,
        parameter="cidrBlocks",
        declared=blocks[:1],
        edited=blocks,
        third=[blocks[0], "10.8.0.0/16"],
        edit=lambda vcn_id: [f"oci network vcn add-vcn-cidr --vcn-id {vcn_id} --cidr-block {blocks[1]}"],
        delete=lambda vcn_id: [f"oci network vcn delete --vcn-id {vcn_id} --force"],
        create=[f"""{create} --cidr-blocks '["10.0.0.0/16"]'"""],
        label=label,
        others=lambda vcn_id: not_ours(tags(vcn_id)),
    )
    play(world, oci, scenario)


@pytest.mark.rule("G12", "T10")
def test_a_command_that_somebody_overtook_writes_nothing(world: OciWorld, oci: Run) -> None:
    world.deploy("ls-a", vcn())
    world.survive()
    path = f"{CORE}/vcns/{world.output('ls-a', 'net', 'vcnId')}"
    stamped = {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a"}

    def meanwhile(_: Any) -> None:
        world.oci.call("PUT", path, {"freeformTags": {**stamped, "Team": "pay"}})

    world.cloud.knobs.before_call(meanwhile, times=1, operation="updateVcn", actor="person")
    with pytest.raises(AssertionError, match="NoEtagMatch"):
        oci(commands(world, "net")[0][0])
    found = world.oci.get(path)
    assert found is not None
    assert found["freeformTags"] == {**stamped, "Team": "pay"}
