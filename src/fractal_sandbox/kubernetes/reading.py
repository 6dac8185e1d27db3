"""Answering reads: one object, or a list in pages, as a selection and the knobs let it show.

Pages show one moment: the first remembers what was there, as the real server's do; its tokens stay good until they are
expired. Runs under the cloud's lock. In which form an object is written does not belong here.
"""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from dataclasses import dataclass
from typing import Any

from fractal_sandbox.kubernetes.controllers import Controllers
from fractal_sandbox.kubernetes.errors import bad_request, gone, not_found
from fractal_sandbox.kubernetes.kinds import Object
from fractal_sandbox.kubernetes.request import KubeRequest
from fractal_sandbox.kubernetes.selecting import Selection, parse_selection
from fractal_sandbox.kubernetes.store import Store

__all__ = ["Page", "Reading", "selection_of"]


@dataclass(frozen=True)
class Page:
    """One page of a list, and what its metadata says."""

    items: list[Object]
    metadata: dict[str, Any]


@dataclass(frozen=True)
class _Bookmark:
    resource: str
    page: int
    version: str
    items: list[Object]


def selection_of(request: KubeRequest) -> Selection:
    return parse_selection(request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""))


class Reading:
    """Finds what a read is about."""

    def __init__(self, store: Store, controllers: Controllers) -> None:
        self._store = store
        self._controllers = controllers
        self.reset()

    def reset(self) -> None:
        self._bookmarks: dict[str, _Bookmark] = {}

    def expire_pages(self) -> None:
        """Let every token given so far be too old, as compaction does after some minutes."""
        self._bookmarks.clear()

    def page_number(self, token: str) -> int:
        bookmark = self._bookmarks.get(_id_in(token)) if token else None
        return bookmark.page if bookmark else 1

    def one(self, request: KubeRequest) -> Object:
        target = request.target
        found = self._store.get(target.kind, target.namespace, target.name)
        if found is not None:
            is_hidden = self._controllers.is_hidden(found)
            self._controllers.count_read(found)
            if not is_hidden:
                return found
        raise not_found(target.kind, target.name)

    def page(self, request: KubeRequest, cap: int | None) -> Page:
        limit = max(request.number("limit") or 0, 0)
        token = request.query.get("continue", "")
        selection = selection_of(request)
        if token:
            bookmark = self._bookmark(token, request.target.kind.resource)
            number, version, items = bookmark.page, bookmark.version, bookmark.items
        else:
            number, version, items = 1, str(self._store.version), self._visible(request, selection)
        sizes = [size for size in (limit, cap) if size]
        size = min(sizes) if sizes and limit else len(items)  # who asks for no pages gets none
        shown, left = items[:size], items[size:]
        metadata: dict[str, Any] = {"resourceVersion": version}
        if request.target.kind.is_custom:
            metadata["continue"] = ""  # the real server writes it for custom resources only
        if left:
            metadata["continue"] = self._token(_Bookmark(request.target.kind.resource, number + 1, version, left))
            if selection.is_empty:
                metadata["remainingItemCount"] = len(left)
        return Page(shown, metadata)

    def _visible(self, request: KubeRequest, selection: Selection) -> list[Object]:
        shown = []
        for item in self._store.items(request.target.kind, request.target.namespace):
            if not selection.fits(item):
                continue
            if not self._controllers.is_hidden(item):
                shown.append(item)
            self._controllers.count_read(item)
        return shown

    def _bookmark(self, token: str, resource: str) -> _Bookmark:
        bookmark = self._bookmarks.get(_id_in(token))
        if bookmark is None or bookmark.resource != resource:
            raise gone(
                "The provided continue parameter is too old to display a consistent list result. You can start a new "
                "list without the continue parameter."
            )
        return bookmark

    def _token(self, bookmark: _Bookmark) -> str:
        name = uuid.uuid4().hex
        self._bookmarks[name] = bookmark
        words = {"v": "meta.k8s.io/v1", "rv": int(bookmark.version), "start": name}
        return base64.urlsafe_b64encode(json.dumps(words).encode()).decode().rstrip("=")


def _id_in(token: str) -> str:
    try:
        words = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return str(words["start"])
    except (binascii.Error, ValueError, KeyError, TypeError):
        raise bad_request("invalid continue token: continue key is not valid: illegal base64 data") from None
