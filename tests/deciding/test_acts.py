"""Events as people read them: one act is one line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud.model.event import EventKind
from fractal_cloud.model.status import Status
from fractal_cloud.rules.acts import WINDOW, Act, acts

BEGAN = datetime(2026, 11, 18, 2, 14, tzinfo=UTC)
pytestmark = pytest.mark.rule("C4")


class Log:
    """Events as they are appended; ``at`` in seconds."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def add(self, at: float, kind: str, component: str | None = "web", by: str = "agent", **more: Any) -> None:
        self.events.append(
            {
                "seq": len(self.events) + 1,
                "at": (BEGAN + timedelta(seconds=at)).isoformat(),
                "liveSystemId": "team",
                "componentId": component,
                "kind": kind,
                "by": by,
                "message": "",
                "before": None,
                "after": None,
                **more,
            }
        )

    def status(self, at: float, before: str, after: str, component: str = "web") -> None:
        self.add(at, "StatusChanged", component, before=before, after=after)

    def acts(self) -> list[Act]:
        return acts(self.events[::-1])


def kinds(found: Sequence[Act]) -> list[tuple[str, int]]:
    return [(act.lead["kind"], len(act.events)) for act in found]


@pytest.mark.rule("G13")
def test_breaking_the_glass_through_the_product_is_one_line() -> None:
    log = Log()
    log.add(0, "GlassRequested", by="anna")
    log.status(4, "Active", "ManualOverride")
    log.add(4, "GlassBroken", by="anna")
    [act] = log.acts()
    assert (act.lead["kind"], act.by, act.change) == ("GlassBroken", "anna", "Active → ManualOverride")
    assert [event["kind"] for event in act.events] == ["GlassRequested", "StatusChanged", "GlassBroken"]


def test_what_a_person_changes_by_hand_afterwards_is_another_line() -> None:
    log = Log()
    log.add(0, "GlassRequested", by="anna")
    log.status(4, "Active", "ManualOverride")
    log.add(4, "GlassBroken", by="anna")
    log.add(60, "DriftFound")
    assert kinds(log.acts()) == [("DriftFound", 1), ("GlassBroken", 3)]


def test_handing_it_back_is_one_line_with_all_its_steps() -> None:
    log = Log()
    log.add(0, "ForcePushRequested", by="bea")
    log.status(2, "ManualOverride", "ReconcileRequested")
    log.add(5, "DriftCorrected")
    log.status(5, "ReconcileRequested", "Active")
    log.add(5, "Readopted")
    [act] = log.acts()
    assert (act.lead["kind"], act.by, act.change) == ("Readopted", "bea", "ManualOverride → Active")


def test_drift_and_its_correction_are_one_line() -> None:
    log = Log()
    log.status(0, "Active", "Mutating")
    log.add(0, "DriftFound")
    log.add(3, "DriftCorrected")
    log.status(3, "Mutating", "Active")
    assert kinds(log.acts()) == [("DriftCorrected", 4)]


def test_a_refused_request_ends_its_line() -> None:
    log = Log()
    log.add(0, "ForcePushRequested", by="bea")
    log.add(1, "ForcePushRefused")
    log.status(2, "Active", "Failed")
    assert kinds(log.acts()) == [("StatusChanged", 1), ("ForcePushRefused", 2)]


def test_two_requests_are_two_lines_also_right_after_each_other() -> None:
    log = Log()
    log.add(0, "GlassRequested", by="anna")
    log.add(1, "OverrideExtended", by="anna")
    log.add(2, "OverrideHandedOver", by="anna")
    assert [kind for kind, _ in kinds(log.acts())] == ["OverrideHandedOver", "OverrideExtended", "GlassRequested"]


def test_a_deploy_holds_what_it_led_to_and_no_failure() -> None:
    log = Log()
    log.add(0, "Deployed", None, by="anna")
    for name in ("net", "web"):
        log.status(5, "Instantiating", "Active", name)
    log.status(6, "Instantiating", "Failed", "disk")
    log.add(400, "DriftFound", "net")
    found = log.acts()
    assert kinds(found) == [("DriftFound", 1), ("StatusChanged", 1), ("Deployed", 3)]
    assert (found[2].by, found[2].components) == ("anna", 2)
    assert found[1].lead["componentId"] == "disk"


def test_one_report_that_moves_many_components_on_is_one_line() -> None:
    log = Log()
    for name in ("a", "b", "c"):
        log.status(5, "Instantiating", "Active", name)
    log.status(9, "Instantiating", "Active", "d")
    later, report = log.acts()
    assert (report.components, report.change) == (3, "Instantiating → Active")
    assert later.components == 1


def test_what_comes_after_the_window_is_a_line_of_its_own() -> None:
    log = Log()
    log.add(0, "GlassRequested", by="anna")
    log.add(WINDOW.total_seconds() + 1, "GlassBroken", by="anna")
    assert len(log.acts()) == 2


def test_two_components_and_two_livesystems_stay_apart() -> None:
    log = Log()
    log.add(0, "DriftFound", "net")
    log.add(0, "DriftFound", "web")
    log.add(0, "DriftFound", "web", liveSystemId="other")
    assert len(log.acts()) == 3


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(EventKind)),
            st.sampled_from([None, "a", "b"]),
            st.integers(0, 3),
            st.sampled_from(list(Status)),
            st.sampled_from(list(Status)),
        ),
        max_size=30,
    )
)
def test_no_event_is_lost_or_shown_twice_and_the_newest_comes_first(
    drawn: list[tuple[EventKind, str | None, int, Status, Status]],
) -> None:
    log = Log()
    at = 0
    for kind, component, passed, before, after in drawn:
        at += passed * 200
        if kind is EventKind.STATUS_CHANGED:  # it alone says statuses, and always those of a component
            log.add(at, kind.value, component or "a", before=before.value, after=after.value)
        else:
            log.add(at, kind.value, component)
    found = log.acts()
    assert sorted(event["seq"] for act in found for event in act.events) == [event["seq"] for event in log.events]
    newest = [act.events[-1]["seq"] for act in found]
    assert newest == sorted(newest, reverse=True)
    for act in found:
        assert [event["seq"] for event in act.events] == sorted(event["seq"] for event in act.events)
        assert len(act.rest) == len(act.events) - 1
        alone = [event for event in act.events if event["after"] in ("Failed", "Missing")]
        assert not (alone and act.lead["kind"] == "Deployed")
