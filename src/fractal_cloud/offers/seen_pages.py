"""What the pages of a list showed when last read: an unchanged page is detected by its hash before it is parsed.

It replaces no read (O4): every page is requested in every observation, and recognised by a fingerprint of all that it
lists. How a provider's answer is cut into what it lists and the rest (request ids, cursors, which differ in
every answer and are always read for real) belongs beside that provider's session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Final

from fractal_cloud.model.sighting import Sighting, UnreadItem

Pages = Mapping[bytes, tuple[Sighting | UnreadItem, ...]]

_NOTHING: Final[Mapping[str, Sighting]] = {}
_NO_PAGES: Final[Pages] = {}


def fingerprint(about: str, listed: bytes) -> bytes:
    """What stands for the listed part of one page; ``about`` says which list of which place it is a page of."""
    digest = blake2b(about.encode(), digest_size=16)
    digest.update(b"\0")
    digest.update(listed)
    return digest.digest()


class SeenPages:
    """One observation of one type beside the last one: the sightings by id, and the pages by fingerprint.

    ``pages`` are those of this observation; they may stand for the next one only if the list was read to its end.
    """

    def __init__(self, seen: Mapping[str, Sighting] = _NOTHING, pages: Pages = _NO_PAGES) -> None:
        self._seen = seen
        self._known = pages
        self.pages: dict[bytes, tuple[Sighting | UnreadItem, ...]] = {}

    def has_page(self, print_of_page: bytes) -> bool:
        """Whether the last observation had this very page."""
        return print_of_page in self._known

    def sightings(
        self, print_of_page: bytes | None, read: Callable[[], Iterable[Sighting | UnreadItem]]
    ) -> Iterable[Sighting | UnreadItem]:
        """What a page shows: as last time if it is the very same page, else read from it.

        What is equal to what was seen last time is the very same object. Without a fingerprint it is always read.
        """
        shown = self._known.get(print_of_page) if print_of_page is not None else None
        if shown is None:
            shown = tuple(item if isinstance(item, UnreadItem) else self.intern(item) for item in read())
        if print_of_page is not None:
            self.pages[print_of_page] = shown
        return shown

    def has_sighting(self, item: object) -> bool:
        """Whether this very object is a sighting of the last observation."""
        return isinstance(item, Sighting) and self._seen.get(item.resource_id) is item

    def last(self, resource_id: str) -> Sighting | None:
        """What the last observation saw under an id, for lists that say which items changed since then."""
        return self._seen.get(resource_id)

    def intern(self, sighting: Sighting) -> Sighting:
        """Return the last observation's sighting in place of an equal one."""
        known = self._seen.get(sighting.resource_id)
        return known if known is not None and known == sighting else sighting
