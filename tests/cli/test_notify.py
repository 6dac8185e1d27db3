"""`fractal notify`: what it sends and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane

SHOWN: dict[str, Any] = {
    "name": "team",
    "address": "https://hooks.example.com/…",
    "format": "cloudevents",
    "signed": True,
    "kinds": ["Failed"],
    "environments": ["prod"],
    "liveSystems": [],
    "createdAt": "2026-11-15T12:00:00Z",
    "createdBy": "ann",
    "pending": 3,
    "sent": 7,
    "givenUp": 1,
    "lastSentAt": "2026-11-15T12:00:00Z",
    "failures": 2,
    "failingSince": "2026-11-15T12:05:00Z",
    "lastError": "answered 503",
    "nextTry": "2026-11-15T12:07:00Z",
    "test": None,
}
SECRET = "whsec_" + "QUJD" * 10


def test_a_subscription_is_added_and_its_secret_shown_once(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("POST", "/notifications", {**SHOWN, "secret": SECRET}, status=201)
    asked = ("--url", "https://hooks.example.com/x", "--kind", "Failed", "--kind", "Missing", "--environment", "prod")
    ran = fractal("notify", "add", "team", *asked, "--live-system", "ls-a")
    assert ran.code == 0, ran.err
    assert control.last().body == {
        "name": "team",
        "url": "https://hooks.example.com/x",
        "format": "cloudevents",
        "kinds": ["Failed", "Missing"],
        "environments": ["prod"],
        "liveSystems": ["ls-a"],
    }
    assert f"secret: {SECRET}" in ran.words


@pytest.mark.rule("A8")
def test_secrets_are_read_from_files_and_not_printed(
    fractal: Fractal, control: FakeControlPlane, tmp_path: Path
) -> None:
    secret, address = tmp_path / "secret", tmp_path / "address"
    secret.write_text(f"{SECRET}\n")
    address.write_text("https://hooks.slack.com/services/T/B/x\n")
    control.on("POST", "/notifications", {**SHOWN, "secret": None}, status=201)
    files = ("--url-file", str(address), "--secret-file", str(secret))
    ran = fractal("notify", "add", "team", *files, "--format", "slack")
    assert ran.code == 0, ran.err
    assert control.last().body["secret"] == SECRET
    assert control.last().body["url"] == "https://hooks.slack.com/services/T/B/x"
    assert SECRET not in ran.words
    assert "services" not in ran.words
    assert fractal("notify", "add", "team").code == 2
    assert fractal("notify", "add", "team", "--url", "https://x.example", *files).code == 2
    assert fractal("notify", "add", "team", "--url-file", str(tmp_path / "nowhere")).code == 2


def test_the_list_says_how_sending_goes(fractal: Fractal, control: FakeControlPlane) -> None:
    well = {**SHOWN, "name": "well", "kinds": [], "environments": [], "failures": 0}
    control.on("GET", "/notifications", {"items": [SHOWN, well], "cursor": None})
    ran = fractal("notify", "list")
    assert ran.code == 0, ran.err
    for said in ("7 sent, 3 pending, 1 given up", "answered 503", "everything", "Failed; prod"):
        assert all(word in ran.words for word in said.split()), said
    assert all(len(line) <= 80 for line in ran.out.splitlines())


def test_a_test_waits_for_what_came_of_it(fractal: Fractal, control: FakeControlPlane) -> None:
    pending = {"id": "x", "at": "2026-11-15T12:00:00Z", "outcome": "pending", "error": ""}
    control.on("POST", "/notifications/team/test", pending, status=202)
    control.on(
        "GET", "/notifications/team", {**SHOWN, "test": pending}, {**SHOWN, "test": {**pending, "outcome": "sent"}}
    )
    ran = fractal("notify", "test", "team")
    assert ran.code == 0, ran.err
    assert "team: the test was accepted." in ran.words
    failed = {**pending, "outcome": "failed", "error": "answered 404"}
    control.on("GET", "/notifications/team", {**SHOWN, "test": failed})
    ran = fractal("notify", "test", "team")
    assert ran.code == 1
    assert "team: the test was not accepted: answered 404" in ran.err


def test_a_subscription_is_removed(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("DELETE", "/notifications/team", None, status=204)
    assert fractal("notify", "remove", "team").code == 0
    assert control.last().method == "DELETE"


def test_a_key_that_could_be_guessed_is_refused(fractal: Fractal) -> None:
    ran = fractal("serve", "--notify-key", "short")
    assert ran.code == 2
    assert "openssl rand -hex 32" in ran.err
    assert fractal("serve", "--notify-networks", "10.0.0.0/40").code == 2
