"""Who visits a page: logging in with a token, the cookie that keeps it, and forms that only our own pages can send.

The cookie holds the token and a random word. It never reaches a page; the word stands in every form and must come back
with it. Nothing is kept on the server, so any process can answer, and a revoked token ends its sessions.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.principal import Principal, Role
from fractal_cloud.control.dashboard.pages import PageRoute, ToLogin, render, see

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
MOST_FIELDS = 20
WHAT_READS = "/livesystems"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who is logged in; ``word`` makes their forms theirs."""

    who: Principal
    word: str

    @property
    def may_act(self) -> bool:
        """Whether their role reaches more than reading."""
        return self.who.may("POST", WHAT_READS)


# --- the cookie


def _cookie_name(request: Request) -> str:
    """Cookies do not distinguish ports: two control planes on one machine must not log each other out."""
    return f"fractal-{request.url.port or request.url.scheme}"


def _pack(token: str, word: str) -> str:
    return f"{base64.urlsafe_b64encode(token.encode()).decode().rstrip('=')}.{word}"


def _unpack(cookie: str) -> tuple[str, str] | None:
    packed, _, word = cookie.partition(".")
    try:
        token = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    return (token, word) if token and word else None


def _principal(request: Request, token: str) -> Principal | None:
    """Whose token it is, if that one may see pages at all."""
    authenticator: Authenticator = request.app.state.authenticator
    found = authenticator.remembered(token) or authenticator.verify(token)
    return found if found is not None and found.may("GET", WHAT_READS) else None


def find_visitor(request: Request) -> Visitor:
    """Whoever the cookie names; everybody else is led to the login."""
    kept = _unpack(request.cookies.get(_cookie_name(request), ""))
    who = None if kept is None else _principal(request, kept[0])
    if kept is None or who is None:
        raise ToLogin
    return Visitor(who, kept[1])


def _enter(request: Request, token: str, path: str) -> Response:
    answer = see(path)
    answer.set_cookie(
        _cookie_name(request),
        _pack(token, secrets.token_urlsafe(16)),
        path="/ui",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


# --- forms


@dataclass(frozen=True, slots=True)
class Form:
    """What a form sent, one value per field."""

    fields: dict[str, str]

    def get(self, name: str) -> str:
        """A field without the blanks around it; empty if it was not sent."""
        return self.fields.get(name, "").strip()


async def _fields(request: Request) -> Form:
    """The fields of a form that one of our own pages sent, as far as its origin says."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise HTTPException(403, f"this form was sent from {origin!r}, not from this dashboard: nothing was done")
    try:
        found = parse_qs((await request.body()).decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise HTTPException(400, "the form cannot be read: go back and send it again") from error
    return Form({name: values[0] for name, values in found.items()})


def _own(visitor: TheVisitor, form: AnyForm) -> Form:
    """A form that bears the visitor's own word."""
    if not hmac.compare_digest(form.get("word").encode(), visitor.word.encode()):
        raise HTTPException(403, "this form is not of this session: open the page again, and repeat it there")
    return form


def _acting(visitor: TheVisitor, form: OwnForm) -> Form:
    """A form of somebody who may do more than look."""
    if not visitor.may_act:
        role = visitor.who.role.value
        raise HTTPException(403, f"a token with the role {role!r} may only look: log in with an operator's")
    return form


TheVisitor = Annotated[Visitor, Depends(find_visitor)]
AnyForm = Annotated[Form, Depends(_fields)]
OwnForm = Annotated[Form, Depends(_own)]
ActingForm = Annotated[Form, Depends(_acting)]


# --- the pages


def inside(path: str) -> str:
    """A path of the dashboard to go on to; anything else becomes its first page."""
    is_ours = path.startswith("/ui/") and path.isprintable() and "\\" not in path and not path.startswith("/ui/log")
    return path if is_ours else "/ui"


@router.get("/login")
def ask(next_path: Annotated[str, Query(alias="next")] = "/ui") -> Response:
    """The form that takes a token."""
    return render("login.html", visitor=None, next=inside(next_path), error="")


@router.post("/login")
def log_in(request: Request, form: AnyForm) -> Response:
    """Check the token, and keep it in the browser's cookie."""
    token, path = form.get("token"), inside(form.get("next"))
    if token and _principal(request, token) is not None:
        return _enter(request, token, path)
    return render("login.html", 401, visitor=None, next=path, error=_why_not(request, token))


def _why_not(request: Request, token: str) -> str:
    authenticator: Authenticator = request.app.state.authenticator
    found = authenticator.verify(token) if token else None
    if found is not None and found.role is Role.AGENT:
        return "This token is an agent's: log in with an admin's, an operator's or a reader's."
    return "This token is not known here: `fractal up` prints one, `fractal token create` makes one."


def enter_by_link(request: Request, token: str) -> Response:
    """Log in with the token of a printed link, and lead to an address without it."""
    if _principal(request, token) is not None:
        return _enter(request, token, request.url.path)
    return render("login.html", 401, visitor=None, next="/ui", error=_why_not(request, token))


@router.post("/logout")
def log_out(request: Request, _form: OwnForm) -> Response:
    """Let the cookie go."""
    answer = see("/ui/login")
    answer.delete_cookie(_cookie_name(request), path="/ui", httponly=True, samesite="strict")
    return answer
