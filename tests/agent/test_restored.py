"""A backup of the control plane's database is restored: what it remembers is no truth (C9)."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.agent.client import ControlPlaneRefuses, LeaseLost
from fractal_cloud.agent.last_seen import LastSeenFile
from fractal_cloud.model.wire import LastSeen
from fractal_cloud.testing.tokens import agent_token
from fractal_sandbox import Sandbox
from tests.agent_answers import answered_by_agent
from tests.sharing.aws_state import has_dns, is_there
from tests.world import ADMIN_TOKEN, World, subnet, vpc
from tests.world import world as make_world


@pytest.fixture
def remembering(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A world whose agents keep on disk what they have seen."""
    with make_world(session_sandbox, tmp_path, monkeypatch, state_dir=tmp_path / "state") as made:
        yield made


def _cycle(world: World, times: int = 1) -> None:
    """Cycles of an agent that registers anew where it is refused, as its own loop does; its token is confirmed."""
    for _ in range(times):
        for attempt in range(3):
            try:
                world.cycle()
            except (LeaseLost, ControlPlaneRefuses):
                assert attempt < 2
                world.confirm_tokens()
                world.agent._registered = False
            else:
                break


def _writes(world: World) -> list[str]:
    return [call.operation for call in world.sandbox.aws.calls.find(actor="agent", writes_only=True) if call.effect]


def _override_that_only_memory_knows(world: World) -> str:
    """A person broke the glass, changed the VPC, and put managed-by back without the handshake (S11)."""
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.backup()
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.cycle()
    world.person.tag(vpc_id, managed_by="fractal-cloud")
    world.settle()
    assert world.status("ls-a", "net") == "ManualOverride"
    world.sandbox.aws.calls.clear()
    return vpc_id


def _recovery(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.api.get("/recovery").json()
    return found


def _shown(world: World, live_system: str) -> dict[str, Any]:
    """What confirming would do, answered by the world's agent."""
    path = f"/recovery/livesystems/{live_system}/plan"
    answer = answered_by_agent(lambda: world.api.post(path), world.agent.run_once)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _confirm(world: World, live_system: str) -> dict[str, str]:
    """Confirm a LiveSystem as it was shown; what would become of each component."""
    plan = _shown(world, live_system)
    answer = world.api.post(f"/recovery/livesystems/{live_system}/confirm", json={"fingerprint": plan["fingerprint"]})
    assert answer.status_code == 204, answer.text
    return {component["componentId"]: component["action"] for component in plan["components"]}


# --- what was seen: a restored backup reverts a person, and deletes what was deployed again


@pytest.mark.rule("C9", "S11")
@pytest.mark.parametrize("agent", ["lives on", "is started again"])
def test_an_override_that_only_memory_knew_is_not_reverted_after_a_restore(remembering: World, agent: str) -> None:
    world = remembering
    vpc_id = _override_that_only_memory_knows(world)
    world.restore()
    if agent == "is started again":
        world.restart_agent()
    _cycle(world, 4)
    assert _writes(world) == []
    assert not has_dns(world, vpc_id)
    shown = world.component("ls-a", "net")
    assert "restored from a backup" in shown["message"]
    assert shown["outputFields"]["drift"] == {"enableDnsHostnames": {"declared": True, "actual": False}}
    assert [one["id"] for one in _recovery(world)["liveSystems"]] == ["ls-a"]
    world.assert_safe()


@pytest.mark.rule("C9", "O10", "O19")
@pytest.mark.parametrize("agent", ["lives on", "is started again"])
def test_what_was_deployed_again_is_not_deleted_by_a_backup_taken_during_its_deletion(
    remembering: World, agent: str
) -> None:
    world = remembering
    world.deploy("ls-a", vpc())
    world.settle()
    world.delete("ls-a")
    world.backup()
    world.settle()
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.sandbox.aws.calls.clear()
    world.restore()
    if agent == "is started again":
        world.restart_agent()
    _cycle(world, 4)
    assert is_there(world, vpc_id)
    assert _writes(world) == []
    assert _confirm(world, "ls-a") == {"net": "leave"}, "the deletion was asked for of another VPC"
    _cycle(world, 6)
    assert is_there(world, vpc_id)
    assert _writes(world) == []
    world.assert_safe()


@pytest.mark.rule("C9", "C2")
def test_what_no_agent_remembers_only_the_command_can_say(world: World) -> None:
    """An agent that forgot, or was never here, says nothing; whoever restores says so, before it registers."""
    vpc_id = _override_that_only_memory_knows(world)
    world.restore()
    world.restart_agent()
    assert world.api.post("/recovery").status_code == 202
    _cycle(world, 4)
    assert _writes(world) == []
    assert not has_dns(world, vpc_id)
    world.assert_safe()


@pytest.mark.rule("C9")
def test_of_two_agents_one_that_remembers_is_enough(remembering: World, tmp_path: Path) -> None:
    world = remembering
    vpc_id = _override_that_only_memory_knows(world)
    world.restore()
    remembers = world.agent
    world._agent_settings["state_dir"] = None
    world.start_agent()
    try:
        remembers._registered = False
        with pytest.raises(ControlPlaneRefuses, match="confirm-tokens"):
            remembers._register()
        _cycle(world, 4)
        assert _recovery(world)["inRecovery"]
        assert _writes(world) == []
        assert not has_dns(world, vpc_id)
    finally:
        remembers.close()


# --- how it ends


@pytest.mark.rule("C9", "S12a")
@pytest.mark.parametrize("how", ["confirmed", "deployed again"])
def test_what_is_confirmed_is_shown_for_a_cycle_and_then_written(
    session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with make_world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=0.5, state_dir=tmp_path / "state") as world:
        vpc_id = _override_that_only_memory_knows(world)
        world.restore()
        _cycle(world)
        if how == "confirmed":
            assert _confirm(world, "ls-a") == {"net": "change"}
        else:
            world.deploy("ls-a", vpc(enableDnsHostnames=True))
        world.agent.run_once()
        shown = world.component("ls-a", "net")
        assert (shown["status"], _writes(world)) == ("Mutating", []), "a person gets to see it first"
        _cycle(world, 2)
        assert has_dns(world, vpc_id)
        assert world.status("ls-a", "net") == "Active"
        assert not _recovery(world)["inRecovery"]
        kinds = [event["kind"] for event in world.events("ls-a")]
        assert "RecoveryConfirmed" in kinds
        assert "RecoveryBegan" in kinds
        world.assert_safe()


@pytest.mark.rule("C9")
def test_what_was_made_since_the_backup_is_found_again_and_made_once(remembering: World) -> None:
    world = remembering
    world.backup()
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    world.sandbox.aws.calls.clear()
    world.restore()
    _cycle(world, 2)
    assert _recovery(world)["liveSystems"] == [], "the backup knows of none"
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    assert _writes(world) == []
    assert world.status("ls-a", "subnet") == "Active"


@pytest.mark.rule("C9", "G10", "G13")
def test_nobody_pushes_or_breaks_the_glass_of_what_is_in_recovery(remembering: World) -> None:
    world = remembering
    _override_that_only_memory_knows(world)
    world.restore()
    _cycle(world)
    for answer in (world.force_push("ls-a", "net"), world.glass("ls-a", "net", "break", reason="now")):
        assert answer.status_code == 409
        assert "fractal restored confirm ls-a" in answer.json()["detail"]


@pytest.mark.rule("C9")
def test_nothing_is_created_for_an_open_intent_of_a_backup(remembering: World) -> None:
    """The backup was taken between an intent and its creation: what it made is found, and nothing is made twice."""
    world = remembering
    world.deploy("ls-a", vpc())
    publish = world.agent.publish

    def back_up_after(report: Any) -> Any:
        at = publish(report)
        if any(change.intent is not None for change in report.changes) and not (world._folder / "backup.db").exists():
            world.backup()
        return at

    world.agent.publish = back_up_after  # type: ignore[method-assign]
    world.settle()
    assert (world._folder / "backup.db").exists(), "there was such a moment"
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.person.ec2.delete_vpc(VpcId=vpc_id)
    world.sandbox.aws.calls.clear()
    world.restore()
    _cycle(world, 4)
    assert _writes(world) == []
    assert _confirm(world, "ls-a") == {"net": "create"}
    assert _writes(world) == []
    _cycle(world, 8)
    assert world.status("ls-a", "net") == "Active"


# --- what an agent keeps on disk


def _seen(event: int, incarnation: str = "a" * 32) -> LastSeen:
    return LastSeen(incarnation=incarnation, event=event, event_id="ab", at=datetime(2026, 11, 18, tzinfo=UTC))


@pytest.mark.rule("C9")
def test_what_was_seen_is_kept_for_its_owner_alone_and_never_goes_back(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    one, other = (LastSeenFile(folder, "http://here") for _ in range(2))
    one.keep(_seen(9))
    other.keep(_seen(7))
    assert LastSeenFile(folder, "http://here").value == _seen(9), "another agent of this machine has seen more"
    assert LastSeenFile(folder, "http://there").value is None
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    one.keep(_seen(3, "b" * 32))
    assert LastSeenFile(folder, "http://here").value == _seen(3, "b" * 32), "another life counts anew"


@pytest.mark.rule("C9")
def test_an_agent_that_cannot_keep_anything_on_disk_goes_on(
    session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    with make_world(session_sandbox, tmp_path, monkeypatch, state_dir=tmp_path / "file" / "state") as world:
        world.deploy("ls-a", vpc())
        world.settle()
        assert world.status("ls-a", "net") == "Active"
    assert capsys.readouterr().out.count("a restored backup may go unnoticed") == 1, "said once, not in every cycle"


@pytest.mark.rule("C9")
@pytest.mark.parametrize("content", [b"", b"{", b'{"incarnation": 1}', b"\xff"])
def test_a_file_that_says_nothing_is_no_memory(tmp_path: Path, content: bytes) -> None:
    one = LastSeenFile(tmp_path, "http://here")
    one.keep(_seen(9))
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    again = LastSeenFile(tmp_path, "http://here")
    assert again.value is None
    again.keep(_seen(10))
    assert LastSeenFile(tmp_path, "http://here").value == _seen(10)


@pytest.mark.rule("C9")
def test_an_agents_token_of_a_backup_is_refused_until_an_admin_confirmed_it(remembering: World) -> None:
    world = remembering
    token = agent_token(world.api, "west")
    theirs = {"Authorization": f"Bearer {token}"}
    wait = {"agentId": "nobody", "wake": 0}
    assert world.api.post("/agent/wait", json=wait, headers=theirs).status_code == 404
    world.backup()
    world.restore()
    world.api.post("/recovery")
    refused = world.api.post("/agent/wait", json=wait, headers=theirs)
    assert refused.status_code == 403
    assert "fractal restored confirm-tokens" in refused.json()["detail"]
    assert world.api.get("/livesystems", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"}).status_code == 200
    ids = [one["id"] for one in _recovery(world)["tokens"]]
    assert world.api.post("/recovery/tokens/confirm", json={"tokens": ids}).json() == {"confirmed": ["agents", "west"]}
    assert world.api.post("/agent/wait", json=wait, headers=theirs).status_code == 404
