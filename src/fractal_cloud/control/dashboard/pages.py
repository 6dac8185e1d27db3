"""How a page is made: templates, the headers of every answer, and errors as pages. No page's content stands here."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import structlog
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException

from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.routing import query_names, refuse_unknown, replayed
from fractal_cloud.control.dashboard import filters
from fractal_cloud.control.store.errors import Forbidden, NotFound, Refused, StoreError
from fractal_cloud.control.store.failures import DatabaseUnavailable, again_async
from fractal_cloud.model.visible_text import visible

log = structlog.get_logger()

# Everything comes from this server, nothing stands inline, nobody may frame a page.
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not «no-referrer»: with that, browsers hide the origin of forms, which is checked here.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
SECTIONS: Final = (
    ("livesystems", "/ui", "LiveSystems"),
    ("overrides", "/ui/overrides", "Overrides"),
    ("agents", "/ui/agents", "Agents"),
    ("scopes", "/ui/scopes", "Scopes"),
)
"""The pages that every page leads to: name, address, title."""
_STATUS: Final[Mapping[type[StoreError], int]] = {NotFound: 404, Refused: 409, Forbidden: 403}


def _shown(value: Any) -> Any:
    """What a template prints: text from a cloud or an agent has no character that changes how others are shown."""
    return visible(value, keep="\n\t") if type(value) is str else value


_templates = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters.update(filters.FILTERS)
_templates.globals.update(sections=SECTIONS, statuses=filters.STATUSES)


class ToLogin(Exception):
    """Nobody is logged in: the page is to be asked for again after ``/ui/login``."""


def render(name: str, status: int = 200, **values: Any) -> Response:
    """A page as an answer; every value is escaped by its template."""
    page = _templates.get_template(name).render(values)
    headers = {**HEADERS, "Cache-Control": "no-store"}
    return Response(page.encode("utf-8", "replace"), status, headers, "text/html; charset=utf-8")


def see(path: str) -> Response:
    """Lead the browser to another page, with GET."""
    return Response(status_code=303, headers={**HEADERS, "Location": path, "Cache-Control": "no-store"})


def refused(status: int, detail: str) -> Response:
    """An error as a page."""
    return render("error.html", status, title=HTTPStatus(status).phrase, code=status, detail=detail, visitor=None)


class PageRoute(APIRoute):
    """A route whose errors leave it as pages, where the API's leave it as problem documents."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler."""
        handle = super().get_route_handler()
        known = frozenset(query_names(self.dependant))

        async def shown_to_people(request: Request) -> Response:
            if request.method == "GET" and any(not value for _, value in request.query_params.multi_items()):
                return see(_without_empty(request))
            try:
                refuse_unknown(request.query_params.keys(), known)
                body = await request.body()
                return await again_async(lambda: handle(Request(request.scope, replayed(body, request.receive))))
            except ToLogin:
                return _to_login(request)
            except StoreError as error:
                # «…: GET /livesystems lists them» is advice for programs.
                return refused(_STATUS.get(type(error), 409), error.message.partition(": GET /")[0])
            except DatabaseUnavailable as error:
                return refused(503, error.message)
            except HTTPException as error:
                return refused(error.status_code, str(error.detail))
            except BadRequest as error:
                return refused(422, "; ".join(str(one) for one in error.errors))
            except RequestValidationError:
                return refused(422, "the address of this page is not one we gave: go back, and choose it again")
            except Exception:  # noqa: BLE001 - a person gets a page, the log gets the rest
                # As text: a traceback with local variables could hold a token.
                log.error("page failed", path=request.url.path, exception=traceback.format_exc())
                return refused(500, "the control plane failed on this page: its log says why")

        return shown_to_people


def _without_empty(request: Request) -> str:
    """The address without the fields of a form that were left empty: they narrow nothing."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if value]
    return f"{request.url.path}?{urlencode(kept)}" if kept else request.url.path


def _to_login(request: Request) -> Response:
    """Ask for the token, and come back afterwards.

    A strict cookie stays at home when a link elsewhere led here. The page then asks for itself once more: that request
    comes from here, and brings the cookie if there is one.
    """
    if request.headers.get("sec-fetch-site") == "cross-site" and request.method == "GET":
        return render("again.html", visitor=None)
    if request.method != "GET":
        return see("/ui/login")
    here = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    return see(f"/ui/login?next={filters.quoted(here)}")
