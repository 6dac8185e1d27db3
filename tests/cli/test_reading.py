"""status, drift, events, glass, token: what they print for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane

DRIFT = {"instanceType": {"declared": "t3.medium", "actual": "t3.large"}}


def component(name: str, status: str = "Active", message: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "id": f"ls-abc/blueprint/{name}",
        "componentId": name,
        "liveSystemId": "ls-abc",
        "type": "NetworkAndCompute.IaaS.AwsEc2Instance",
        "provider": "aws",
        "status": status,
        "message": message,
        "owner": "ls-abc",
        "generation": 3,
        "observedGeneration": 3,
        "lastUpdated": "2026-11-15T12:00:00Z",
        "override": None,
        "outputFields": {"instanceId": f"i-{name}", **fields},
    }


WEB = component("web-vm", "ManualOverride", "in manual override: managed-by is absent", drift=DRIFT)


@pytest.fixture
def deployed(control: FakeControlPlane) -> FakeControlPlane:
    live_system = {"id": "ls-abc", "environment": "default", "status": "ManualOverride", "counts": {"Active": 1}}
    control.on("GET", "/livesystems", {"items": [live_system], "cursor": None})
    control.on("GET", "/livesystems/ls-abc", {**live_system, "components": []})
    control.on(
        "GET",
        "/livesystems/ls-abc/components",
        {"items": [component("net")], "cursor": "net"},
        {"items": [WEB], "cursor": None},
    )
    control.on("GET", "/livesystems/ls-abc/components/web-vm", WEB)
    return control


def test_status_of_all_live_systems(fractal: Fractal, deployed: FakeControlPlane) -> None:
    ran = fractal("status")
    assert ran.code == 0
    assert "ls-abc" in ran.words
    assert "1 Active" in ran.words


def test_status_of_a_live_system_reads_every_page(fractal: Fractal, deployed: FakeControlPlane) -> None:
    ran = fractal("status", "ls-abc", "--token", "t")
    assert ran.code == 0
    for word in ("net", "web-vm", "AwsEc2Instance", "ManualOverride", "instanceType: declared t3.medium, actual"):
        assert word in ran.words.replace("  ", " ")
    assert [asked.query.get("cursor") for asked in deployed.asked[1:]] == [None, "net"]
    assert {asked.token for asked in deployed.asked} == {"t"}


def test_status_of_a_component_shows_everything_of_it(fractal: Fractal, deployed: FakeControlPlane) -> None:
    ran = fractal("status", "ls-abc", "web-vm")
    for word in ("in manual override: managed-by is absent", "i-web-vm", "t3.large", "ls-abc/blueprint/web-vm"):
        assert word in ran.words


@pytest.mark.rule("S22")
@pytest.mark.parametrize(
    ("status", "observed", "said"),
    [
        ("Active", 3, "generation 3, applied"),
        ("ManualOverride", 3, "generation 3, observed"),
        ("Failed", 3, "generation 3, observed"),
        ("Mutating", 2, "generation 3, not applied yet (observed: 2)"),
        ("Instantiating", 0, "generation 3, not applied yet last"),
    ],
)
def test_status_of_a_component_says_whether_its_generation_was_applied(
    fractal: Fractal, control: FakeControlPlane, status: str, observed: int, said: str
) -> None:
    shown = {**component("web", status), "observedGeneration": observed}
    control.on("GET", "/livesystems/ls-abc/components/web", shown)
    assert said in fractal("status", "ls-abc", "web").words


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
@pytest.mark.parametrize(
    "command", [("status",), ("status", "ls-abc"), ("status", "ls-abc", "web-vm"), ("drift", "ls-abc")]
)
def test_reading_commands_print_for_programs(
    fractal: Fractal, deployed: FakeControlPlane, form: str, read: Any, command: tuple[str, ...]
) -> None:
    ran = fractal(*command, "--output", form)
    assert ran.code == 0
    assert read(ran.out)


def test_tables_fit_eighty_columns_and_cut_nothing(fractal: Fractal, control: FakeControlPlane) -> None:
    long = component("a" * 63, "Failed", "x" * 300)
    control.on("GET", "/livesystems/ls-abc", {"id": "ls-abc", "status": "Failed"})
    control.on("GET", "/livesystems/ls-abc/components", {"items": [long], "cursor": None})
    ran = fractal("status", "ls-abc")
    assert max(len(line) for line in ran.out.splitlines()) <= 80
    assert ran.out.count("x") >= 300
    assert ran.out.count("a") >= 63


def test_text_from_elsewhere_cannot_command_the_terminal(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("GET", "/livesystems/ls-abc/components/web", component("web", message="[red]\x1b[2J[/red] \x07"))
    ran = fractal("status", "ls-abc", "web")
    assert "\x1b" not in ran.out
    assert "[red]" in ran.out


@pytest.mark.rule("G3")
def test_drift_shows_declared_and_actual(fractal: Fractal, deployed: FakeControlPlane) -> None:
    ran = fractal("drift", "ls-abc")
    assert ran.code == 0
    for word in ("web-vm", "instanceType", "t3.medium", "t3.large"):
        assert word in ran.words
    assert json.loads(fractal("drift", "ls-abc", "-o", "json").out) == {"web-vm": DRIFT}


def test_no_drift_is_said(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("GET", "/livesystems/ls-abc/components", {"items": [component("net")], "cursor": None})
    assert fractal("drift", "ls-abc").out == "ls-abc: no drift\n"


def event(seq: int, kind: str = "StatusChanged", **more: Any) -> dict[str, Any]:
    return {
        "seq": seq,
        "at": "2026-11-15T12:00:00Z",
        "liveSystemId": "ls-abc",
        "componentId": "web-vm",
        "kind": kind,
        "by": "agent",
        "message": "",
        "before": "Active",
        "after": "ManualOverride",
        **more,
    }


@pytest.mark.rule("C4")
def test_events_come_oldest_first(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("GET", "/livesystems/ls-abc/events", {"items": [event(2, "GlassBroken"), event(1)], "cursor": "1"})
    ran = fractal("events", "ls-abc", "--limit", "2")
    assert ran.words.index("StatusChanged") < ran.words.index("GlassBroken")
    assert "web-vm Active → ManualOverride" in ran.words
    assert len(control.asked) == 1, "as many as were asked for, and no page more"


@pytest.mark.rule("G12")
def test_glass_prints_commands_that_can_be_pasted(fractal: Fractal, control: FakeControlPlane) -> None:
    command = "aws ec2 delete-tags --region eu-central-1 --resources i-0abc0abc0abc0abc --tags Key=managed-by " * 2
    control.on(
        "GET", "/livesystems/ls/components/web/glass", {"break": [command.strip()], "readopt": ["aws x"], "caveat": "c"}
    )
    ran = fractal("glass", "ls", "web")
    assert ran.code == 0
    assert f"  {command.strip()}\n" in ran.out, "a command stays on one line, however long"
    assert "  aws x\n" in ran.out


@pytest.mark.rule("G13")
def test_glass_is_broken_with_a_reason_and_a_date(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("POST", "/livesystems/ls/components/web/glass", {}, status=202)
    ran = fractal("glass", "ls", "web", "--break", "--reason", "incident 7", "--until", "2030-01-31T18:00+00:00")
    assert ran.code == 0
    assert control.last().body == {"action": "break", "reason": "incident 7", "until": "2030-01-31T18:00:00+00:00"}
    assert fractal("glass", "ls", "web", "--break", "--until", "4h").code == 0
    assert control.last().body["until"].endswith("+00:00")
    assert fractal("glass", "ls", "web", "--readopt").code == 0
    assert control.last().body == {"action": "readopt"}


@pytest.mark.parametrize(
    "flags", [("--break", "--readopt"), ("--reason", "x"), ("--break", "--until", "soon"), ("--until", "4h")]
)
def test_glass_refuses_flags_that_make_no_sense(
    fractal: Fractal, control: FakeControlPlane, flags: tuple[str, ...]
) -> None:
    assert fractal("glass", "ls", "web", *flags).code == 2
    assert not control.asked


@pytest.mark.rule("G10")
def test_force_push_on_a_component_and_on_a_live_system(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("POST", "/livesystems/ls/components/web/force-push", {"requested": ["web"], "refused": []}, status=202)
    refused = [{"componentId": "net", "reason": "it is imported"}]
    control.on("POST", "/livesystems/ls/force-push", {"requested": ["web"], "refused": refused}, status=202)
    assert fractal("force-push", "ls", "web").out.startswith("web: Force Push asked for")
    ran = fractal("force-push", "ls")
    assert ran.code == 0
    assert ran.err == "warning: net is left out: it is imported\n"


@pytest.mark.rule("G10")
def test_a_refused_force_push_prints_the_reason(fractal: Fractal, control: FakeControlPlane) -> None:
    control.refuse("POST", "/livesystems/ls/components/web/force-push", 409, "'web' is owned by 'ls-b'")
    ran = fractal("force-push", "ls", "web")
    assert ran.code == 1
    assert ran.err == "error: 'web' is owned by 'ls-b'\n"


def test_tokens_are_made_listed_and_revoked(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("POST", "/tokens", {"id": "1", "token": "fc_secret", "role": "agent"}, status=201)
    control.on("GET", "/tokens", {"items": [{"id": "1", "role": "agent", "name": "edge", "createdAt": None}]})
    control.on("DELETE", "/tokens/edge", None, status=200)
    assert fractal("token", "create", "--role", "agent", "--name", "edge", "--provider", "aws").out == "fc_secret\n"
    assert control.last().body == {"role": "agent", "name": "edge", "providers": ["aws"]}
    assert "edge" in fractal("token", "list").words
    assert fractal("token", "revoke", "edge").code == 0
    assert fractal("token", "create", "--role", "king").code == 2


def test_what_is_not_there_is_reported_with_a_command_for_people(fractal: Fractal, control: FakeControlPlane) -> None:
    missing = "there is no LiveSystem 'ls-gone': GET /livesystems lists them"  # as tests/api holds it
    control.refuse("GET", "/livesystems/ls-gone", 404, missing)
    control.refuse("GET", "/livesystems/ls-gone/components", 404, missing)
    ran = fractal("status", "ls-gone")
    assert ran.code == 1
    assert "there is no LiveSystem 'ls-gone' `fractal status` lists them." in ran.words
