"""The auditor itself: it finds what it is there to find. What it is given here, the stage gives it in a play."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fractal_sandbox.owned_resources import Owned
from tests.chaos.audit import Auditor
from tests.chaos.declared import KINDS, Seen
from tests.chaos.people import Owner, People, Thing
from tests.chaos.stage import Stage

OURS = {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a"}
CALL = {"liveSystem": "ls-a", "component": "net", "reason": "drift", "operation": "ModifyVpcAttribute"}


class StubStage:
    """A stage that returns what it is given."""

    api = None

    def __init__(self) -> None:
        self.found: dict[str, Any] = {"violations": [], "lostRaces": []}
        self.calls: list[dict[str, str]] = []
        self.journal: list[Any] = []
        self.events: list[Any] = []

    def findings(self) -> dict[str, Any]:
        return self.found

    def owned(self) -> list[Owned]:
        return []

    def writes(self) -> list[dict[str, str]]:
        return self.calls

    def forget_calls(self) -> None:
        self.calls = []

    def rows(self, query: str, **values: Any) -> list[Any]:
        return self.journal if "FROM journal" in query else self.events


def _event(seq: int, before: str, after: str) -> Any:
    about = {"live_system_id": "ls-a", "component_id": "net", "kind": "StatusChanged"}
    return SimpleNamespace(seq=seq, before=before, after=after, **about)


def _entry(outcome: str | None, verb: str = "update") -> Any:
    about = {"live_system_id": "ls-a", "component_id": "net", "reason": "drift"}
    return SimpleNamespace(id=f"{verb}-{outcome}", verb=verb, outcome=outcome, request_ids=["r"], many=1, **about)


@pytest.fixture
def stage() -> StubStage:
    return StubStage()


@pytest.fixture
def thing() -> Thing:
    return Thing("ls-a", "net", KINDS["net"], "eu-west-1", foreign={"team": "a"}, foreign_on="vpc-1")


@pytest.fixture
def auditor(stage: StubStage, thing: Thing) -> Auditor:
    people = SimpleNamespace(owners={"ls-a": Owner("ls-a", "eu-west-1", {"net": thing})})
    made = Auditor(cast("Stage", stage), cast("People", people))
    made.cloud = {"ls-a/net": {"vpc-1": Seen({**OURS, "team": "a"}, value=False)}}
    made.shown = {"ls-a": {"net": {"status": "Active"}}}
    return made


def _finds(check: Callable[[], None], what: str) -> None:
    with pytest.raises(AssertionError, match=f"SAFETY: .*{what}"):
        check()


def test_a_gap_or_a_break_in_the_events_is_found(auditor: Auditor, stage: StubStage) -> None:
    stage.events = [
        _event(1, "Instantiating", "Active"),
        _event(2, "Active", "Mutating"),
        _event(3, "Mutating", "Active"),
    ]
    auditor._check_events()
    stage.events = [_event(5, "Active", "Failed")]
    _finds(auditor._check_events, "event 5 follows 3")
    stage.events = [_event(4, "Mutating", "Active")]
    _finds(auditor._check_events, "begins 'Mutating', not 'Active'")
    stage.events = [_event(5, "Active", "Failed")]
    _finds(auditor._check_events, "is Active, and events end at Failed")


def test_a_write_without_an_entry_is_found_and_so_is_an_entry_without_a_write(
    auditor: Auditor, stage: StubStage
) -> None:
    stage.calls, stage.journal = [CALL], [_entry("done")]
    auditor._check_journal()
    stage.calls = [CALL]
    _finds(auditor._check_journal, "not in the journal")
    stage.journal = [_entry("abandoned", "create")]
    stage.calls = [{**CALL, "operation": "CreateVpc"}]
    _finds(auditor._check_journal, "not in the journal")
    stage.calls, stage.journal = [], [_entry("done", "delete")]
    _finds(auditor._check_journal, "which has not seen it")


def test_what_was_taken_must_be_as_it_was_left(auditor: Auditor, thing: Thing) -> None:
    auditor._check_resources()
    thing.state, thing.untagged, thing.left, thing.left_id = "taken", True, False, "vpc-1"
    _finds(auditor._check_resources, "managed-by of ls-a/net changed")
    thing.untagged, thing.left = False, True
    _finds(auditor._check_resources, "was left True")
    thing.left, thing.left_id = False, "vpc-0"
    _finds(auditor._check_resources, "was left as vpc-0")


def test_a_twin_a_lost_tag_and_a_finding_are_found(auditor: Auditor, stage: StubStage) -> None:
    seen = auditor.cloud["ls-a/net"]
    auditor.cloud["ls-a/net"] = {**seen, "vpc-2": Seen(OURS, value=False)}
    _finds(auditor._check_resources, "is there twice")
    auditor.cloud["ls-a/net"] = {"vpc-1": Seen(OURS, value=False)}
    _finds(auditor._check_resources, "lost")
    auditor._check_monitor()
    stage.found = {"violations": [], "lostRaces": ["S15"]}
    _finds(auditor._check_monitor, "S15")
