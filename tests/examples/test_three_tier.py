"""The three tiers on AWS that the documentation shows: deployed, held by hand, absorbed, handed back and deleted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.cli import client
from fractal_cloud.cli.app import run
from fractal_cloud.cli.files import load
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests import aws_rights
from tests.world import ADMIN_TOKEN, World
from tests.world import world as make_world

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-tier.py"
[DECLARED] = load(str(EXAMPLE))
COMPONENTS: list[dict[str, Any]] = DECLARED.document["components"]
NAMES = [component["id"] for component in COMPONENTS]
PARTS = {component["id"] for component in COMPONENTS if installed()[component["type"]].is_part}
ME = DECLARED.id
TAGGING = {
    "CreateTags",
    "DeleteTags",
    "TagResource",
    "UntagResource",
    "TagResources",
    "UntagResources",
    "UpdateResource",
}
TAGGING |= {"AddTagsToResource", "RemoveTagsFromResource", "TagRole", "UntagRole"}


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with make_world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=0.02) as made:
        aws_rights.limit_to(session_sandbox, COMPONENTS)
        yield made
        made.assert_safe()


def _others(world: World, status: str) -> dict[str, str]:
    """Every component that has another status, with what it says."""
    shown = {name: world.component(ME, name) for name in NAMES}
    return {name: f"{one['status']}: {one['message']}" for name, one in shown.items() if one["status"] != status}


@pytest.mark.timeout(240)
@pytest.mark.rule("A7", "S25", "C8", "G1", "G14", "O10")
def test_three_tiers_come_are_held_by_hand_come_back_and_go(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the rights that are printed for their types and their roles, and no others."""
    mutation = world.deploy(ME, *COMPONENTS)
    world.settle(at_most=60)
    assert _others(world, "Active") == {}
    assert world.api.get(f"/livesystems/{ME}/mutations/{mutation}").json()["status"] == "Completed"
    assert not any(result.writes for result in world.cycle()), "a settled cycle writes nothing"

    _break_all_glass(world)
    world.settle(at_most=60)
    assert _others(world, "ManualOverride") == {}
    sqs = replace(world.person, region="eu-central-1").client("sqs")
    url = world.output(ME, "jobs", "QueueUrl")
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "300"})
    world.settle(at_most=60)
    assert world.drift(ME, "jobs") == {"VisibilityTimeout": {"declared": 120, "actual": 300}}

    copy = tmp_path / "three-tier.py"
    copy.write_text(EXAMPLE.read_text())
    _absorb(copy, world, monkeypatch)
    assert copy.read_text() == EXAMPLE.read_text().replace("VisibilityTimeout=120", "VisibilityTimeout=300")
    [absorbed] = load(str(copy))
    world.deploy(ME, *absorbed.document["components"])
    world.sandbox.aws.calls.clear()
    for name in set(NAMES) - PARTS:
        assert world.glass(ME, name, "readopt").status_code == 202
    world.settle(at_most=60)
    assert _others(world, "Active") == {}
    assert sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]["VisibilityTimeout"] == "300"
    written = {call.call.operation for call in world.sandbox.aws.calls.find(actor="agent", writes_only=True)}
    assert written <= TAGGING, "what was kept is not written"

    world.delete(ME)
    world.settle(at_most=60)
    assert world.api.get(f"/livesystems/{ME}").status_code == 404
    assert world.sandbox.aws.owned_resources() == []


def _break_all_glass(world: World) -> None:
    """Every one that carries tags, in the operator's name; parts follow what they are of."""
    for name in sorted(set(NAMES) - PARTS):
        assert world.glass(ME, name, "break", reason="it burns").status_code == 202


def _absorb(path: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = world.api._transport
    monkeypatch.setattr(client, "connect", lambda url, _: client.ControlPlane(url, ADMIN_TOKEN, transport))
    monkeypatch.setattr(sys, "argv", ["fractal", "absorb", str(path), ME])
    with pytest.raises(SystemExit) as ended:
        run()
    assert not ended.value.code
