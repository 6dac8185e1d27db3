"""Break the glass on Aruba Cloud with the commands that the product prints: curl and jq, which Aruba's users have."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.aruba.cloud_server import ArubaCloudServer
from fractal_cloud.offers.aruba.security_group import ArubaSecurityGroup
from fractal_cloud.offers.aruba.tags import mapping
from fractal_sandbox import Sandbox
from tests.glass.override_scenario import OverrideScenario, not_ours, play
from tests.glass.printed_commands import Run, break_and_hand_back, terminal
from tests.offers.aruba.examples import EXAMPLES, LOCATION, OUT, PING, VPC, WEB, Example
from tests.offers.aruba.worlds import ArubaWorld
from tests.offers.worlds import provider_world

PROVIDER = "aruba"
SHELL_URI = "'$uri'"  # a variable of the shell, outside of the quotes
GATE = EXAMPLES[ArubaSecurityGroup].components[-1]
# A server's tags are frozen: it is taken over with the product's own program (test_with_fractal.py).
TAGGABLE = {kind: example for kind, example in EXAMPLES.items() if kind is not ArubaCloudServer}

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
@pytest.mark.parametrize("example", TAGGABLE.values(), ids=[kind.__name__ for kind in TAGGABLE])
def test_every_offer_is_let_go_and_handed_back_by_the_printed_commands(
    world: ArubaWorld, shell: Run, example: Example
) -> None:
    world.deploy("ls-a", *example.components)
    world.survive()
    component = example.components[-1]["id"]
    assert world.status("ls-a", component) == "Active"
    uri = world.component("ls-a", component)["resourceId"]
    world.aruba.put(uri, tags=[*world.aruba.tags(uri), 'team "pay" ü'])

    def assert_other_tags_stay() -> None:
        assert world.aruba.tags(uri) == ["fractal-cloud-owner:ls-a", 'team "pay" ü']

    break_and_hand_back(world, shell, component, world.survive, assert_other_tags_stay)
    expected = ["fractal-cloud-owner:ls-a", "managed-by:fractal-cloud", 'team "pay" ü']
    assert sorted(world.aruba.tags(uri)) == expected
    world.assert_safe()


@pytest.mark.rule("G1", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12", "P")
def test_a_whole_manual_override_of_one_security_group(world: ArubaWorld, shell: Run) -> None:
    base, aruba = world.aruba.env["ACLOUD_BASE_URL"], world.aruba
    curl = f"curl -sSf -H 'Authorization: Bearer {aruba.token}' -H 'Content-Type: application/json'"

    def at(uri: str) -> str:
        return f"'{base}{uri}?api-version=1.0'"

    def open_for(rule: dict[str, str], uri: str) -> str:
        properties: dict[str, Any] = {name: value for name, value in rule.items() if not name.startswith("target")}
        properties["target"] = {"kind": rule["targetKind"], "value": rule["target"]}
        made = {"metadata": {"name": "by-hand", "location": {"value": LOCATION}}, "properties": properties}
        return f"{curl} {at(f'{uri}/securityRules')} -d '{json.dumps(made)}'"

    def group(name: str, **parameters: Any) -> dict[str, Any]:
        return {**GATE, "id": name, "parameters": {"vpc": VPC["id"], **parameters}}

    world.deploy("ls-b", VPC)
    world.settle()
    groups = f"{world.component('ls-b', VPC['id'])['resourceId']}/securityGroups"
    legacy = json.dumps({"metadata": {"name": "legacy", "location": {"value": LOCATION}}, "properties": {}})
    make_legacy = f"uri=$({curl} {at(groups)} -d '{legacy}' | jq -r .metadata.uri)"
    scenario = OverrideScenario(
        declare=group,
        parents=({**VPC, "importOnly": True},),
        parameter="rules",
        declared=[PING],
        edited=[PING, WEB],
        third=[PING, OUT],
        edit=lambda uri: [open_for(WEB, uri)],
        delete=lambda uri: [f"{curl} -X DELETE {at(uri)}"],
        create=[f"{make_legacy} && {open_for(PING, SHELL_URI)}"],
        label=lambda uri: aruba.put(uri, tags=[*aruba.tags(uri), "team:payments"]),
        others=lambda uri: not_ours(mapping(aruba.tags(uri))),
    )
    play(world, shell, scenario)
