"""`fractal who`: what it prints for people and for programs."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane
from tests.cli.test_reading import component

SEEN = "2026-11-18T02:16:05Z"
DRIFT = {"instanceType": {"declared": "t3.medium", "actual": "t3.large"}}


def change(parameter: str, state: str, text: str, **more: Any) -> dict[str, Any]:
    """One entry of ``changedBy``, as the API answers it."""
    entry = {"parameter": parameter, "seen": SEEN, "after": None, "stands": True, "state": state, "at": None}
    texts = dict.fromkeys(("by", "identity", "how", "address", "source"), "")
    return {**entry, **texts, "text": text, **more}


def show(control: FakeControlPlane, *changes: dict[str, Any], **more: Any) -> None:
    found = {**component("web-vm", "ManualOverride", drift=DRIFT), "stance": "override", "changedBy": list(changes)}
    control.on("GET", "/livesystems/ls-abc/components/web-vm", {**found, **more})


def test_it_names_who_changed_what_within_80_columns(fractal: Fractal, control: FakeControlPlane) -> None:
    arn = "arn:aws:sts::123456789012:assumed-role/Administrators/anna.kowalska@example.com"
    text = "anna.kowalska@example.com changed it at 2026-11-18 02:14:05 UTC (ModifyInstanceAttribute, CloudTrail)"
    known = change("instanceType", "known", text, by="anna.kowalska@example.com", identity=arn, address="203.0.113.7")
    seen = change("managed-by", "waiting", "seen by the agent at 2026-11-18 02:16:05 UTC; not in CloudTrail yet")
    past = change("userData", "known", "bea changed it at 2026-11-17 09:00:00 UTC", by="bea", stands=False)
    show(control, known, seen, past)
    ran = fractal("who", "ls-abc", "web-vm")
    assert ran.code == 0
    assert "anna.kowalska@example.com changed it at 2026-11-18 02:14:05 UTC" in ran.words
    assert "declared t3.medium, actual t3.large" in ran.words
    assert "203.0.113.7" in ran.words
    assert "not in CloudTrail yet" in ran.words
    assert ran.words.index("no longer so") < ran.words.index("bea changed it")
    assert max(map(len, ran.out.splitlines())) <= 80


def test_programs_get_the_entries_as_they_are(fractal: Fractal, control: FakeControlPlane) -> None:
    entry = change("instanceType", "known", "anna changed it", by="anna")
    show(control, entry)
    found = json.loads(fractal("who", "ls-abc", "web-vm", "--output", "json").out)
    assert found["changedBy"] == [entry]
    assert found["drift"] == DRIFT


def test_what_a_deploy_made_differ_was_changed_by_nobody(fractal: Fractal, control: FakeControlPlane) -> None:
    show(control)
    assert "the declaration is newer" in fractal("who", "ls-abc", "web-vm").words
    show(control, outputFields={})
    assert "nothing was changed outside of Fractal Cloud" in fractal("who", "ls-abc", "web-vm").words


def test_an_importer_learns_whom_to_ask(fractal: Fractal, control: FakeControlPlane) -> None:
    show(control, stance="imported", owner="ls-shared")
    ran = fractal("who", "ls-abc", "web-vm")
    assert "ls-shared owns it" in ran.words
    assert "declaration is newer" not in ran.words


def test_a_right_that_is_missing_is_named_once(fractal: Fractal, control: FakeControlPlane) -> None:
    text = "seen by the agent at 2026-11-18 02:16:05 UTC; the agent may not read CloudTrail"
    names = ("instanceType", "userData")
    show(control, *(change(name, "denied", text, source="CloudTrail") for name in names))
    ran = fractal("who", "ls-abc", "web-vm")
    assert ran.words.count("fractal agent policy --provider aws --with-history") == 1


def test_who_broke_the_glass_through_the_product_is_named(fractal: Fractal, control: FakeControlPlane) -> None:
    override = {"since": "2026-11-18T02:14:00Z", "by": "anna", "reason": "INC-4711", "until": None}
    show(control, override=override)
    assert "anna broke the glass at 2026-11-18 02:14:00 UTC: INC-4711" in fractal("who", "ls-abc", "web-vm").words
