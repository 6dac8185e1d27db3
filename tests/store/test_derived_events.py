"""Which events follow from a publication (C4)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.status import Stance, Status
from fractal_cloud.rules.derived_events import Published, derive_events

DRIFT = {"drift": {"size": {"declared": 1, "actual": 2}}}
OTHER_DRIFT = {"drift": {"size": {"declared": 1, "actual": 3}}}


def _published(stance: Stance = Stance.MANAGED, status: Status = Status.ACTIVE, **more: Any) -> Published:
    return Published(stance, status, **{"owner": "ls-a", "resource_id": "r-1", **more})


OVERRIDDEN = _published(Stance.OVERRIDE, Status.MANUAL_OVERRIDE)
NEW = _published(Stance.NONE, Status.INSTANTIATING, owner=None, resource_id=None)


@pytest.mark.rule("C4", "O5", "G1")
@pytest.mark.parametrize(
    ("reason", "before", "after", "kinds"),
    [
        ("nothing changed", _published(), _published(message="other words"), []),
        ("created", NEW, _published(), ["StatusChanged"]),
        ("glass broken", _published(), OVERRIDDEN, ["StatusChanged", "GlassBroken"]),
        ("found in manual override", NEW, OVERRIDDEN, ["StatusChanged", "GlassBroken"]),
        (
            "a handshake passes through override on its way: nobody broke anything",
            NEW,
            _published(Stance.OVERRIDE, Status.RECONCILE_REQUESTED),
            ["StatusChanged"],
        ),
        ("re-adopted", OVERRIDDEN, _published(), ["StatusChanged", "Readopted"]),
        ("drift appears", _published(), _published(output_fields=DRIFT), ["DriftFound"]),
        ("drift changes", _published(output_fields=DRIFT), _published(output_fields=OTHER_DRIFT), ["DriftFound"]),
        ("drift goes", _published(output_fields=DRIFT), _published(), ["DriftCorrected"]),
        (
            "an importer's drift is nobody's alarm",
            _published(Stance.IMPORTED, Status.EXTERNALLY_MANAGED),
            _published(Stance.IMPORTED, Status.EXTERNALLY_MANAGED, output_fields=DRIFT),
            [],
        ),
        ("the owner tag was edited", _published(), _published(owner="ls-b"), ["OwnerChanged"]),
        ("the owner tag was removed", _published(), _published(owner=None), ["OwnerChanged"]),
        (
            "another resource has another owner: nothing moved",
            _published(),
            _published(resource_id="r-2", owner="ls-b"),
            [],
        ),
        (
            "an importer misses it",
            _published(Stance.IMPORTED, Status.EXTERNALLY_MANAGED, owner="ls-b"),
            _published(Stance.IMPORTED, Status.MISSING, owner=None, resource_id=None, is_absent=True),
            ["StatusChanged", "ResourceLost"],
        ),
        (
            "an owned one vanished, and is made again",
            _published(),
            _published(status=Status.INSTANTIATING, is_absent=True),
            ["StatusChanged", "ResourceLost"],
        ),
        (
            "gone while in override, with its drift",
            _published(Stance.OVERRIDE, Status.MANUAL_OVERRIDE, output_fields=DRIFT),
            _published(Stance.OVERRIDE, Status.MANUAL_OVERRIDE, is_absent=True),
            ["ResourceLost"],
        ),
    ],
)
def test_events_follow_from_what_was_published(
    reason: str, before: Published, after: Published, kinds: list[str]
) -> None:
    assert [event.kind.value for event in derive_events(before, after, "ls-a", deleting=False)] == kinds, reason


@pytest.mark.rule("C4", "L3")
def test_what_links_bring_is_distinguished_from_drift() -> None:
    wired = {"drift": {**DRIFT["drift"], "linkedEnv": {"declared": {"A": "1"}, "actual": {}}}}
    before, after = _published(), _published(status=Status.MUTATING, output_fields=wired)
    found = derive_events(before, after, "ls-a", deleting=False, linked=["linkedEnv"])
    kinds = ["StatusChanged", "DriftFound", "LinkChangeFound"]
    assert [(event.kind.value, event.message) for event in found][1:] == [
        ("DriftFound", "size: declared 1, actual 2"),
        ("LinkChangeFound", "to be written: linkedEnv: + A=1"),
    ]
    assert [event.kind.value for event in found] == kinds
    only_drift = _published(status=Status.MUTATING, output_fields=DRIFT)
    (applied,) = derive_events(after, only_drift, "ls-a", deleting=False, linked=["linkedEnv"])
    assert (applied.kind.value, applied.before, applied.after) == (
        "LinkChangeApplied",
        {"linkedEnv": {"declared": {"A": "1"}, "actual": {}}},
        None,
    )


@pytest.mark.rule("C4")
def test_what_is_being_deleted_is_not_lost() -> None:
    gone = _published(status=Status.DELETED, is_absent=True)
    assert [event.kind.value for event in derive_events(_published(), gone, "ls-a", deleting=True)] == ["StatusChanged"]


@pytest.mark.rule("G13")
def test_a_glass_broken_through_the_product_names_who_and_why() -> None:
    after = _published(Stance.OVERRIDE, Status.MANUAL_OVERRIDE, override_by="ann", override_reason="incident")
    event = derive_events(_published(), after, "ls-a", deleting=False)[1]
    assert (event.kind.value, event.by, event.message) == ("GlassBroken", "ann", "incident")
