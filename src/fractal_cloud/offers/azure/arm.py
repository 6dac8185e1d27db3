"""Azure Resource Manager in one subscription and resource group: the few calls that all offers are made of.

Who calls, and where Azure is, the session knows; what a resource means stands in its offer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fractal_cloud.model.catalog import GLOBAL_PLACE
from fractal_cloud.model.errors import NotFound, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.azure.errors import NO_GROUP
from fractal_cloud.offers.azure.kinds import Item, ResourceKind
from fractal_cloud.offers.offer import Cloud
from fractal_cloud.offers.rest import Answer, RestClient
from fractal_cloud.offers.secret import Secret

VERSION: Final = "api-version"


class Azure(Cloud):
    """One subscription; ``group`` is empty where names are unique in the whole world."""

    def __init__(self, client: RestClient, scope: Scope, database_token: Callable[[], Secret] | None = None) -> None:
        self.scope = scope
        self.database_token = database_token
        self.subscription = scope.realm
        self.group = "" if scope.place == GLOBAL_PLACE else scope.place
        self._client = client

    def id_of(self, kind: ResourceKind, name: str, group: str = "") -> str:
        """The id of a resource, which is also the path it is found at."""
        within = f"/subscriptions/{self.subscription}/resourceGroups/{group or self.group}"
        return f"{within}/providers/{kind.type}/{name}"

    # --- reading

    def list(self, kind: ResourceKind, group: str = "", **query: str) -> Iterator[Item]:
        """All resources of a kind in the group (or, without one, the subscription), a page a call.

        A group that is not there holds nothing. Anything else that cannot be read to its end raises.
        """
        group = group or self.group
        within = f"/subscriptions/{self.subscription}" + (f"/resourceGroups/{group}" if group else "")
        try:
            yield from self.children(f"{within}/providers/{kind.type}", kind.version, **query)
        except NotFound as error:
            if error.code != NO_GROUP:
                raise Unreadable(error.message, code=error.code, request_id=error.request_id) from error

    def everywhere(self, kind: ResourceKind, **query: str) -> Iterator[Item]:
        """All resources of a kind in the subscription, a page a call; raises rather than end early."""
        return self.children(f"/subscriptions/{self.subscription}/providers/{kind.type}", kind.version, **query)

    def children(self, path: str, version: str, **query: str) -> Iterator[Item]:
        """Everything in a collection; raises rather than end early."""
        for page in self._client.pages(path, {VERSION: version, **query}, next_page):
            found = page.item().get("value")
            if not isinstance(found, list):
                raise Unreadable(f"the answer to {page.call} has no list: {page.content[:80]!r}")
            yield from found

    def find(self, resource_id: str, version: str, **query: str) -> Item | None:
        """One resource; None where Azure says that it is not there."""
        answer = self._client.find(resource_id, {VERSION: version, **query})
        return answer.item() if answer is not None else None

    def ask(self, path: str, version: str) -> Item:
        """What a question returns that has to be posted, and changes nothing."""
        return self._client.ask(path, None, {VERSION: version}).item()

    # --- writing: each is one request, sent once

    def put(self, resource_id: str, version: str, body: Item, etag: str | None = None, *, is_new: bool = False) -> Item:
        """Write a whole resource: one that has this etag, where it reports one; ``is_new``: one that is not there yet.

        Not every service respects these headers; none refuses them.
        """
        precondition = {"if-none-match": "*"} if is_new else {"if-match": etag} if etag else {}
        return self._item(self._client.write("PUT", resource_id, body, {VERSION: version}, precondition))

    def patch(self, resource_id: str, version: str, body: Item, etag: str | None = None) -> None:
        """Change what the body names, of a resource that has this etag, where there is one."""
        precondition = {"if-match": etag} if etag else {}
        self._client.write("PATCH", resource_id, body, {VERSION: version}, precondition)

    def post(self, path: str, version: str) -> None:
        """Start an action."""
        self._client.write("POST", path, None, {VERSION: version})

    def delete(self, resource_id: str, version: str, etag: str | None = None) -> None:
        """Delete a resource that has this etag, where there is one; absent is success."""
        precondition = {"if-match": etag} if etag else {}
        try:
            self._client.write("DELETE", resource_id, None, {VERSION: version}, precondition)
        except NotFound:
            return

    @staticmethod
    def _item(answer: Answer) -> Item:
        return answer.item() if answer.content else {}


def next_page(answer: Answer) -> tuple[str, Mapping[str, Any]] | None:
    """Where a list goes on."""
    following = answer.item().get("nextLink")
    return (str(following), {}) if following else None
