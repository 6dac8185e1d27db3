"""`fractal token`: who may use the control plane, and as what."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from fractal_cloud.cli.options import DEFAULT_URL, Output, OutputOption, Token, Url

token_app = typer.Typer(help="Give access to the control plane, and take it away.", no_args_is_help=True)


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
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Make a token. It is shown once, now, and never again."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    body = {"role": role.value, "name": name or f"{role.value}-{secrets.token_hex(3)}", "providers": provider or []}
    with connect(url, token) as control:
        made = control.post("/tokens", body)
    if output is not Output.TABLE:
        emit(made, output)
    else:
        say(made["token"])


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
    rows = [(one.get("id"), one.get("role"), one.get("name"), _created_text(one)) for one in found]
    console().print(table(("id", "role", "name", "created"), rows))


def _created_text(one: Mapping[str, Any]) -> str:
    return str(one.get("createdAt") or "")[:19].replace("T", " ")


@token_app.command("revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="Its id or its name, as the list shows them.")],
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Take a token's access away, at once."""
    from urllib.parse import quote

    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import say

    with connect(url, token) as control:
        control.delete(f"/tokens/{quote(token_id, safe='')}")
    say(f"{token_id}: revoked")
