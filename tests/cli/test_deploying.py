"""plan, deploy, delete: what they do, what they print, and how they end."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.cli import waiting
from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane

MUTATION = "/livesystems/ls-a/mutations/m1"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"id": "ls-a", "components": []}))
    return str(path)


def mutation(status: str, **components: tuple[str, str]) -> dict[str, Any]:
    found = {name: {"status": state, "message": message} for name, (state, message) in components.items()}
    held = [name for name, (state, _) in components.items() if state == "ManualOverride"]
    return {"id": "m1", "liveSystemId": "ls-a", "status": status, "components": found, "heldByOverride": held}


def accept(control: FakeControlPlane, *warnings: str) -> None:
    answer = {"liveSystemId": "ls-a", "mutationId": "m1", "warnings": list(warnings)}
    control.on("PUT", "/livesystems/ls-a", answer, status=202)


def test_deploy_puts_the_declaration_and_prints_the_mutation(
    fractal: Fractal, control: FakeControlPlane, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept(control, "nobody serves aws")
    monkeypatch.setenv("FRACTAL_TOKEN", "from-env")
    ran = fractal("deploy", file)
    assert (ran.code, ran.out) == (0, "ls-a: deployed as mutation m1\n")
    assert ran.err == "warning: nobody serves aws\n"
    assert control.last().body == {"id": "ls-a", "components": []}
    assert control.last().token == "from-env"


@pytest.mark.rule("C8")
def test_deploy_and_wait_prints_changes_and_ends_well_when_completed(
    fractal: Fractal, control: FakeControlPlane, file: str
) -> None:
    accept(control)
    control.on(
        "GET",
        MUTATION,
        mutation("InProgress", net=("Instantiating", "")),
        mutation("InProgress", net=("Instantiating", "")),
        mutation("Completed", net=("Active", ""), web=("ManualOverride", "in manual override")),
    )
    ran = fractal("deploy", file, "--wait")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "ls-a: deployed as mutation m1",
        "ls-a/net  Instantiating",
        "ls-a/net  Active",
        "ls-a/web  ManualOverride  in manual override",
        "web is in manual override: it was left as it is",
    ]


@pytest.mark.rule("C8")
@pytest.mark.parametrize("patience", [60.0, 0.0], ids=["it comes", "it waits for somebody"])
def test_links_are_waited_for_a_moment_and_hold_nothing_up(
    fractal: Fractal, control: FakeControlPlane, file: str, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr(waiting, "LINK_SECONDS", patience)
    accept(control)
    done = mutation("Completed", web=("Active", ""))
    unpublished = "link of 'web' to 'db': 'db' has published nothing for it yet"
    control.on("GET", MUTATION, {**done, "linksWaiting": [unpublished]}, {**done, "linksWaiting": []})
    ran = fractal("deploy", file, "--wait")
    assert ran.code == 0
    assert (f"waits: {unpublished}" in ran.out) is (patience == 0.0)


@pytest.mark.rule("C8")
@pytest.mark.parametrize(
    ("status", "cause"),
    [("Failed", "ls-a: Failed"), ("Cancelled", "ls-a: a newer deploy or delete took its place")],
)
def test_deploy_and_wait_fails_with_every_failing_components_message(
    fractal: Fractal, control: FakeControlPlane, file: str, status: str, cause: str
) -> None:
    accept(control)
    control.on("GET", MUTATION, mutation(status, a=("Failed", "denied"), b=("Missing", "gone"), c=("Active", "fine")))
    ran = fractal("deploy", file, "--wait")
    assert ran.code == 1
    assert ran.err.splitlines()[:3] == [f"error: {cause}", "  a: Failed: denied", "  b: Missing: gone"]
    assert "fine" not in ran.err


@pytest.mark.rule("C8")
def test_deploy_and_wait_says_why_where_only_a_person_can_go_on(
    fractal: Fractal, control: FakeControlPlane, file: str
) -> None:
    accept(control)
    reason = "net (ManualOverride): several resources are named 'net' (vpc-1, vpc-2): rename all but one"
    failed = mutation("Failed", net=("ManualOverride", "several"), sub=("Instantiating", "waits for net"))
    control.on("GET", MUTATION, {**failed, "reasons": [reason]})
    ran = fractal("deploy", file, "--wait")
    assert ran.code == 1
    assert ran.err.splitlines()[:2] == ["error: ls-a: Failed", f"  {reason}"]


def test_deploy_and_wait_gives_up_after_the_timeout(fractal: Fractal, control: FakeControlPlane, file: str) -> None:
    accept(control)
    control.on("GET", MUTATION, mutation("InProgress", a=("Pending", "nobody serves aws")))
    ran = fractal("deploy", file, "--wait", "--timeout", "0.05")
    assert ran.code == 1
    assert "not settled within 0.05 s" in ran.err
    assert "a: Pending: nobody serves aws" in ran.err


def test_on_a_terminal_progress_is_a_table_in_its_place(
    fractal: Fractal, control: FakeControlPlane, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept(control)
    control.on("GET", MUTATION, mutation("InProgress", net=("Pending", "")), mutation("Completed", net=("Active", "")))
    monkeypatch.setenv("FORCE_COLOR", "1")
    ran = fractal("deploy", file, "--wait")
    assert ran.code == 0
    assert "ls-a: InProgress" in ran.out
    assert "\x1b[1A" in ran.out, "the table before it is overwritten"
    assert ran.out.rindex("ls-a: Completed") > ran.out.rindex("ls-a: InProgress")


def test_a_refused_deploy_lists_every_error_on_its_line(fractal: Fractal, control: FakeControlPlane, file: str) -> None:
    control.refuse(
        "PUT",
        "/livesystems/ls-a",
        422,
        "2 errors. Fix them and try again; nothing was stored.",
        ("components[net].parameters.cidrBlock", "is 5: must be text"),
        ("components[x].type", "is missing"),
    )
    ran = fractal("deploy", file)
    assert ran.code == 1
    assert ran.err.splitlines() == [
        f"error: {file}: 2 errors. Fix them and try again; nothing was stored.",
        "  components[net].parameters.cidrBlock: is 5: must be text",
        "  components[x].type: is missing",
    ]


def planned(*actions: str) -> dict[str, Any]:
    return {
        "liveSystemId": "ls-a",
        "hasChanges": bool({"create", "change", "import", "delete", "drop"} & set(actions)),
        "warnings": [],
        "verdict": "Failed" if "fail" in actions else "Unknown" if "unknown" in actions else "Completed",
        "reasons": [f"c{index}: because" for index, action in enumerate(actions) if action == "fail"],
        "components": [
            {
                "componentId": f"c{index}",
                "type": "T",
                "action": action,
                "message": "because",
                "changes": {"size": {"declared": 2, "actual": 1}} if action == "change" else {},
                "warnings": ["stops the machine"] if action == "change" else [],
            }
            for index, action in enumerate(actions)
        ],
    }


@pytest.mark.rule("C6")
@pytest.mark.parametrize(
    ("actions", "flags", "code"),
    [
        (["nothing"], ["--exit-code"], 0),
        (["leave", "nothing"], ["--exit-code"], 0),
        (["create"], [], 0),
        (["create"], ["--exit-code"], 3),
        (["delete", "nothing"], ["--exit-code"], 3),
        (["unknown", "create"], ["--exit-code"], 1),
        (["fail"], [], 1),
    ],
)
def test_plan_ends_by_what_it_found(
    fractal: Fractal, control: FakeControlPlane, file: str, actions: list[str], flags: list[str], code: int
) -> None:
    control.on("POST", "/livesystems/ls-a/plan", planned(*actions))
    assert fractal("plan", file, *flags).code == code
    assert control.last().body == {"id": "ls-a", "components": []}


@pytest.mark.rule("C10", "C6")
@pytest.mark.parametrize(
    ("action", "end"),
    [
        ("create", ["The deploy would complete."]),
        ("fail", ["The deploy would fail:", "  c0: because"]),
        ("unknown", ["Whether the deploy would complete is unknown: not every agent has answered."]),
    ],
)
def test_plan_ends_with_the_verdict_and_says_what_the_deploy_would_warn_of(
    fractal: Fractal, control: FakeControlPlane, file: str, action: str, end: list[str]
) -> None:
    warning = "'net' is owned by 'ls-b': it is imported, nothing is created"
    control.on("POST", "/livesystems/ls-a/plan", {**planned(action), "warnings": [warning]})
    ran = fractal("plan", file)
    assert ran.out.splitlines()[-len(end) :] == end
    assert f"warning: {warning}" in ran.err


@pytest.mark.rule("C6")
def test_plan_shows_what_would_change(fractal: Fractal, control: FakeControlPlane, file: str) -> None:
    control.on("POST", "/livesystems/ls-a/plan", planned("create", "change"))
    ran = fractal("plan", file)
    for word in ("+ create", "~ change", "size: 1 → 2", "warning: stops the machine", "1 to create, 1 to change"):
        assert word in ran.words
    assert json.loads(fractal("plan", file, "-o", "json").out) == planned("create", "change")


@pytest.mark.rule("C6")
def test_plan_shows_what_would_become_of_links(fractal: Fractal, control: FakeControlPlane, file: str) -> None:
    made = planned("nothing")
    database = {"declared": "orders", "actual": "stock"}
    consent = "add 'ls-a' to its linksFrom"
    made["components"][0]["links"] = [
        {"target": "one", "action": "add", "changes": {"database": {**database, "actual": None}}, "waits": consent},
        {"target": "two", "action": "change", "changes": {"database": database}, "waits": ""},
        {"target": "three", "action": "remove", "changes": {"database": {**database, "declared": None}}, "waits": ""},
        {"target": "four", "action": "nothing", "changes": {}, "waits": ""},
    ]
    control.on("POST", "/livesystems/ls-a/plan", made)
    words = fractal("plan", file).words
    assert f"link to one: add, database: orders; waits: {consent}" in words
    assert "link to two: change, database: stock → orders" in words
    assert "link to three: remove, database: stock" in words
    assert "link to four" not in words


def preview(control: FakeControlPlane) -> None:
    item = {"componentId": "net", "ending": "deleted", "message": "owned", "holdsData": True, "importers": ["ls-b"]}
    warning = "This LiveSystem owns 1 resource that is imported by 1 other LiveSystem."

    def answer(request: Any) -> Any:
        import httpx2

        if request.url.params.get("dryRun"):
            return httpx2.Response(200, json={"preview": {"components": [item]}, "warnings": [warning]})
        return httpx2.Response(202, json={"mutationId": "m1", "warnings": [warning]})

    control.on("DELETE", "/livesystems/ls-a", answer)


@pytest.mark.rule("O14", "O7")
def test_delete_shows_what_goes_and_warns_before_it_does_anything(fractal: Fractal, control: FakeControlPlane) -> None:
    preview(control)
    ran = fractal("delete", "ls-a")
    assert ran.code == 2
    for word in ("net", "deleted", "holds data", "imported by ls-b", "owns 1 resource that is imported by 1 other"):
        assert word in ran.words
    assert "fractal delete ls-a --yes" in ran.err
    assert [asked.query for asked in control.asked] == [{"dryRun": "true"}]


@pytest.mark.rule("O20")
def test_delete_forgets_a_component_only_with_a_reason(fractal: Fractal, control: FakeControlPlane) -> None:
    ran = fractal("delete", "ls-a", "--forget", "net")
    assert ran.code == 2
    assert "--forget needs a reason" in ran.err
    assert not control.asked
    control.on("DELETE", "/livesystems/ls-a", {"liveSystemId": "ls-a", "mutationId": "m1", "warnings": []})
    ran = fractal("delete", "ls-a", "--forget", "net", "--reason", "closed")
    assert ran.code == 0
    assert "left, not confirmed" in ran.words
    assert [asked.query for asked in control.asked] == [{"forget": "net", "reason": "closed"}]


def test_delete_asks_a_person_and_accepts_no_as_the_answer(
    fractal: Fractal, control: FakeControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    preview(control)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda _question: False)
    ran = fractal("delete", "ls-a")
    assert (ran.code, ran.err.splitlines()[-1]) == (1, "error: nothing was deleted")
    assert len(control.asked) == 1


def test_delete_with_yes_goes_through_and_may_be_waited_for(fractal: Fractal, control: FakeControlPlane) -> None:
    preview(control)
    control.on("GET", MUTATION, mutation("Completed", net=("Deleted", "")))
    ran = fractal("delete", "ls-a", "--yes", "--wait")
    assert ran.code == 0
    assert ran.out.endswith("ls-a: being deleted, mutation m1\nls-a/net  Deleted\n")
