"""Who has access: tokens are made, listed and revoked here; a secret is shown once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field, StringConstraints

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, answer, page_of
from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.principal import Role
from fractal_cloud.control.store import tokens
from fractal_cloud.model.declaration import Wire

router = APIRouter(prefix="/tokens", tags=["tokens"], route_class=StrictRoute)
NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._@-]*$"
Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NAME)]
Provider = Annotated[str, StringConstraints(max_length=63, pattern=r"^[a-z0-9-]+$")]


class NewToken(Wire):
    """Whom a token is for; ``providers`` narrows an agent's token to these."""

    name: Name
    role: Role
    providers: list[Provider] = Field(default_factory=list, max_length=50)


@router.post("", status_code=201, responses={201: {"model": views.CreatedToken}})
def create(wanted: NewToken, store: TheStore) -> Response:
    """Make a token; the answer holds its secret, which nobody can read again."""
    with store.write() as tx:
        secret, described = tokens.create(tx, wanted.name, wanted.role.value, wanted.providers)
    return answer({**described, "token": secret}, 201)


@router.get("", responses={200: {"model": views.TokenPage}})
def list_all(store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All tokens by name, without their secrets."""
    with store.read() as tx:
        return page_of(tokens.list_all(tx), limit, cursor, "name")


@router.delete("/{id}", status_code=204)
def revoke(
    token: Annotated[str, Path(alias="id", max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@-]*$")],
    store: TheStore,
    request: Request,
) -> None:
    """Revoke a token, by its id or its name."""
    with store.write() as tx:
        tokens.revoke(tx, token)
    authenticator: Authenticator = request.app.state.authenticator
    authenticator.forget()
