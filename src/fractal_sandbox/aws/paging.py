"""Listings in pages, as AWS cuts them: moto ignores the wanted size, or cuts without a token, for half of them.

The first page remembers what was there; later pages show what is left of that, as it is then, so that nothing is
skipped or shown twice while resources come and go. Tokens stay good, so that a page can be asked for again. What the
items are, and whether they are shown at all, is decided before.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from fractal_sandbox.aws.answer import Answer, AwsError, read, written
from fractal_sandbox.aws.descriptors import SERVICES
from fractal_sandbox.aws.effects import TAGGING_API
from fractal_sandbox.aws.request import AwsRequest, with_parameters
from fractal_sandbox.calls import Call

__all__ = ["PAGED", "Pages"]


@dataclass(frozen=True)
class _Paging:
    """How one operation is paged: the names of its parameters, and the sizes it allows."""

    items: str
    key: str
    limit: str
    token_in: str
    token_out: str
    default: int | None
    smallest: int
    largest: int
    bad_size: str
    bad_token: str


def _paged() -> Iterator[tuple[tuple[str, str], _Paging]]:
    """Return how every list of every descriptor is paged."""
    for service in SERVICES.values():
        lists: dict[str, tuple[str, str, int | None]] = {
            name: (items, key, None) for name, (items, key) in service.facts["lists"].items()
        }
        for resource in service.resources:
            for one in resource.facts["listings"]:
                if not one["is_by_name"]:
                    items = one["path"].partition(".")[0]
                    lists[one["operation"]] = (items, one["page_key"] or one["id"], one["page_size"])
        facts, (token_in, token_out) = service.facts["paging"], service.facts["cursor"]
        for operation, (items, key, size) in lists.items():
            names = {"items": items, "key": key, "token_in": token_in, "token_out": token_out}
            yield (service.name, operation), _Paging(**names, **{**facts, "default": size or facts["default"]})


def _of_cloudcontrol(items: str, key: str, default: int) -> _Paging:
    return _Paging(
        items=items,
        key=key,
        limit="MaxResults",
        token_in="NextToken",
        token_out="NextToken",
        default=default,
        smallest=1,
        largest=100,
        bad_size="ValidationException",
        bad_token="InvalidRequestException",
    )


PAGED: Final[dict[tuple[str, str], _Paging]] = {
    **dict(_paged()),
    (TAGGING_API, "GetResources"): _Paging(
        items="ResourceTagMappingList",
        key="ResourceARN",
        limit="ResourcesPerPage",
        token_in="PaginationToken",
        token_out="PaginationToken",
        default=50,
        smallest=1,
        largest=100,
        bad_size="InvalidParameterValue",
        bad_token="PaginationTokenExpiredException",
    ),
    ("cloudcontrol", "ListResources"): _of_cloudcontrol("ResourceDescriptions", "Identifier", 100),
    ("cloudcontrol", "ListResourceRequests"): _of_cloudcontrol("ResourceRequestStatusSummaries", "RequestToken", 20),
}


@dataclass(frozen=True)
class _Bookmark:
    operation: tuple[str, str]
    page: int
    keys: tuple[str, ...]


class Pages:
    """Cuts listings into pages, and finds its place again by token."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._bookmarks: dict[str, _Bookmark] = {}

    def number(self, call: Call) -> int:
        """Return which page of a listing a call asks for; 1 for the first and for calls that are no listing."""
        paging = PAGED.get((call.service, call.operation))
        token = call.parameters.get(paging.token_in) if paging else None
        bookmark = self._bookmarks.get(token or "")
        return bookmark.page if bookmark else 1

    def collect(
        self, request: AwsRequest, call: Call, dispatch: Callable[[AwsRequest], Answer]
    ) -> tuple[Answer, dict[str, Any]]:
        """Return the whole listing, whatever page of it was asked for, as if it were one page."""
        paging = PAGED[(call.service, call.operation)]
        _check(call, paging)
        bare = {name: value for name, value in call.parameters.items() if name not in (paging.limit, paging.token_in)}
        answer = dispatch(request if bare == call.parameters else with_parameters(request, bare))
        if not answer.is_success:
            return answer, {}
        data = read(request, answer)
        token = data.pop(paging.token_out, None)
        is_whole = not token
        while token:
            more = read(request, dispatch(with_parameters(request, {**bare, paging.token_in: token})))
            data[paging.items] += more.get(paging.items, [])
            token = more.get(paging.token_out)
        return (answer if is_whole else written(request, data, answer)), data

    def cut(self, call: Call, data: dict[str, Any], cap: int | None) -> bool:
        """Leave only the page that was asked for in a whole listing; return whether anything was cut."""
        operation = (call.service, call.operation)
        paging = PAGED[operation]
        items: list[Any] = data.get(paging.items, [])
        token = call.parameters.get(paging.token_in)
        page = 1
        if token:
            bookmark = self._bookmarks[token]
            page = bookmark.page
            by_key = {_key(paging, item): item for item in items}
            items = [by_key[key] for key in bookmark.keys if key in by_key]
        size = _size(call, paging, cap)
        shown, left = (items, []) if size is None else (items[:size], items[size:])
        if not token and not left:
            return False
        data[paging.items] = shown
        if left:
            data[paging.token_out] = self._bookmark(operation, page + 1, tuple(_key(paging, item) for item in left))
        return True

    def knows(self, call: Call) -> bool:
        """Return whether the token of a call is one of ours, given for the same operation."""
        token = call.parameters.get(PAGED[(call.service, call.operation)].token_in)
        if not token:
            return True
        bookmark = self._bookmarks.get(token)
        return bookmark is not None and bookmark.operation == (call.service, call.operation)

    def refuse_bad_token(self, call: Call) -> None:
        if not self.knows(call):
            paging = PAGED[(call.service, call.operation)]
            raise AwsError(paging.bad_token, f"Invalid {paging.token_in}.")

    def _bookmark(self, operation: tuple[str, str], page: int, keys: tuple[str, ...]) -> str:
        token = uuid.uuid4().hex
        self._bookmarks[token] = _Bookmark(operation, page, keys)
        return token


def _key(paging: _Paging, item: Any) -> str:
    return str(item[paging.key] if paging.key else item)


def _size(call: Call, paging: _Paging, cap: int | None) -> int | None:
    wanted = call.parameters.get(paging.limit)
    if wanted is None and call.service == "s3":
        return None  # real ListBuckets answers all at once unless it is asked for pages
    sizes = [size for size in (wanted or paging.default, cap) if size is not None]
    return min(sizes) if sizes else None


def _check(call: Call, paging: _Paging) -> None:
    wanted = call.parameters.get(paging.limit)
    if wanted is None:
        return
    if call.service == "ec2" and call.parameters.get("InstanceIds"):
        raise AwsError(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        )
    if not paging.smallest <= wanted <= paging.largest:
        raise AwsError(
            paging.bad_size,
            f"Value ( {wanted} ) for parameter {paging.limit} is invalid. "
            f"Expecting a value between {paging.smallest} and {paging.largest}.",
        )
