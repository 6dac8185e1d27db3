"""What links add to a component, and what a plan says of them: exact values (L3, L5, L7, C6)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from fractal_cloud.model.link import LinkState, LinkStates, LinkWork
from fractal_cloud.model.status import Status
from fractal_cloud.model.wire import PlannedLink, PlannedLinkAction
from fractal_cloud.rules.link_plan import plan_links
from fractal_cloud.rules.links import digest, link_message, link_status


def work(**more: Any) -> LinkWork:
    values: dict[str, Any] = {"other": "db", "type": "Test.Db", "provider": "aws", **more}
    return LinkWork(**values)


LINK = work(settings={"port": 5432}, outputs={"host": "h"}, published={"user": "u"})


@pytest.mark.rule("L5")
def test_a_digest_stands_for_all_that_a_half_is_made_from_and_for_nothing_else() -> None:
    first = digest("Handler", LINK, ["own", {"b": 1, "a": 2}])
    assert len(first) == 20
    assert first == digest("Handler", LINK, ["own", {"a": 2, "b": 1}]), "an order that nobody chose changes nothing"
    others = [
        digest("Other", LINK, ["own", {"b": 1, "a": 2}]),
        digest("Handler", LINK, ["other", {"b": 1, "a": 2}]),
        digest("Handler", LINK, []),
        digest("Handler", LINK.model_copy(update={"type": "Test.Other"}), ["own", {"b": 1, "a": 2}]),
        digest("Handler", LINK.model_copy(update={"settings": {"port": 1}}), ["own", {"b": 1, "a": 2}]),
        digest("Handler", LINK.model_copy(update={"outputs": {}}), ["own", {"b": 1, "a": 2}]),
        digest("Handler", LINK.model_copy(update={"published": {}}), ["own", {"b": 1, "a": 2}]),
    ]
    assert len({first, *others}) == len(others) + 1
    for same in ({"key": "k"}, {"refused": "no"}, {"status": Status.ACTIVE}, {"provider": "gcp"}, {"other": "x"}):
        assert digest("Handler", LINK.model_copy(update=same), ["own", {"b": 1, "a": 2}]) == first, same


@pytest.mark.rule("L5")
def test_a_digest_never_changes_by_itself_because_that_would_run_every_half_again() -> None:
    text = json.dumps(
        ["Handler", "own", "Test.Db", {"port": 5432}, {"host": "h"}, {"user": "u"}], separators=(",", ":")
    )
    assert digest("Handler", LINK, ["own"]) == hashlib.sha256(text.encode()).hexdigest()[:20]
    assert digest("Handler", LINK, [Status.ACTIVE, {1}]) == digest("Handler", LINK, ["Active", "{1}"])


def states(*waits: str, failed: bool = False, inbound: str = "") -> LinkStates:
    def one(waits: str, failed: bool = False) -> LinkState:
        return LinkState(link_type="db", other_type="Test.Db", other_provider="aws", waits=waits, failed=failed)

    outbound = {f"t{index}": one(text, failed) for index, text in enumerate(waits)}
    return LinkStates(inbound={"s": one(inbound, failed)} if inbound else {}, outbound=outbound)


@pytest.mark.rule("L7")
def test_a_source_whose_link_cannot_be_carried_out_is_failed_where_it_would_seem_well() -> None:
    broken = states("no port", failed=True)
    well = {Status.ACTIVE, Status.MUTATING, Status.INSTANTIATING}
    for status in Status:
        assert link_status(status, broken) is (Status.FAILED if status in well else status)
        assert link_status(status, states("no port")) is status, "who only waits has not failed"
        assert link_status(status, states()) is status
        assert link_status(status, states(inbound="x", failed=True)) is status, "the target is not to blame"


@pytest.mark.rule("C8", "L7")
@pytest.mark.parametrize(
    ("message", "links", "expected"),
    [
        ("as declared", states(), "as declared"),
        ("as declared", states(""), "as declared"),
        ("as declared", states("no key"), "as declared; link to 't0': no key"),
        ("", states("no key"), "link to 't0': no key"),
        ("", states(), ""),
        ("ok", states("a", "b", "c"), "ok; link to 't0': a; link to 't1': b; link to 't2': c"),
        (
            "ok",
            states("a", "b", "c", "d"),
            "ok; link to 't0': a; link to 't1': b; link to 't2': c; and 1 more links wait",
        ),
        (
            "",
            states("a", "b", "c", "d", inbound="z"),
            "link from 's': z; link to 't0': a; link to 't1': b; and 2 more links wait",
        ),
    ],
)
def test_a_message_names_the_links_that_wait(message: str, links: LinkStates, expected: str) -> None:
    assert link_message(message, links) == expected


@pytest.mark.rule("C6")
def test_a_plan_lays_the_links_that_would_stand_beside_those_that_do() -> None:
    current = {"kept": {"a": 1}, "changed": {"a": 1, "b": 2, "c": 3}, "gone": {"a": 1}, "bare": {}}
    declared = {"new": {"p": 80}, "changed": {"a": 1, "b": 5, "d": 4}, "kept": {"a": 1}, "plain": {}}
    waits = {"new": "consent is missing", "gone": "override", "elsewhere": "nobody"}
    assert list(plan_links(current, declared, waits)) == [
        PlannedLink(
            target="new",
            action=PlannedLinkAction.ADD,
            changes={"p": {"declared": 80, "actual": None}},
            waits="consent is missing",
        ),
        PlannedLink(
            target="changed",
            action=PlannedLinkAction.CHANGE,
            changes={
                "b": {"declared": 5, "actual": 2},
                "c": {"declared": None, "actual": 3},
                "d": {"declared": 4, "actual": None},
            },
            waits="",
        ),
        PlannedLink(target="kept", action=PlannedLinkAction.NOTHING, changes={}, waits=""),
        PlannedLink(target="plain", action=PlannedLinkAction.ADD, changes={}, waits=""),
        PlannedLink(
            target="gone",
            action=PlannedLinkAction.REMOVE,
            changes={"a": {"declared": None, "actual": 1}},
            waits="override",
        ),
        PlannedLink(target="bare", action=PlannedLinkAction.REMOVE, changes={}, waits=""),
    ]
    assert list(next(plan_links(current, declared, waits)).changes) == ["p"]
    (changed,) = [link for link in plan_links(current, declared, waits) if link.target == "changed"]
    assert list(changed.changes) == ["b", "c", "d"], "sorted by name"
