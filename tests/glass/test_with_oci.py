"""Break the glass with Oracle's own command line, in the very words that the product prints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.sandbox import Sandbox
from tests.glass.printed import Run, commands, terminal
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
    break_glass, readopt = commands(world, component)
    for command in break_glass:
        oci(command)
    world.cycle()
    assert world.status("ls-a", component) == "ManualOverride"
    for command in readopt:
        oci(command)
    world.survive()
    assert world.status("ls-a", component) == "Active"
    world.assert_safe()


@pytest.mark.rule("G1", "G3", "G4", "G6", "G7", "G8", "G9", "G10", "G12", "T1")
def test_a_whole_night_on_one_vcn(world: OciWorld, oci: Run) -> None:
    world.deploy("ls-a", vcn(), vcn("calm"))
    world.survive()
    vcn_id = world.output("ls-a", "net", "vcnId")
    path = f"{CORE}/vcns/{vcn_id}"
    break_glass, readopt = commands(world, "net")
    others = {"Team": 'pay "later" ü', "note": '"managed-by":"fractal-cloud"'}

    def tags() -> dict[str, str]:
        found = world.oci.get(path)
        assert found is not None
        kept: dict[str, str] = found["freeformTags"]
        return kept

    def drift() -> dict[str, Any] | None:
        world.cycle()
        return world.drift("ls-a", "net")

    world.oci.call(
        "PUT", path, {"freeformTags": {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a", **others}}
    )
    oci(break_glass[0])
    assert tags() == {"fractal-cloud-owner": "ls-a", **others}
    oci(f"oci network vcn add-vcn-cidr --vcn-id {vcn_id} --cidr-block 10.9.0.0/16")
    more = {"cidrBlocks": {"declared": ["10.0.0.0/16"], "actual": ["10.0.0.0/16", "10.9.0.0/16"]}}
    assert drift() == more
    assert world.status("ls-a", "net") == "ManualOverride"
    assert world.status("ls-a", "calm") == "Active", "it concerns nobody else"

    world.deploy("ls-a", vcn(cidrBlocks=["10.0.0.0/16", "10.9.0.0/16"]), vcn("calm"))
    assert drift() is None
    before = len(world.writes())
    oci(readopt[0])
    world.survive()
    assert world.status("ls-a", "net") == "Active"
    assert [write.reason for write in world.writes()[before:]] == ["handshake"], "only the reconcile tag goes (G8)"
    assert tags() == {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a", **others}

    oci(break_glass[0])
    world.cycle()
    assert world.force_push("ls-a", "net").status_code == 202
    world.survive()
    assert world.status("ls-a", "net") == "Active"

    oci(break_glass[0])
    world.cycle()
    oci(f"oci network vcn delete --vcn-id {vcn_id} --force")
    world.cycle(2)
    assert world.status("ls-a", "net") == "ManualOverride"
    world.deploy("ls-a", vcn(), vcn("calm"))
    world.survive()
    assert world.output("ls-a", "net", "vcnId") != vcn_id
    world.assert_safe()


@pytest.mark.rule("G11", "G12")
def test_what_a_person_made_is_brought_in(world: OciWorld, oci: Run) -> None:
    create = f"oci network vcn create --compartment-id {COMPARTMENT} --display-name legacy"
    made = json.loads(oci(f"""{create} --cidr-blocks '["10.0.0.0/16"]'"""))["data"]["id"]
    world.deploy("ls-a", vcn("legacy"))
    world.cycle()
    assert world.component("ls-a", "legacy")["resourceId"] == made
    assert world.status("ls-a", "legacy") == "ManualOverride"
    oci(commands(world, "legacy")[1][0])
    world.survive()
    assert world.status("ls-a", "legacy") == "Active"
    world.assert_safe()


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
