"""Who visits a page: logging in with a token, the cookie that names the session, and forms only our own pages can send.

The cookie holds the random name of a session that the store keeps; the token never leaves the log-in. A random word of
the session stands in every form and must come back with it. Any process can answer, and a session ends with its token.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from fractal_cloud.control.api.routing import TheStore, require_visible
from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.principal import Principal, Role
from fractal_cloud.control.dashboard.pages import PageRoute, ToLogin, render, see
from fractal_cloud.control.store import Store, sessions, tokens
from fractal_cloud.control.store.sessions import Session

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
MOST_FIELDS = 20
WHAT_READS = "/livesystems"
BY_ITSELF: Final = "x-fractal-refresh"
"""The header of what an open page fetches by itself: nobody used the session then."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who is logged in."""

    who: Principal
    session: Session

    @property
    def word(self) -> str:
        """What makes their forms theirs."""
        return self.session.word

    @property
    def may_act(self) -> bool:
        """Whether their role reaches more than reading."""
        return self.who.may("POST", WHAT_READS)


# --- the cookie


def _cookie_name(request: Request) -> str:
    """Cookies do not distinguish ports: two control planes on one machine must not log each other out."""
    return f"fractal-{request.url.port or request.url.scheme}"


def _principal(request: Request, token: str) -> Principal | None:
    """Whose token it is, if that one may see pages at all."""
    authenticator: Authenticator = request.app.state.authenticator
    return _reader(authenticator.remembered(token) or authenticator.verify(token))


def _reader(found: Principal | None) -> Principal | None:
    return found if found is not None and found.is_accepted and found.may("GET", WHAT_READS) else None


def find_visitor(request: Request) -> Visitor:
    """Whoever the session belongs to that the cookie names; everybody else is led to the login."""
    visitor = current_visitor(request)
    if visitor is None:
        raise ToLogin
    live_system_id = request.path_params.get("id")
    if live_system_id is not None:
        require_visible(_store(request), visitor.who, live_system_id)
    if visitor.session.is_to_note and BY_ITSELF not in request.headers:
        with _store(request).write() as tx:
            sessions.note_use(tx, visitor.session)
    return visitor


def current_visitor(request: Request) -> Visitor | None:
    """Whoever the session belongs to, as long as neither it nor its token has ended."""
    name = request.cookies.get(_cookie_name(request), "")
    if not name:
        return None
    with _store(request).read() as tx:
        session = sessions.find(tx, name, request.app.state.settings.session_endings)
    if session is None:
        return None
    authenticator: Authenticator = request.app.state.authenticator
    who = _reader(authenticator.of_hash(session.token_hash))
    return None if who is None else Visitor(who, session)


def _store(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


def _enter(request: Request, who: Principal, token: str, path: str) -> Response:
    with _store(request).write() as tx:
        name = sessions.begin(tx, tokens.hashed(token), who.name)
    answer = see(path)
    answer.set_cookie(
        _cookie_name(request),
        name,
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
    """Check the token, and begin a session."""
    token, path = form.get("token"), inside(form.get("next"))
    who = _principal(request, token) if token else None
    if who is not None:
        return _enter(request, who, token, path)
    return render("login.html", 401, visitor=None, next=path, error=_why_not(request, token))


def _why_not(request: Request, token: str) -> str:
    authenticator: Authenticator = request.app.state.authenticator
    found = authenticator.verify(token) if token else None
    if found is not None and not found.is_accepted:
        return f"This token is not accepted: {found.refusal}"
    if found is not None and found.role is Role.AGENT:
        return "This token is an agent's: log in with an admin's, an operator's or a reader's."
    return "This token is not known here: `fractal up` prints one, `fractal token create` makes one."


def enter_by_link(request: Request, token: str) -> Response:
    """Log in with the token of a printed link, and lead to an address without it."""
    who = _principal(request, token)
    if who is not None:
        return _enter(request, who, token, request.url.path)
    return render("login.html", 401, visitor=None, next="/ui", error=_why_not(request, token))


@router.post("/logout")
def log_out(request: Request, visitor: TheVisitor, store: TheStore, _form: OwnForm) -> Response:
    """End the session, here and in the browser."""
    with store.write() as tx:
        sessions.end(tx, visitor.session, visitor.who.name)
    answer = see("/ui/login")
    answer.delete_cookie(_cookie_name(request), path="/ui", httponly=True, samesite="strict")
    return answer
