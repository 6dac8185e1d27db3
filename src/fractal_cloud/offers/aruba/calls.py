"""One project in one location, as offers see it: the few requests there are, and lists that are read to their end.

A resource is known by its address below the API (``metadata.uri``): it names the project and, of what lies in a VPC,
the VPC too, and it is what Aruba itself wants where one resource refers to another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fractal_cloud.model.errors import Invalid, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.aruba.tags import STYLE, owner_tag, style
from fractal_cloud.offers.call_context import current_context
from fractal_cloud.offers.offer import Cloud
from fractal_cloud.offers.rest import Answer, RestClient

LIMIT: Final = 100
MOST_PAGES: Final = 10_000
VERSION: Final = "1.0"
_REFUSED_TAG: Final = re.compile(r"\btags?\b", re.IGNORECASE)
Item = dict[str, Any]


def pages(client: RestClient, path: str) -> Iterator[Item]:
    """Every item of a list, once. Raises rather than end early, or pass over something (S0).

    Aruba counts from an offset, and what is made or deleted meanwhile moves everything behind it. So every page begins
    with the last item of the page before: if it is another one, the list moved.
    """
    last, seen = "", 0
    for _ in range(MOST_PAGES):
        offset = seen - 1 if last else seen
        answer = client.read(path, {"api-version": VERSION, "limit": str(LIMIT), "offset": str(offset)})
        total, values = _page(answer)
        if last and (not values or address(values[0]) != last):
            raise Unreadable(f"{path} changed while it was read: it is read again")
        fresh = values[1:] if last else values
        yield from fresh
        seen += len(fresh)
        if seen >= total:
            return
        if not fresh:
            raise Unreadable(f"{path} ends after {seen} of {total}: it cannot be read to the end")
        last = address(values[-1]) if len(values) > 1 else ""  # a page of one has no item to spare for it
    raise Unreadable(f"{path} has more than {MOST_PAGES:,} pages: it cannot be read to the end")


def _page(answer: Answer) -> tuple[int, list[Item]]:
    page = answer.item()
    total, values = page.get("total", page.get("totalCount")), page.get("values")
    if not isinstance(total, int) or not isinstance(values, list):
        raise Unreadable(f"the answer to {answer.call} is no list: {answer.content[:80]!r}")
    return total, values


def address(item: Item) -> str:
    """What a resource is known by."""
    metadata = item["metadata"]
    return str(metadata.get("uri") or metadata["id"])


class Aruba(Cloud):
    """One project in one location. ``owners``: the LiveSystems met so far, by their owner tag in the plain style."""

    def __init__(self, client: RestClient, scope: Scope, owners: dict[str, str]) -> None:
        self.scope = scope
        self.project = scope.realm
        self.location = scope.place
        self._client = client
        self._owners = owners

    def owners(self) -> Mapping[str, str]:
        """Who may stand behind a hashed owner."""
        act = current_context()
        if act is not None:
            self.meet([act.live_system_id])
        return self._owners

    def meet(self, live_systems: Any) -> None:
        """Learn of LiveSystems whose hash may be read."""
        for one in live_systems:
            self._owners.setdefault(owner_tag(one), one)

    def collection(self, name: str) -> str:
        """Where the resources of a kind are that lie in no other."""
        return f"/projects/{self.project}/providers/{name}"

    def list(self, path: str) -> Iterator[Item]:
        """Everything of one collection."""
        return pages(self._client, path)

    def find(self, uri: str) -> Item | None:
        """One resource; None where there is none."""
        answer = self._client.find(uri, {"api-version": VERSION})
        return None if answer is None else answer.item()

    def download(self, uri: str) -> Item:
        """What people download of a resource."""
        return self._client.read(f"{uri}/download", {"api-version": VERSION}).item()

    def write(self, method: str, path: str, body: Any = None, version: str = VERSION, **query: str) -> Answer:
        """One writing request; where Aruba refuses the colon in our tags, the error says which setting helps."""
        try:
            return self._client.write(method, path, body, {"api-version": version, **query})
        except Invalid as error:
            if not _REFUSED_TAG.search(error.message) or style() == "plain":
                raise
            advice = f"this project takes no colon in tags: set tagStyle: plain ({STYLE}=plain) for the agent"
            raise Invalid(f"{error.message}; {advice}", code=error.code, request_id=error.request_id) from error
