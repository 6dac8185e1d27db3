"""What a deletion would do, said beforehand: each reason by itself, and O7's warning to the letter."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.status import Stance
from fractal_cloud.rules.preview import Deletable, Ended, Ending, missed, preview, warning

ME = "ls-a"


def deletable(name: str = "web", **more: Any) -> Deletable:
    values: dict[str, Any] = {"stance": Stance.MANAGED, "owner": ME, "resource_id": f"id-{name}", **more}
    return Deletable(name, "Test.Thing", **values)


def ends(*items: Deletable) -> list[tuple[str, Ending, str]]:
    return [(end.component.component_id, end.ending, end.message) for end in preview(ME, items)]


def test_what_is_deleted_has_no_relations_unless_said_otherwise() -> None:
    bare = Deletable("web", "Test.Thing", Stance.NONE)
    assert bare == Deletable("web", "Test.Thing", Stance.NONE, None, None, False, True, False, False, (), (), ())


@pytest.mark.rule("O14", "O10")
@pytest.mark.parametrize(
    ("item", "ending", "message"),
    [
        (deletable(), Ending.DELETED, "deleted, if nobody takes it over before"),
        (
            deletable(was_observed=False, untouchable=True),
            Ending.UNKNOWN,
            "no agent has read it yet: what becomes of it is decided when one does",
        ),
        (deletable(is_absent=True, untouchable=True), Ending.ABSENT, "there is nothing in the cloud to delete"),
        (
            deletable(is_absent=True, resource_id="vpc-1"),
            Ending.ABSENT,
            "its name finds nothing: it ends once a read of vpc-1 proves it gone; if it was renamed, it is left",
        ),
        (
            deletable(is_absent=True, was_observed=False, resource_id=None),
            Ending.ABSENT,
            "there is nothing in the cloud to delete",
        ),
        (
            deletable(resource_id=None),
            Ending.UNKNOWN,
            "no agent has read it yet: what becomes of it is decided when one does",
        ),
        (deletable(untouchable=True, owner="ls-b"), Ending.DROPPED, "it is only ever read: the reference is dropped"),
        (deletable(owner="ls-b", stance=Stance.OVERRIDE), Ending.DROPPED, "'ls-b' owns it: the reference is dropped"),
        (deletable(stance=Stance.IMPORTED), Ending.DROPPED, "it is imported: the reference is dropped"),
        (deletable(stance=Stance.IMPORTED, owner=None), Ending.DROPPED, "it is imported: the reference is dropped"),
        (
            deletable(stance=Stance.OVERRIDE),
            Ending.LEFT,
            "it is in manual override: it stays in the cloud, with its tags",
        ),
        (
            deletable(stance=Stance.OVERRIDE, owner=None),
            Ending.LEFT,
            "it is in manual override: it stays in the cloud, with its tags",
        ),
        (deletable(owner=None), Ending.LEFT, "it bears no owner tag: it stays in the cloud"),
        (deletable(stance=Stance.NONE), Ending.DELETED, "deleted, if nobody takes it over before"),
    ],
)
def test_what_becomes_of_one_component(item: Deletable, ending: Ending, message: str) -> None:
    assert preview(ME, [item]) == [Ended(item, ending, message)]


@pytest.mark.rule("O14", "O10")
def test_what_something_left_depends_on_is_left_too_however_far_away() -> None:
    items = (
        deletable("net"),
        deletable("sub", dependencies=("net",)),
        deletable("web", dependencies=("sub", "elsewhere"), stance=Stance.OVERRIDE),
        deletable("bucket"),
    )
    assert ends(*items) == [
        ("net", Ending.LEFT, "'sub' is left in the cloud and depends on it"),
        ("sub", Ending.LEFT, "'web' is left in the cloud and depends on it"),
        ("web", Ending.LEFT, "it is in manual override: it stays in the cloud, with its tags"),
        ("bucket", Ending.DELETED, "deleted, if nobody takes it over before"),
    ]


@pytest.mark.rule("O14", "O3")
def test_what_is_only_referred_to_is_dropped_whoever_is_left() -> None:
    items = (deletable("net", owner="ls-b"), deletable("web", dependencies=("net",), stance=Stance.OVERRIDE))
    assert [end.ending for end in preview(ME, items)] == [Ending.DROPPED, Ending.LEFT]
    items = (deletable("net"), deletable("web", dependencies=("net",), owner="ls-b"))
    assert [end.ending for end in preview(ME, items)] == [Ending.DELETED, Ending.DROPPED]


def shared(name: str, *importers: str, ending: Ending = Ending.DELETED) -> Ended:
    return Ended(deletable(name, importers=importers), ending, "")


@pytest.mark.rule("O7")
@pytest.mark.parametrize(
    ("endings", "text"),
    [
        ([], None),
        ([shared("net")], None),
        ([shared("net", "ls-b", ending=Ending.LEFT), shared("web", "ls-b", ending=Ending.DROPPED)], None),
        (
            [shared("net", "ls-b")],
            (
                "This LiveSystem owns 1 resource that is imported by 1 other LiveSystem. Deleting will cause that "
                "LiveSystem to report Missing on that reference."
            ),
        ),
        (
            [shared("net", "ls-b", "ls-c"), shared("own")],
            (
                "This LiveSystem owns 1 resource that is imported by 2 other LiveSystems. Deleting will cause those "
                "LiveSystems to report Missing on that reference."
            ),
        ),
        (
            [shared("net", "ls-b"), shared("web", "ls-b")],
            (
                "This LiveSystem owns 2 resources that are imported by 1 other LiveSystem. Deleting will cause that "
                "LiveSystem to report Missing on those references."
            ),
        ),
        (
            [shared("net", "ls-b", "ls-c"), shared("web", "ls-c"), shared("sub", "ls-b")],
            (
                "This LiveSystem owns 3 resources that are imported by 2 other LiveSystems. Deleting will cause those "
                "LiveSystems to report Missing on those references."
            ),
        ),
    ],
)
def test_the_warning_has_the_true_numbers(endings: list[Ended], text: str | None) -> None:
    assert warning(endings) == text


@pytest.mark.rule("O7")
def test_only_what_is_deleted_and_imported_is_missed() -> None:
    lost = shared("net", "ls-b")
    kept = [shared("own"), shared("web", "ls-b", ending=Ending.LEFT), shared("sub", "ls-b", ending=Ending.DROPPED)]
    assert missed([lost, *kept]) == [lost]
    assert missed(iter(kept)) == []
