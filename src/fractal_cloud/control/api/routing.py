"""What every route shares: the store, who speaks, bodies that may be anything, and JSON as an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import from_json, to_json
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive

from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.validation_errors import AS_JSON, BODY, errors_of
from fractal_cloud.control.auth.principal import Principal
from fractal_cloud.control.store import Store, visibility
from fractal_cloud.control.store.errors import NotFound
from fractal_cloud.control.store.failures import again_async
from fractal_cloud.control.store.records import Json
from fractal_cloud.model.errors import InputError
from fractal_cloud.model.identity import is_id
from fractal_cloud.model.visible_text import visible

MOST_PER_PAGE = 1000


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Plain JSON, encoded once; what the document looks like is said by the route's ``responses``."""
    return Response(to_json(content, inf_nan_mode="null"), status, headers, "application/json")


def parsed(body: bytes) -> Any:
    """A body as JSON, or ``ValueError``; NUL is refused, which PostgreSQL cannot store."""
    document = from_json(body, allow_inf_nan=False)
    if b"\\u0000" in body and _has_nul(document):
        raise ValueError("a text contains the character NUL")
    return document


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(part) for item in value.items() for part in item)
    return isinstance(value, list) and any(_has_nul(item) for item in value)


class StrictRequest(Request):
    """A request whose body is UTF-8 JSON to the letter: half characters and the like are refused, not passed on."""

    async def json(self) -> Any:
        """The body, or ``JSONDecodeError``."""
        try:
            return parsed(await self.body())
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from error


def replayed(body: bytes, receive: Receive) -> Receive:
    """A way to receive a body that was read already, and then whatever comes after it."""
    is_replayed = False

    async def receive_again() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


class StrictRoute(APIRoute):
    """A route that reads its query and its body strictly, and says what it wanted where it refuses one.

    Where the database surely undid its work (a deadlock, a cut connection), it runs again, as a whole and with the same
    body. So up to its last commit a route must not do anything that may not be done twice.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Hand the route a strict request."""
        handle = super().get_route_handler()
        known = frozenset(query_names(self.dependant))
        wanted: Any = None if self.body_field is None else self.body_field.field_info.annotation

        async def strictly(request: Request) -> Response:
            refuse_unknown(request.query_params.keys(), known)
            body = await request.body()
            try:
                return await again_async(lambda: handle(StrictRequest(request.scope, replayed(body, request.receive))))
            except RequestValidationError as error:
                raise BadRequest(errors_of(error, wanted, request.headers.get("content-type", ""))) from error

        return strictly


def query_names(dependant: Dependant) -> Iterable[str]:
    """The query parameters of a route and of all that it depends on."""
    yield from (one.alias for one in dependant.query_params)
    for one in dependant.dependencies:
        yield from query_names(one)


def refuse_unknown(names: Iterable[str], known: Collection[str]) -> None:
    """Raise ``BadRequest`` for query parameters that a route does not have: a filter that is ignored shows too much."""
    other = sorted(set(names) - set(known))
    if other:
        allowed = f"use {', '.join(sorted(known))}" if known else "this route has none"
        raise BadRequest([InputError(visible(name)[:200], f"is no query parameter here: {allowed}") for name in other])


async def _document(request: Request) -> object:
    """The body as plain JSON, whatever it is; None if there is no body."""
    body = await request.body()
    if not body:
        return None
    try:
        document: object = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        asked = f"send a declaration, a JSON object with id and components, {AS_JSON}"
        raise BadRequest([InputError(BODY, f"is not JSON: {error}: {asked}")]) from error
    return document


async def _store(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


async def _principal(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


def known_id(kind: str, value: str) -> str:
    """A value that may be an id; what cannot be one is not found, and never reaches the store."""
    if not is_id(value):
        raise NotFound(f"there is no {kind} {value!r}")
    return value


async def _live_system_id(request: Request, live_system_id: Annotated[str, Path(alias="id")]) -> str:
    known = known_id("LiveSystem", live_system_id)
    # The dashboard's own dependency does the same for whoever is logged in.
    principal: Principal | None = getattr(request.state, "principal", None)
    if principal is not None and principal.sees is not None:
        await run_in_threadpool(require_visible, request.app.state.store, principal, known)
    return known


def require_visible(store: Store, who: Principal, live_system_id: str) -> None:
    """Raise ``NotFound`` for a LiveSystem of an environment that a token is not bound to."""
    with store.read() as tx:
        visibility.require_visible(tx, who.sees, live_system_id)


async def _component_id(component_id: Annotated[str, Path(alias="componentId")]) -> str:
    return known_id("component", component_id)


Document = Annotated[object, Depends(_document)]
TheStore = Annotated[Store, Depends(_store)]
Who = Annotated[Principal, Depends(_principal)]
LiveSystemId = Annotated[str, Depends(_live_system_id)]
ComponentId = Annotated[str, Depends(_component_id)]
Limit = Annotated[int, Query(ge=1, le=MOST_PER_PAGE, description="How many at most.")]
Cursor = Annotated[
    str | None,
    Query(max_length=2048, pattern=r"^[^\x00-\x1f\x7f]*$", description="Where the page before ended: its `next`."),
]


def page(fetch: Callable[[int], list[Json]], limit: int, key: str) -> Response:
    """One page of a list; ``next``, the ``key`` of its last item, leads to the next, and is null on the last.

    One more than asked for is fetched: whether there is a next page is known, not guessed.
    """
    found = fetch(limit + 1)
    items = found[:limit]
    return answer(listed(items, str(items[-1][key]) if len(found) > limit else None))


def listed(items: list[Json], following: str | None, total: int | None = None) -> Json:
    """A page as it is answered; ``cursor`` is what ``next`` was called at first, and stays."""
    known = {} if total is None else {"total": total}
    return {"items": items, "next": following, "cursor": following, **known}


def page_in_order(found: list[Json], limit: int) -> Response:
    """One page of items that say their place in ``order``, which the cursor names; one more than asked for is given."""
    following = str(found[limit - 1]["order"]) if len(found) > limit else None
    shown = [{name: value for name, value in item.items() if name != "order"} for item in found[:limit]]
    return answer(listed(shown, following))


def page_of(every: Iterable[Json], limit: int, cursor: str | None, key: str) -> Response:
    """One page of a short list that is at hand whole, by ``key``."""
    return in_pages(every, limit, cursor, key)


def in_pages(every: Iterable[Json], limit: int, cursor: str | None, key: str, **more: object) -> Response:
    """The same with more beside the items, on every page."""
    rest = sorted((item for item in every if cursor is None or item[key] > cursor), key=lambda item: str(item[key]))
    items = rest[:limit]
    return answer({**listed(items, str(items[-1][key]) if len(rest) > limit else None), **more})
