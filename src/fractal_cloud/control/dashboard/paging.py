"""Where a reader is in a long list: «51–100 of 201», and the addresses of the pages before and after it.

Filters, order and page all stand in the address of a page, so that it can be kept, sent and opened again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request

from fractal_cloud.control.store.listing import Page, Place

MOST_PAGES = 20_000
Number = Annotated[int, Query(alias="page", ge=1, le=MOST_PAGES)]


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a list, with what it is narrowed to."""

    path: str
    query: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, request: Request) -> Address:
        """The one that was asked for."""
        return cls(request.url.path, tuple(request.query_params.multi_items()))

    def asked(self, name: str) -> str:
        """What was asked for by this name, as a form shows it."""
        return next((value for known, value in self.query if known == name), "")

    def with_(self, **changes: Any) -> str:
        """The same list with other values; None takes a name out. Whatever changes, the page begins anew."""
        kept = [(name, value) for name, value in self.query if name not in {*changes, "page"}]
        kept += [(name, str(value)) for name, value in changes.items() if value is not None]
        return f"{self.path}?{urlencode(kept)}" if kept else self.path

    def without(self, name: str, value: str) -> str:
        """The same list without one of its filters."""
        kept = [pair for pair in self.query if pair != (name, value) and pair[0] != "page"]
        return f"{self.path}?{urlencode(kept)}" if kept else self.path

    def narrowed(self, *apart: str) -> list[tuple[str, str]]:
        """What the list is narrowed to, but for what a form shows itself."""
        return [(name, value) for name, value in self.query if name not in {*apart, "page", "sort"}]

    @property
    def is_narrowed(self) -> bool:
        """Whether the list may leave something out."""
        return bool(self.narrowed())


@dataclass(frozen=True, slots=True)
class Paging:
    """One page of a list in its list."""

    address: Address
    number: int
    size: int
    shown: int
    has_more: bool
    total: int | None = None

    @classmethod
    def of(cls, request: Request, number: int, size: int, found: Page) -> Paging:
        """The place of a page that was found."""
        return cls(Address.of(request), number, size, len(found.items), found.next is not None, found.total)

    @property
    def words(self) -> str:
        """Which items are shown, and of how many."""
        if not self.shown:
            return "none" if self.total in (0, None) else f"none of {self.total:,} on this page"
        first = (self.number - 1) * self.size + 1
        here = f"{first:,}–{first + self.shown - 1:,}"
        return f"{here} of {self.total:,}" if self.total is not None else here

    @property
    def previous(self) -> str | None:
        """The address of the page before."""
        if self.number == 1:
            return None
        return self.address.with_(page=self.number - 1 if self.number > 2 else None)

    @property
    def following(self) -> str | None:
        """The address of the page after."""
        return self.address.with_(page=self.number + 1) if self.has_more else None


def place(number: int, size: int) -> Place:
    """Where a page begins."""
    return Place(size, offset=(number - 1) * size)
