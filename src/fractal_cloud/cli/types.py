"""`fractal types`: which component types there are, whose each of them is, and giving one to another token (A4)."""

from __future__ import annotations

from typing import Annotated

import typer

from fractal_cloud.cli.options import DEFAULT_URL, Output, OutputOption, Token, Url

types_app = typer.Typer(help="See component types and their owners, and move one.", no_args_is_help=True)


@types_app.command("list")
def every(output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Show all component types, and whose each of them is."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import console, emit, table

    with connect(url, token) as control:
        found = list(control.every("/types"))
    if output is not Output.TABLE:
        emit(found, output)
        return
    rows = [(one["type"], one["provider"], _owner(one["owner"], installed=one["installed"])) for one in found]
    console().print(table(("type", "provider", "owner"), rows))


def _owner(owner: str | None, *, installed: bool) -> str:
    if installed:
        return "installed package"
    return f"token {owner}" if owner else "nobody yet"


@types_app.command("move")
def move(
    name: Annotated[str, typer.Argument(metavar="TYPE", help="A type that an agent brought along.")],
    to: Annotated[str, typer.Option("--to", help="The name of the token whose agents say what the type is.")],
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Give a type to another token, as an admin: what that token's agents register next is what the type is."""
    from urllib.parse import quote

    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    with connect(url, token) as control:
        done = control.post(f"/tokens/{quote(to, safe='')}/types", {"type": name})
    if output is not Output.TABLE:
        emit(done, output)
        return
    before = f"it belonged to token {done['before']}" if done["before"] else "it belonged to nobody"
    say(f"{name} belongs to token {done['owner']} from now on; {before}.")
