"""Items of a list, one at a time: what cannot be understood of one says nothing against the others (S24).

An offer that takes its items apart here needs no care of its own for fields that are missing or of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.visible_text import visible
from fractal_cloud.offers.refusals import describe_unexpected

T = TypeVar("T")
Shown = tuple[str | None, str | None]
"""The resource id and the name that an item shows, each None where it shows none."""


def parse_each(
    items: Iterable[T],
    read: Callable[[T], Iterable[Sighting | UnreadItem] | Sighting | None],
    shown: Callable[[T], Shown] = lambda _: (None, None),
) -> Iterator[Sighting | UnreadItem]:
    """What each item of a list shows; one that cannot be understood is an ``UnreadItem``.

    ``shown`` returns the id and the name of the item's resource, as its sighting would have them. Without them nothing
    is decided for any component of the type. An error of the closed set is no matter of one item, and is raised.
    """
    for item in items:
        try:
            found = read(item)
            several = [found] if isinstance(found, Sighting) else list(found) if found is not None else []
        except CloudError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is: this item cannot be understood
            yield unread(error, *_shown(item, shown))
        else:
            yield from several


def all_sightings(items: Iterable[Sighting | UnreadItem]) -> list[Sighting]:
    """Everything a list shows, for whoever needs all of it: raises where one item cannot be understood."""
    found: list[Sighting] = []
    for item in items:
        if isinstance(item, UnreadItem):
            raise item.error
        found.append(item)
    return found


def unread(error: Exception, resource_id: str | None = None, name: str | None = None) -> UnreadItem:
    """An item of which only this is known."""
    whose = f" ({visible(name or resource_id or '')})" if name or resource_id else ""
    text = f"one item of the list{whose} cannot be understood: {describe_unexpected(error)}"
    return UnreadItem(Unreadable(text, code=type(error).__name__), resource_id, name)


def text_at(item: Any, *path: str) -> str | None:
    """The text (or number) that stands below these keys; None where something else does, or nothing."""
    for key in path:
        item = item.get(key) if isinstance(item, dict) else None
    if isinstance(item, bool) or not isinstance(item, str | int):
        return None
    return str(item) or None


def _shown(item: T, shown: Callable[[T], Shown]) -> Shown:
    try:
        return shown(item)
    except Exception:  # noqa: BLE001  # not even that can be understood
        return None, None
