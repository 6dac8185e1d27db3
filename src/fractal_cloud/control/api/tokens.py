"""Who has access: tokens are made, listed and revoked here; a secret is shown once."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Request, Response
from pydantic import AwareDatetime, Field, StringConstraints

from fractal_cloud.control.api import views
from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.routing import Cursor, Limit, StrictRoute, TheStore, Who, answer, page_of
from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.principal import Role
from fractal_cloud.control.store import access, offers, tokens
from fractal_cloud.model.declaration import Wire
from fractal_cloud.model.errors import InputError
from fractal_cloud.rules.grants import Grants

router = APIRouter(tags=["tokens"], route_class=StrictRoute)
ALL: Final = "/tokens"
NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._@-]*$"
Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NAME)]
TokenId = Annotated[str, Path(alias="id", max_length=100, pattern=NAME, description="Its id or its name.")]
# A name or a shell-style pattern; of a realm its id, or the name under which it is reached (a context may be an ARN).
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]+$")]


class NewToken(Wire):
    """Whom a token is for; an agent's must say which providers, environments and realms it is bound to (A1)."""

    name: Name
    role: Role
    providers: list[Pattern] = Field(default_factory=list, max_length=1000)
    environments: list[Pattern] = Field(default_factory=list, max_length=1000)
    realms: list[Pattern] = Field(default_factory=list, max_length=1000)
    expires_at: AwareDatetime | None = Field(default=None, description="With a time zone; none: it does not expire.")

    def errors(self) -> list[InputError]:
        """What is missing for an agent, or given to a role that it cannot bind."""
        if self.role is Role.AGENT:
            given = {"providers": self.providers, "environments": self.environments, "realms": self.realms}
            return [InputError(name, _MISSING.format(name)) for name, patterns in given.items() if not patterns]
        only_agents = {"providers": self.providers, "realms": self.realms}
        return [InputError(name, _ONLY_AGENTS) for name, patterns in only_agents.items() if patterns]


_MISSING = "is missing: an agent's token is bound to {}; give names or patterns, and '*' for all of them"
_ONLY_AGENTS = "is for an agent's token alone: leave it out, or choose the role 'agent'"


@router.post(ALL, status_code=201, responses={201: {"model": views.CreatedToken}})
def create(wanted: NewToken, store: TheStore, who: Who) -> Response:
    """Make a token; the answer holds its secret, which nobody can read again."""
    errors = wanted.errors()
    with store.write() as tx:
        if wanted.expires_at is not None and wanted.expires_at <= tx.now:
            errors.append(InputError("expiresAt", "lies in the past: name a time to come, or none"))
        if errors:
            raise BadRequest(errors)
        grants = Grants.of(wanted.providers, wanted.environments, wanted.realms)
        secret, described = access.create_token(
            tx, tokens.NewToken(wanted.name, wanted.role.value, grants, wanted.expires_at, who.name)
        )
    return answer({**described, "token": secret}, 201)


@router.get(ALL, responses={200: {"model": views.TokenPage}})
def list_all(store: TheStore, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All tokens by name, without their secrets."""
    with store.read() as tx:
        return page_of(tokens.list_all(tx), limit, cursor, "name")


@router.get("/whoami", responses={200: {"model": views.Whoami}})
def whoami(who: Who) -> Response:
    """Whose token this is: the name that stands on what is done with it."""
    return answer({"name": who.name, "role": who.role, "environments": sorted(who.environments)})


class GivenType(Wire):
    """A component type that an agent brought along."""

    type: Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]+$")]


@router.post(f"{ALL}/{{id}}/types", responses={200: {"model": views.TypeMoved}})
def give_type(token: TokenId, given: GivenType, store: TheStore, who: Who) -> Response:
    """Give a type to a token, by its name: from then on its agents say what the type is (A4)."""
    with store.write() as tx:
        return answer(offers.move(tx, given.type, token, who.name, store.installed_types))


@router.post(f"{ALL}/{{id}}/rotate", responses={200: {"model": views.CreatedToken}})
def rotate(token: TokenId, store: TheStore, who: Who, request: Request) -> Response:
    """Give a token a new secret, with the same name and bounds; the old one is void, and its agents lose all leases."""
    with store.write() as tx:
        secret, described = access.rotate_token(tx, token, who.name)
    _forget(request)
    return answer({**described, "token": secret})


@router.delete(f"{ALL}/{{id}}", status_code=204)
def revoke(token: TokenId, store: TheStore, who: Who, request: Request) -> None:
    """Revoke a token, by its id or its name; its agents lose all leases."""
    with store.write() as tx:
        access.revoke_token(tx, token, who.name)
    _forget(request)


def _forget(request: Request) -> None:
    authenticator: Authenticator = request.app.state.authenticator
    authenticator.forget()
