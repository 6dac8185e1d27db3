"""The status of a component in the words of a person on call."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from fractal_cloud.model.status import Stance, Status
from fractal_cloud.rules.status_words import clock_time, in_words

NOW = datetime(2026, 11, 18, 4, 0, tzinfo=UTC)
ANNA = {"since": "2026-11-18T02:14:05Z", "by": "anna", "reason": "INC-4711", "until": "2026-11-18T06:00:00Z"}
FOUND = {"since": "2026-11-18T02:14:05Z", "by": None, "reason": None, "until": None}


def component(status: Status = Status.ACTIVE, **given: Any) -> dict[str, Any]:
    return {
        "componentId": "web",
        "liveSystemId": "team",
        "status": status.value,
        "stance": Stance.MANAGED.value,
        "owner": "team",
        "generation": 1,
        "observedGeneration": 1,
        "override": None,
        "overdue": False,
        "resourceId": "i-1",
        "waitsFor": [],
        "lastRead": "2026-11-18T03:59:00Z",
        "outputFields": {},
        **given,
    }


def held(**override: Any) -> str:
    return in_words(component(Status.MANUAL_OVERRIDE, stance="override", override={**ANNA, **override}), NOW)


@pytest.mark.rule("G13")
def test_an_override_says_who_since_when_until_when_and_why() -> None:
    assert held() == (
        "Held by hand since 02:14 UTC by anna, until 06:00 UTC: INC-4711. The agent reads it and changes nothing."
    )
    assert held(until=None, reason=None) == (
        "Held by hand since 02:14 UTC by anna. The agent reads it and changes nothing."
    )
    assert held(reason="It burns!").startswith("Held by hand since 02:14 UTC by anna, until 06:00 UTC: It burns! The")


@pytest.mark.rule("G13")
def test_an_override_found_in_the_cloud_names_nobody() -> None:
    words = in_words(component(Status.MANUAL_OVERRIDE, stance="override", override=FOUND), NOW)
    assert words == (
        "Held by hand since 02:14 UTC. Who took it over is not known: it was found so in the cloud. "
        "The agent reads it and changes nothing."
    )


@pytest.mark.rule("G13", "G5")
def test_an_end_that_has_passed_is_said_and_nothing_else_follows() -> None:
    assert held(until="2026-11-18T03:30:00Z") == (
        "Held by hand since 02:14 UTC by anna, until 03:30 UTC, which has passed: INC-4711. "
        "The agent reads it and changes nothing."
    )


def test_a_time_of_another_day_has_its_date() -> None:
    assert "since 2026-11-16 23:05 UTC by anna" in held(since="2026-11-16T23:05:00Z")
    assert "until 2026-11-19 09:00 UTC" in held(until="2026-11-19T09:00:00Z")
    in_tokyo = datetime(2026, 11, 19, 1, 0, tzinfo=timezone(timedelta(hours=9)))
    assert clock_time(in_tokyo, NOW) == "2026-11-18 16:00 UTC".removeprefix("2026-11-18 "), "today is that of UTC"


@pytest.mark.rule("G13")
def test_an_override_handed_back_where_tags_are_frozen_says_so() -> None:
    words = held(readoptedBy="bea")
    assert words.endswith("Handed back by bea: managed again once it is as declared.")
    assert "changes nothing" not in words


@pytest.mark.rule("C11")
def test_what_nobody_reads_is_said_to_be_old_whatever_its_status() -> None:
    for status in Status:
        words = in_words(component(status, stale=True, lastRead="2026-11-18T02:10:00Z"), NOW)
        assert words.endswith("Not read since 02:10 UTC: this may be old.")
        assert in_words(component(status, stale=True, lastRead=None), NOW).endswith(
            "Nobody has read it: this may be old."
        )


@pytest.mark.parametrize(
    ("status", "given", "words"),
    [
        (Status.ACTIVE, {}, "As declared. The agent keeps it so."),
        (Status.ACTIVE, {"generation": 2}, "As declared in generation 1; generation 2 is not applied yet."),
        (Status.ACTIVE, {"outputFields": {"drift": {"size": {}}}}, "There, and not yet as declared."),
        (Status.EXTERNALLY_MANAGED, {"owner": "core"}, "Owned by core: this LiveSystem only reads it."),
        (Status.EXTERNALLY_MANAGED, {"owner": None}, "Read only: this LiveSystem never changes it."),
        (
            Status.MISSING,
            {},
            "Gone from the cloud. The agent creates nothing in its place until somebody deploys or restores it.",
        ),
        (
            Status.MISSING,
            {"stance": "imported"},
            "Not in the cloud. The agent only reads it, so it does not create it.",
        ),
        (Status.FAILED, {}, "Could not be made as declared."),
        (Status.FAILED, {"observedGeneration": 0, "resourceId": None}, "Could not be created."),
        (Status.INSTANTIATING, {}, "Being created."),
        (Status.INSTANTIATING, {"waitsFor": ["net", "key"]}, "Waits for net, key before it is created."),
        (Status.MUTATING, {}, "Being made as declared."),
        (
            Status.RECONCILE_REQUESTED,
            {},
            "Being handed back: the agent makes it as declared, and then manages it again.",
        ),
        (Status.DELETING, {}, "Being deleted."),
        (Status.DELETED, {}, "Deleted."),
        (Status.MANUAL_OVERRIDE, {}, "In manual override. The agent reads it and changes nothing."),
    ],
)
def test_every_status_has_its_words(status: Status, given: dict[str, Any], words: str) -> None:
    assert in_words(component(status, **given), NOW) == words


def test_every_status_and_stance_there_is_can_be_said_and_names_no_tag() -> None:
    for status in Status:
        for stance in Stance:
            for override in (None, ANNA, FOUND):
                words = in_words(component(status, stance=stance.value, override=override), NOW)
                assert words.endswith(".")
                assert "managed-by" not in words
