"""`fractal token`: who may use the control plane, and as what."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.options import DEFAULT_URL, Output, OutputOption, Token, Url
from fractal_cloud.cli.times import point_in_time

token_app = typer.Typer(help="Give access to the control plane, and take it away.", no_args_is_help=True)


TokenId = Annotated[str, typer.Argument(metavar="TOKEN", help="Its name, as the list shows it, or its id.")]


class Role(StrEnum):
    """What a token is for."""

    ADMIN = "admin"
    OPERATOR = "operator"
    READER = "reader"
    AGENT = "agent"


@token_app.command("create")
def create(
    role: Annotated[Role, typer.Option("--role", help="All; all but tokens; only reading; only an agent's work.")],
    name: Annotated[str, typer.Option("--name", help="Whose it is, for the list and the events.")] = "",
    provider: Annotated[
        list[str] | None, typer.Option("--provider", help="An agent's cloud; may be given several times.")
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option("--environment", help="An environment it is for, or a pattern; may be given several times."),
    ] = None,
    realm: Annotated[
        list[str] | None,
        typer.Option(
            "--realm",
            help="An account, project, tenancy or cluster an agent may serve: its id, the name of its context, "
            "LIVESYSTEM/COMPONENT of a declared cluster, or a pattern; may be given several times.",
        ),
    ] = None,
    expires: Annotated[
        str, typer.Option("--expires", help="Until when it is valid: a date, a time, or a span like 90d.")
    ] = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Make a token. It is shown once, now, and never again.

    An agent's token says what it may serve: give --provider, --environment and --realm.
    """
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    bound = {"--provider": provider or [], "--environment": environment or [], "--realm": realm or []}
    if role is Role.AGENT:
        _require_all(bound)
    body: dict[str, Any] = {
        "role": role.value,
        "name": name or f"{role.value}-{secrets.token_hex(3)}",
        "providers": bound["--provider"],
        "environments": bound["--environment"],
        "realms": bound["--realm"],
    }
    if expires:
        body["expiresAt"] = point_in_time("--expires", expires)
    with connect(url, token) as control:
        made = control.post("/tokens", body)
    if output is not Output.TABLE:
        emit(made, output)
    else:
        say(made["token"])


def _require_all(bound: Mapping[str, list[str]]) -> None:
    missing = [flag for flag, patterns in bound.items() if not patterns]
    if missing:
        raise CommandError(
            f"an agent's token says what it may serve: {' and '.join(missing)} {_are(missing)} missing",
            advice="For example `fractal token create --role agent --provider aws --environment prod "
            "--realm 123456789012`; --realm '*' is every account the agent has credentials for.",
            code=Exit.USAGE,
        )


def _are(words: list[str]) -> str:
    return "is" if len(words) == 1 else "are"


@token_app.command("list")
def every(output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Show who has access, not the tokens themselves."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import console, emit, table

    with connect(url, token) as control:
        found = list(control.every("/tokens"))
    if output is not Output.TABLE:
        emit(found, output)
        return
    console().print(table(_TITLES, [_row(one) for one in found]))


_TITLES = ("name", "role", "bound to", "created", "expires", "last used")


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    bound = (", ".join(one.get(name) or ()) for name in ("providers", "environments", "realms"))
    times = (str(one.get(name) or "")[:10] for name in ("createdAt", "expiresAt", "lastUsedAt"))
    return (str(one.get("name")), str(one.get("role")), "; ".join(filter(None, bound)), *times)


@token_app.command("rotate")
def rotate(token_id: TokenId, output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Give a token a new secret, with the same name and bounds. It is shown once; the old one is void at once."""
    from urllib.parse import quote

    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    with connect(url, token) as control:
        made = control.post(f"/tokens/{quote(token_id, safe='')}/rotate")
    if output is not Output.TABLE:
        emit(made, output)
    else:
        say(made["token"])


@token_app.command("revoke")
def revoke(token_id: TokenId, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Take a token's access away, at once."""
    from urllib.parse import quote

    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import say

    with connect(url, token) as control:
        control.delete(f"/tokens/{quote(token_id, safe='')}")
    say(f"{token_id}: revoked")
