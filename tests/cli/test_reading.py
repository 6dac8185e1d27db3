"""status, drift, events, glass, token: what they print for people and for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
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
        "override": {"since": "2026-11-15T11:58:00Z", "by": None} if status == "ManualOverride" else None,
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


SSH = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIp": "10.0.0.0/8"}
RULES = {"ingress": {"declared": [], "actual": [SSH]}, "env": {"declared": {"LOG": "info"}, "actual": {"LOG": "debug"}}}


@pytest.mark.rule("G3")
def test_lists_and_maps_differ_by_element(fractal: Fractal, control: FakeControlPlane) -> None:
    held, well = (
        component("gate", "ManualOverride", "in manual override", drift=RULES),
        component("net", "Active", "ok"),
    )
    control.on("GET", "/livesystems/ls-abc", {"id": "ls-abc", "status": "ManualOverride"})
    control.on("GET", "/livesystems/ls-abc/components", {"items": [held, well], "cursor": None})
    control.on("GET", "/livesystems/ls-abc/components/gate", held)
    for command in (("drift", "ls-abc"), ("status", "ls-abc", "gate")):
        shown = fractal(*command).words
        assert "+ tcp 22 from 10.0.0.0/8" in shown
        assert "env LOG info debug" in shown
        assert "+ is only in the cloud, - is only declared" in shown, "which way round is said"
    listed = fractal("status", "ls-abc").out.splitlines()
    assert "    ingress: + tcp 22 from 10.0.0.0/8" in listed
    assert "net         AwsEc2Instance   Active           ok" in listed, "what is well is one line"
    assert "To hand gate back: fractal glass ls-abc gate --readopt" in listed, "the way back stands on one line"


WRITTEN = {"changes": {"ingress": {"declared": [], "actual": [SSH]}}, "message": ""}


@pytest.mark.rule("C6")
def test_a_plan_says_what_is_written(fractal: Fractal, control: FakeControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "ls.yaml"
    file.write_text("id: ls-abc\ncomponents: []\n")
    item = {"componentId": "gate", "action": "change", **WRITTEN}
    plan = {"components": [item], "hasChanges": True, "verdict": "Completed"}
    control.on("POST", "/livesystems/ls-abc/plan", plan)
    shown = fractal("plan", str(file)).words
    assert "ingress: - tcp 22 from 10.0.0.0/8" in shown
    assert "- is removed from it" in shown


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, fractal: Fractal) -> Callable[..., list[str]]:
    """The lines that a command prints where they go to a terminal of 80 columns."""
    monkeypatch.setenv("TERM", "xterm")

    def lines(*arguments: str) -> list[str]:
        with monkeypatch.context() as patched:
            patched.setattr(sys.stdout, "isatty", lambda: True)
            return re.sub(r"\x1b\[[0-9;]*m", "", fractal(*arguments).out).splitlines()

    return lines


@pytest.mark.rule("C4")
def test_events_fit_the_terminal_and_wide_shows_all(
    terminal: Callable[..., list[str]], fractal: Fractal, control: FakeControlPlane
) -> None:
    long = "In manual override since 02:14: the agent reads it and changes nothing. " * 8
    found = event(2, "DriftFound", before=None, after=RULES, message="env, ingress")
    events = [found, event(1, message=long.strip(), componentId="c" * 63)]
    control.on("GET", "/livesystems/ls-abc/events", {"items": events, "cursor": None})
    control.on("GET", "/events", {"items": events, "cursor": None})
    lines = terminal("events", "ls-abc")
    assert max(map(len, lines)) <= 80
    assert lines[0] == "2026-11-15 12:00:00  StatusChanged"
    assert lines[1] == f"    {'c' * 63}", "an id is not cut where it fits a line of its own"
    assert lines[2].strip() == "Active → ManualOverride"
    assert lines[3].startswith("    by agent: In manual override since 02:14: the agent reads it")
    assert any(line.endswith("…") for line in lines), "what is cut says so"
    assert "2026-11-15 12:00:00  DriftFound  web-vm" in lines
    assert "    by agent: env LOG: declared info, actual debug; ingress: + tcp 22 from" in lines
    assert len(lines) < 12, "one event is a few lines"
    assert max(map(len, terminal("events"))) <= 80
    for whole in (terminal("events", "ls-abc", "--wide"), fractal("events", "ls-abc").out.splitlines()):
        assert len(whole) == 3, "a line that names the columns, and one line each"
        assert long.strip() in whole[1]
        assert "ingress: + tcp 22 from 10.0.0.0/8" in whole[2]
    assert "ls-abc/web-vm" in fractal("events").out, "where all LiveSystems are listed, it says which"


@pytest.mark.rule("C4", "G13")
def test_one_act_is_one_entry_for_people_and_every_event_for_programs(
    terminal: Callable[..., list[str]], fractal: Fractal, control: FakeControlPlane
) -> None:
    asked = event(1, "GlassRequested", before=None, after=None, by="anna", message="INC-4711")
    broken = event(3, "GlassBroken", before="managed", after="override", by="anna", message="INC-4711")
    control.on("GET", "/livesystems/ls-abc/events", {"items": [broken, event(2), asked], "cursor": None})
    assert terminal("events", "ls-abc") == [
        "2026-11-15 12:00:00  GlassBroken  web-vm  Active → ManualOverride",
        "    by anna: INC-4711",
        "    3 events; --wide shows each",
    ]
    assert len(terminal("events", "ls-abc", "--wide")) == 1 + 3
    assert len(fractal("events", "ls-abc").out.splitlines()) == 1 + 3
    assert len(json.loads(fractal("events", "ls-abc", "--output", "json").out)) == 3


@pytest.mark.rule("G13")
def test_status_of_a_component_says_it_in_words_first(fractal: Fractal, control: FakeControlPlane) -> None:
    override = {"since": "2026-11-15T02:14:00Z", "by": "anna", "reason": "INC-4711", "until": None}
    control.on("GET", "/livesystems/ls-abc/components/web-vm", {**WEB, "override": override})
    first = fractal("status", "ls-abc", "web-vm").out.splitlines()[0]
    assert first.startswith("Held by hand since 2026-11-15 02:14 UTC by anna: INC-4711. The agent reads it and ")


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


BEFORE = {"since": "2026-11-15T02:14:00Z", "by": "anna", "reason": "INC-4711", "until": "2026-11-15T06:00:00Z"}


@pytest.mark.rule("G13")
def test_glass_is_extended_and_handed_over(fractal: Fractal, control: FakeControlPlane) -> None:
    path, unknown = "/livesystems/ls/components/web/glass", {**BEFORE, "by": None, "until": None}
    control.on("POST", path, {"changed": True, "before": unknown, "override": {**unknown, "until": BEFORE["until"]}})
    ran = fractal("glass", "ls", "web", "--extend", "2030-11-15T06:00+00:00", "--reason", "a long night")
    until = "2030-11-15T06:00:00+00:00"
    assert control.last().body == {"action": "extend", "until": until, "reason": "a long night"}
    assert "web: held by somebody unknown until 2026-11-15 06:00 UTC; it was held by somebody unknown" in ran.words
    assert "Nothing was written to the cloud" in ran.words
    control.on("POST", path, {"changed": True, "before": BEFORE, "override": {**BEFORE, "by": "bea"}})
    ran = fractal("glass", "ls", "web", "--hand-over", "bea", "--until", "4h")
    assert control.last().body["to"] == "bea"
    assert control.last().body["until"].endswith("+00:00")
    assert "web: held by bea until 2026-11-15 06:00 UTC; it was held by anna until" in ran.words
    control.on("POST", path, {"changed": False, "before": BEFORE, "override": BEFORE})
    assert "nothing changed: it was held by anna" in fractal("glass", "ls", "web", "--hand-over", "anna").words
    planned = {"since": None, "by": "anna", "reason": None, "until": BEFORE["until"]}
    control.on("POST", path, {"changed": True, "before": {**planned, "until": None}, "override": planned})
    assert "no agent has carried it out yet" in fractal("glass", "ls", "web", "--extend", "4h").words


@pytest.mark.rule("G13")
def test_breaking_what_is_broken_says_so(fractal: Fractal, control: FakeControlPlane) -> None:
    answer = {"requested": ["web"], "refused": [], "alreadyInOverride": ["web"], "override": BEFORE, "tagsFrozen": []}
    control.on("POST", "/livesystems/ls/components/web/glass", answer, status=202)
    ran = fractal("glass", "ls", "web", "--break")
    assert "web: already in manual override since 2026-11-15 02:14 UTC, held by anna until" in ran.words
    assert "removes managed-by" not in ran.words
    assert "--extend or --hand-over" in ran.words


@pytest.mark.parametrize(
    "flags",
    [
        ("--break", "--readopt"),
        ("--reason", "x"),
        ("--break", "--until", "soon"),
        ("--until", "4h"),
        ("--extend", "soon"),
        ("--extend", "4h", "--until", "4h"),
        ("--extend", "4h", "--hand-over", "bea"),
        ("--readopt", "--extend", "4h"),
    ],
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
    known = {"id": "1", "role": "agent", "name": "edge", "createdAt": None, "realms": ["123456789012"]}
    control.on("GET", "/tokens", {"items": [known]})
    control.on("DELETE", "/tokens/edge", None, status=200)
    bound = ("--provider", "aws", "--environment", "prod", "--environment", "stage-*", "--realm", "123456789012")
    assert fractal("token", "create", "--role", "agent", "--name", "edge", *bound).out == "fc_secret\n"
    assert control.last().body == {
        "role": "agent",
        "name": "edge",
        "providers": ["aws"],
        "environments": ["prod", "stage-*"],
        "realms": ["123456789012"],
    }
    listed = fractal("token", "list").words
    assert "edge" in listed
    assert "123456789012" in listed
    assert fractal("token", "revoke", "edge").code == 0
    assert fractal("token", "create", "--role", "king").code == 2


@pytest.mark.rule("A1")
@pytest.mark.parametrize("missing", ["--provider", "--environment", "--realm"])
def test_an_agents_token_without_its_bounds_is_refused_with_an_example(fractal: Fractal, missing: str) -> None:
    bound = {"--provider": "aws", "--environment": "prod", "--realm": "123456789012"}
    given = [word for flag, value in bound.items() if flag != missing for word in (flag, value)]
    ran = fractal("token", "create", "--role", "agent", *given)
    assert ran.code == 2
    assert f"{missing} is missing" in ran.err
    example = "fractal token create --role agent --provider aws --environment prod --realm 123456789012"
    assert example in " ".join(ran.err.split())


@pytest.mark.rule("A1")
def test_a_token_may_be_given_an_end(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("POST", "/tokens", {"id": "1", "token": "fc_secret", "role": "reader"}, status=201)
    assert fractal("token", "create", "--role", "reader", "--expires", "90d").code == 0
    expires = datetime.fromisoformat(control.last().body["expiresAt"])
    assert abs(expires - datetime.now(UTC) - timedelta(days=90)) < timedelta(minutes=5)
    ran = fractal("token", "create", "--role", "reader", "--expires", "some day")
    assert ran.code == 2
    assert "--expires is 'some day'" in ran.err


def test_what_is_not_there_is_reported_with_a_command_for_people(fractal: Fractal, control: FakeControlPlane) -> None:
    missing = "there is no LiveSystem 'ls-gone': GET /livesystems lists them"  # as tests/api holds it
    control.refuse("GET", "/livesystems/ls-gone", 404, missing)
    control.refuse("GET", "/livesystems/ls-gone/components", 404, missing)
    ran = fractal("status", "ls-gone")
    assert ran.code == 1
    assert "there is no LiveSystem 'ls-gone' `fractal status` lists them." in ran.words
