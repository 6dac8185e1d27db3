"""User data that is a secret: resolved by the agent, compared in its memory, and shown to nobody (A8)."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.agent_answers import answered_by_agent
from tests.offers.aws.examples.ec2 import IMAGE
from tests.world import REGION, World
from tests.world import world as make_world

FIRST, SECOND = "#!/bin/sh\nexport PIN=first-canary-qzx", "#!/bin/sh\nexport PIN=second-canary-vkw"
REFERENCE = {"$secret": "boot"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the agent finds secrets."""
    made = tmp_path / "secrets"
    (made / "ls-a").mkdir(parents=True)
    return made


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The whole product, and an agent with a folder of secrets."""
    with make_world(session_sandbox, tmp_path, monkeypatch, secrets_dir=folder, agent_id="agent-1") as made:
        yield made


def machine(user_data: Any = REFERENCE, **more: Any) -> dict[str, Any]:
    """A machine as people declare it."""
    parameters = {"region": REGION, "imageId": IMAGE, "instanceType": "t3.medium", "userData": user_data}
    kind = "NetworkAndCompute.IaaS.AwsEc2Instance"
    return {"id": "web", "type": kind, "parameters": parameters, **more}


def keep(folder: Path, value: str, live_system: str = "ls-a", name: str = "boot") -> None:
    """Put a value where the agent looks."""
    (folder / live_system).mkdir(exist_ok=True)
    (folder / live_system / name).write_text(value)


def in_the_cloud(world: World) -> str:
    """The user data that the machine really has."""
    found = world.component("ls-a", "web")["resourceId"]
    answer = world.person.ec2.describe_instance_attribute(InstanceId=found, Attribute="userData")
    return b64decode(answer["UserData"].get("Value", "")).decode()


def edit(world: World, value: str) -> None:
    """Somebody changes the user data by hand."""
    found = world.component("ls-a", "web")["resourceId"]
    ec2 = world.person.ec2
    ec2.stop_instances(InstanceIds=[found])
    ec2.modify_instance_attribute(InstanceId=found, Attribute="userData", Value=b64encode(value.encode()).decode())
    ec2.start_instances(InstanceIds=[found])


def everything(world: World) -> str:
    """All that an admin can read of the LiveSystem."""
    base = "/livesystems/ls-a"
    paths = (base, f"{base}/components", f"{base}/components/web/journal", f"{base}/events?limit=200", "/events")
    mutation = world.api.get(base).json()["mutationId"]
    return "\n".join(world.api.get(path).text for path in (*paths, f"{base}/mutations/{mutation}"))


@pytest.mark.rule("A8")
def test_the_agent_writes_the_value_and_publishes_the_reference(world: World, folder: Path) -> None:
    keep(folder, FIRST + "\n")
    world.deploy("ls-a", machine())
    world.settle()
    assert world.status("ls-a", "web") == "Active"
    assert in_the_cloud(world) == FIRST, "without the line break at the end of its file"
    assert world.output("ls-a", "web", "userData") == REFERENCE
    assert world.drift("ls-a", "web") is None
    assert "first-canary" not in everything(world)
    world.assert_safe()


@pytest.mark.rule("A8", "S20")
def test_a_rotated_value_is_drift_and_is_written_in_the_next_cycle(world: World, folder: Path) -> None:
    keep(folder, FIRST)
    world.deploy("ls-a", machine())
    world.settle()
    before = len(world.sandbox.aws.calls.find(actor="agent", writes_only=True))
    world.cycle(2)
    assert len(world.sandbox.aws.calls.find(actor="agent", writes_only=True)) == before, "nothing changed"
    keep(folder, SECOND)
    world.settle()
    assert in_the_cloud(world) == SECOND
    reasons = {entry["reason"] for entry in _journal(world) if "userData" in entry["after"]}
    assert reasons == {"create", "drift"}
    written = next(one for one in _journal(world) if one["reason"] == "drift" and "userData" in one["before"])
    assert (written["before"]["userData"], written["after"]["userData"]) == ("(secret: differs)", REFERENCE)
    assert not any(pin in everything(world) for pin in ("first-canary", "second-canary"))


def _journal(world: World) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = world.api.get("/livesystems/ls-a/components/web/journal").json()["items"]
    return items


@pytest.mark.rule("A8", "G3")
def test_a_change_by_hand_is_shown_without_its_value_and_corrected(world: World, folder: Path) -> None:
    keep(folder, FIRST)
    world.deploy("ls-a", machine())
    world.settle()
    found = world.component("ls-a", "web")["resourceId"]
    world.person.break_glass(found)
    edit(world, "#!/bin/sh\nexport PIN=changed-by-hand")
    world.cycle(2)
    assert world.drift("ls-a", "web") == {"userData": {"declared": REFERENCE, "actual": "(secret: differs)"}}
    assert "changed-by-hand" not in everything(world)
    world.person.hand_back(found)
    world.settle()
    assert in_the_cloud(world) == FIRST
    assert "changed-by-hand" not in everything(world)


@pytest.mark.rule("A8")
def test_a_missing_secret_creates_nothing_and_says_how_to_bind_it(world: World, folder: Path) -> None:
    mutation = world.deploy("ls-a", machine())
    world.settle()
    shown = world.component("ls-a", "web")
    assert shown["status"] == "Failed"
    for word in ("'boot'", "'agent-1'", str(folder / "ls-a" / "boot"), "FRACTAL_SECRET_BOOT"):
        assert word in shown["message"], shown["message"]
    assert world.mutation("ls-a", mutation)["status"] == "Failed"
    assert not world.sandbox.aws.calls.find(actor="agent", writes_only=True), "nothing was written"
    keep(folder, FIRST)
    world.settle()
    assert world.status("ls-a", "web") == "Active", "it is tried again without being asked"
    assert world.mutation("ls-a", mutation)["status"] == "Completed"


@pytest.mark.rule("A8")
def test_a_secret_that_is_lost_later_keeps_everything_as_it_is(world: World, folder: Path) -> None:
    keep(folder, FIRST)
    world.deploy("ls-a", machine())
    world.settle()
    (folder / "ls-a" / "boot").unlink()
    changed = machine()
    changed["parameters"]["instanceType"] = "t3.large"
    before = len(world.sandbox.aws.calls.find(actor="agent", writes_only=True))
    world.deploy("ls-a", changed)
    world.settle()
    assert world.status("ls-a", "web") == "Failed"
    assert len(world.sandbox.aws.calls.find(actor="agent", writes_only=True)) == before, "not even half of it"
    assert in_the_cloud(world) == FIRST
    keep(folder, SECOND)
    world.settle()
    assert world.status("ls-a", "web") == "Active"
    assert in_the_cloud(world) == SECOND


@pytest.mark.rule("A8")
def test_a_secret_of_one_live_system_is_nobody_elses(world: World, folder: Path) -> None:
    keep(folder, FIRST)
    other = machine()
    other["parameters"]["name"] = "mine"
    world.deploy("ls-b", other)
    world.settle()
    assert world.status("ls-b", "web") == "Failed"
    assert "is not bound" in world.component("ls-b", "web")["message"]


@pytest.mark.rule("A8")
def test_whoever_declares_it_in_clear_afterwards_does_not_see_what_it_was(world: World, folder: Path) -> None:
    keep(folder, FIRST)
    world.deploy("ls-a", machine())
    world.settle()
    world.person.break_glass(world.component("ls-a", "web")["resourceId"])
    world.deploy("ls-a", machine("#!/bin/sh\necho in-clear"))
    world.deploy("ls-b", machine("#!/bin/sh\necho guess", importOnly=True))
    world.settle()
    hidden = {"userData": {"declared": "(sensitive)", "actual": "(sensitive: differs)"}}
    assert world.drift("ls-a", "web") == hidden
    assert world.drift("ls-b", "web") == hidden
    assert "first-canary" not in everything(world) + world.api.get("/livesystems/ls-b/components").text


@pytest.mark.rule("A8", "C6")
def test_a_plan_says_whether_it_differs_and_nothing_else(world: World, folder: Path) -> None:
    keep(folder, FIRST)
    world.deploy("ls-a", machine())
    world.settle()
    keep(folder, SECOND, name="other")
    plan = _plan(world, machine({"$secret": "other"}))
    differing = {"declared": {"$secret": "other"}, "actual": "(secret: differs)"}
    assert plan["components"][0]["changes"] == {"userData": differing}
    missing = _plan(world, machine({"$secret": "nowhere"}))
    assert (missing["verdict"], missing["components"][0]["action"]) == ("Failed", "fail")
    assert "'nowhere' is not bound" in missing["components"][0]["message"]


def _plan(world: World, *components: dict[str, Any]) -> dict[str, Any]:
    """Ask for a plan, and have the agent answer it."""
    body = {"id": "ls-a", "components": list(components)}
    asked = answered_by_agent(lambda: world.api.post("/livesystems/ls-a/plan", json=body), world.agent.run_once)
    found: dict[str, Any] = asked.json()
    return found


@pytest.mark.rule("A8")
def test_what_a_cloud_quotes_in_its_refusal_is_taken_out(world: World, folder: Path) -> None:
    keep(folder, FIRST)
    encoded = b64encode(FIRST.encode()).decode()
    quoted = f"Invalid BASE64 encoding of user data: {encoded[:40]} ... {FIRST}"
    world.sandbox.aws.knobs.fail(
        operation="RunInstances", code="InvalidUserData.Malformed", message=quoted, status=400, times=None
    )
    world.deploy("ls-a", machine())
    world.cycle(2)
    assert world.status("ls-a", "web") == "Failed"
    assert "user data: (secret)" in world.component("ls-a", "web")["message"]
    assert not any(part in everything(world) for part in ("first-canary", encoded[:16], "export PIN"))
