"""Every error as ``application/problem+json``, whoever raised it; the words are those of the one who refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from fractal_cloud.control.store.database import ValueRefused
from fractal_cloud.control.store.errors import (
    AgentRefused,
    Forbidden,
    Gone,
    LeaseLost,
    NotFound,
    Refused,
    ReportRefused,
    Stale,
    StoreError,
    TypeOfAnother,
)
from fractal_cloud.control.store.failures import DatabaseUnavailable, OutcomeUnknown
from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.model.wording import counted

MEDIA_TYPE = "application/problem+json"


class ErrorView(Wire):
    """One thing wrong with what was sent."""

    path: str
    message: str


class Problem(Wire):
    """Why a request was refused (RFC 9457); ``errors`` lists every error at once."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[ErrorView] = Field(default_factory=list)


# Said once for all routes: whatever goes wrong is a problem document.
RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "Refused, with the reason.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}

_STATUS: Mapping[type[StoreError], tuple[int, str]] = {
    NotFound: (404, "not-found"),
    LeaseLost: (409, "lease-lost"),
    Refused: (409, "refused"),
    Gone: (410, "gone"),
    Stale: (412, "stale"),
    Forbidden: (403, "forbidden"),
    ReportRefused: (403, "report-refused"),
    TypeOfAnother: (403, "type-of-another"),
    AgentRefused: (403, "forbidden"),
}


class BadRequest(Exception):
    """What was sent cannot be understood; carries every error."""

    def __init__(self, errors: Sequence[InputError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors


def problem(
    status: int,
    detail: str,
    kind: str = "",
    errors: Sequence[InputError] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem document as an answer."""
    title = HTTPStatus(status).phrase
    body = {
        "type": f"urn:fractal-cloud:problem:{kind}" if kind else "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "errors": [{"path": error.path, "message": error.message} for error in errors],
    }
    return Response(_encoded(body), status, dict(headers or {}), MEDIA_TYPE)


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return to_json(body)
    except ValueError:  # half of a character pair, from a path or a body: shown as «?», never a server error
        text = {key: _clean(value) for key, value in body.items()}
        return to_json(text)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [{key: _clean(item) for key, item in entry.items()} for entry in value]
    return value


async def _on_store_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, StoreError)
    status, kind = _STATUS[type(error)]
    return problem(status, error.message, kind)


async def _on_declaration_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, DeclarationError)
    return bad_input(error.errors)


async def _on_bad_request(_request: Request, error: Exception) -> Response:
    assert isinstance(error, BadRequest)
    return bad_input(error.errors)


def bad_input(errors: Sequence[InputError]) -> Response:
    """Refuse what was sent, with everything that is wrong with it."""
    them = "it" if len(errors) == 1 else "them"
    detail = f"{counted(len(errors), 'error')}. Fix {them} and try again; nothing was stored."
    return problem(422, detail, "bad-input", errors)


async def _on_http_exception(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), headers=error.headers)


async def _on_value_refused(_request: Request, _error: Exception) -> Response:
    return problem(422, "a number or a date in the request is out of range: send one that fits", "bad-input")


def unavailable(error: DatabaseUnavailable) -> Response:
    """Say that nothing is wrong with the request, and when to come again."""
    kind = "unsure" if isinstance(error, OutcomeUnknown) else "unavailable"
    return problem(503, error.message, kind, headers={"Retry-After": str(error.after_seconds)})


async def _on_unavailable(_request: Request, error: Exception) -> Response:
    assert isinstance(error, DatabaseUnavailable)
    return unavailable(error)


async def _on_crash(_request: Request, _error: Exception) -> Response:
    return problem(500, "the control plane failed on this request: its log says why", "internal")


def install(app: FastAPI) -> None:
    """Let every error leave the app as a problem document."""
    app.add_exception_handler(StoreError, _on_store_error)
    app.add_exception_handler(DeclarationError, _on_declaration_error)
    app.add_exception_handler(BadRequest, _on_bad_request)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(DatabaseUnavailable, _on_unavailable)
    app.add_exception_handler(OverflowError, _on_value_refused)
    app.add_exception_handler(ValueRefused, _on_value_refused)
    app.add_exception_handler(Exception, _on_crash)
