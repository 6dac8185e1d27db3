"""What a deletion would do, said beforehand (O7, O14)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.status import Stance
from fractal_cloud.rules.preview import Deletable, preview, warning


def _component(name: str, stance: Stance = Stance.MANAGED, **more: Any) -> Deletable:
    return Deletable(name, "Test.Net", stance, **{"owner": "ls-a", "resource_id": f"id-{name}", **more})


@pytest.mark.rule("O14", "O10", "O3", "O12")
@pytest.mark.parametrize(
    ("reason", "part", "ending"),
    [
        ("managed and owned", _component("a"), "deleted"),
        ("owned, but the memory was lost: S12a, a cycle later", _component("a", Stance.NONE), "deleted"),
        ("in manual override: nothing is deleted", _component("a", Stance.OVERRIDE), "left"),
        ("imported: only the reference goes", _component("a", Stance.IMPORTED, owner="ls-b"), "dropped"),
        ("somebody moved the owner tag", _component("a", owner="ls-b"), "dropped"),
        ("importOnly, or a type without tags", _component("a", untouchable=True), "dropped"),
        ("nobody owns it", _component("a", owner=None), "left"),
        ("it is gone already", _component("a", is_absent=True), "absent"),
        ("it never was", _component("a", resource_id=None, is_absent=True), "absent"),
        ("nobody has read it", _component("a", Stance.NONE, was_observed=False), "unknown"),
        ("it may just have been created: no read has shown it", _component("a", resource_id=None), "unknown"),
    ],
)
def test_each_component_ends_as_the_agent_would_decide(reason: str, part: Deletable, ending: str) -> None:
    (ended,) = preview("ls-a", [part])
    assert ended.ending.value == ending, reason
    assert ended.message


@pytest.mark.rule("O14", "O10")
def test_what_something_left_behind_depends_on_is_left_too() -> None:
    parts = [
        _component("net"),
        _component("sub", dependencies=("net",)),
        _component("vm", Stance.OVERRIDE, dependencies=("sub",)),
        _component("other"),
    ]
    endings = {ended.component.component_id: ended.ending.value for ended in preview("ls-a", parts)}
    assert endings == {"net": "left", "sub": "left", "vm": "left", "other": "deleted"}


@pytest.mark.rule("O7")
@pytest.mark.parametrize(
    ("importers", "words"),
    [
        ([], None),
        (
            [("b",)],
            (
                "This LiveSystem owns 1 resource that is imported by 1 other LiveSystem. "
                "Deleting will cause that LiveSystem to report Missing on that reference."
            ),
        ),
        (
            [("b",), ("b", "c"), ("c",)],
            (
                "This LiveSystem owns 3 resources that are imported by 2 other LiveSystems. "
                "Deleting will cause those LiveSystems to report Missing on those references."
            ),
        ),
        (
            [("b", "c")],
            (
                "This LiveSystem owns 1 resource that is imported by 2 other LiveSystems. "
                "Deleting will cause those LiveSystems to report Missing on that reference."
            ),
        ),
        (
            [("b",), ("b",)],
            (
                "This LiveSystem owns 2 resources that are imported by 1 other LiveSystem. "
                "Deleting will cause that LiveSystem to report Missing on those references."
            ),
        ),
    ],
)
def test_the_warning_counts_what_importers_will_miss(importers: list[tuple[str, ...]], words: str | None) -> None:
    parts = [_component(f"c{index}", importers=others) for index, others in enumerate(importers)]
    alone = _component("alone")
    left = _component("left", Stance.OVERRIDE, importers=("z",))
    assert warning(preview("ls-a", [*parts, alone, left])) == words
