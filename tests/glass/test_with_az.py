"""Break the glass with Azure's own command line, with the commands that the product prints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.azure.vnet import AzureVnet
from fractal_sandbox import Sandbox, sandbox_env
from tests.glass.override_scenario import OverrideScenario, not_ours, play
from tests.glass.printed_commands import Run, break_and_hand_back, commands, terminal
from tests.offers.azure.examples import EXAMPLES, GROUP, LOCATION, Example, component
from tests.offers.azure.operator_actions import CASES
from tests.offers.azure.worlds import AzureWorld
from tests.offers.worlds import provider_world

PROVIDER = "azure"

AZ = shutil.which("az")
pytestmark = [
    pytest.mark.clis,
    pytest.mark.timeout(300),
    pytest.mark.skipif(AZ is None, reason="az is not installed: `make test-clis` does that"),
]


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[AzureWorld]:
    with provider_world(session_sandbox, tmp_path, AzureWorld) as made:
        yield made


@pytest.fixture
def az(session_sandbox: Sandbox, tmp_path: Path) -> Run:
    """Runs one command of az, as a person with a terminal would who has sourced `fractal sandbox env`."""
    nowhere = {
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
        "no_proxy": "localhost,127.0.0.1",
    }
    return terminal(tmp_path, {**nowhere, **sandbox_env(session_sandbox.url, tmp_path)}, seconds=120)


@pytest.mark.rule("G1", "G7", "G12", "T8")
@pytest.mark.parametrize("example", [EXAMPLES[kind] for kind in CASES], ids=[kind.__name__ for kind in CASES])
def test_every_type_is_let_go_and_handed_back_by_the_printed_commands(
    world: AzureWorld, az: Run, example: Example
) -> None:
    world.deploy("ls-a", *example.components)
    world.settle()
    name = example.components[-1]["id"]
    assert world.status("ls-a", name) == "Active"
    path = world.component("ls-a", name)["resourceId"]
    world.azure.tag(path, team="payments")

    def assert_other_tags_stay() -> None:
        assert world.azure.tags(path) == {"fractal-cloud-owner": "ls-a", "team": "payments"}

    break_and_hand_back(world, az, name, world.settle, assert_other_tags_stay)
    assert world.azure.tags(path) == {
        "fractal-cloud-owner": "ls-a",
        "managed-by": "fractal-cloud",
        "team": "payments",
    }
    world.assert_safe()


@pytest.mark.rule("G3", "G11", "S9")
def test_a_network_made_with_az_is_brought_in(world: AzureWorld, az: Run) -> None:
    az(f"az network vnet create -g {GROUP} -n Legacy -l {LOCATION} --address-prefixes 10.7.0.0/16")
    az(f"az network vnet subnet create -g {GROUP} --vnet-name Legacy -n theirs --address-prefixes 10.7.9.0/24")
    shown = json.loads(az(f"az network vnet show -g {GROUP} -n legacy"))
    assert [one["name"] for one in shown["subnets"]] == ["theirs"]
    places = {"resourceGroup": GROUP, "location": LOCATION}
    legacy = component(AzureVnet, "legacy", **places, addressPrefixes=["10.7.0.0/16"], subnets={"ours": "10.7.1.0/24"})
    world.deploy("ls-a", legacy)
    world.cycle()
    assert world.status("ls-a", "legacy") == "ManualOverride"
    for command in commands(world, "legacy")[1]:
        az(command)
    world.settle()
    assert world.status("ls-a", "legacy") == "Active"
    subnets = json.loads(az(f"az network vnet subnet list -g {GROUP} --vnet-name Legacy"))
    assert sorted(one["name"] for one in subnets) == ["ours", "theirs"], "somebody else's subnet is left alone"
    world.assert_safe()


@pytest.mark.rule("G1", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12", "P")
def test_a_whole_manual_override_of_one_network(world: AzureWorld, az: Run) -> None:
    def declare(name: str, **parameters: Any) -> dict[str, Any]:
        return component(AzureVnet, name, resourceGroup=GROUP, location=LOCATION, **parameters)

    at = f"-g {GROUP} -n mine"
    scenario = OverrideScenario(
        declare=declare,
        parameter="addressPrefixes",
        declared=["10.0.0.0/16"],
        edited=["10.0.0.0/16", "10.9.0.0/16"],
        third=["10.0.0.0/16", "10.8.0.0/16"],
        edit=lambda _: [f"az network vnet update {at} --address-prefixes 10.0.0.0/16 10.9.0.0/16"],
        delete=lambda _: [f"az network vnet delete {at}"],
        create=[f"az network vnet create -g {GROUP} -n legacy -l {LOCATION} --address-prefixes 10.0.0.0/16"],
        label=lambda path: world.azure.tag(path, team="payments"),
        others=lambda path: not_ours(world.azure.tags(path)),
    )
    play(world, az, scenario)
