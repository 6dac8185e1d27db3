"""`fractal agent keys`, `rotate-key` and `withdraw-key`: what they print and send (A5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane

pytestmark = pytest.mark.rule("A5")
KEY = "3c75ed07d33a871bc7559e28c31df7d2"


def key(**more: Any) -> dict[str, Any]:
    where = {"environment": "prod", "provider": "aws", "realm": "1234", "token": "t1", "agentId": "a1"}
    return {"id": "1", "fingerprint": KEY, **where, "approved": True, "alive": True, "withdrawnAt": None, **more}


def test_every_key_is_listed_with_its_state(fractal: Fractal, control: FakeControlPlane) -> None:
    gone = {"withdrawnAt": "2026-11-18T12:43:00Z"}
    keys = [key(), key(alive=False), key(approved=False), key(**gone)]
    control.on("GET", "/sealing-keys", {"items": keys, "cursor": None})
    ran = fractal("agent", "keys", "--token", "t", "-o", "json")
    assert json.loads(ran.out) == keys
    control.on("GET", "/sealing-keys", {"items": keys, "cursor": None})
    shown = fractal("agent", "keys").words
    for state in ("in use", "gone", "waits", "withdrawn"):
        assert state in shown


def test_rotating_names_the_agent_and_says_what_follows(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("POST", "/agents/host-7-1a2b3c/rotate-key", {"fingerprint": KEY, "realms": [key()]})
    ran = fractal("agent", "rotate-key", "host-7-1a2b3c", "--reason", "a laptop was stolen")
    assert ran.code == 0, ran.err
    assert control.last().body == {"reason": "a laptop was stolen"}
    assert f"Key {KEY} of aws 1234 is withdrawn." in ran.words
    assert "The agent makes a new key, unless FRACTAL_SEALING_KEY holds it" in ran.words


def test_a_key_is_withdrawn_by_its_fingerprint(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("POST", f"/sealing-keys/{KEY}/withdraw", {"fingerprint": KEY, "realms": [key()]})
    ran = fractal("agent", "withdraw-key", KEY, "-o", "json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["fingerprint"] == KEY
    assert control.last().body == {"reason": "withdrawn"}
