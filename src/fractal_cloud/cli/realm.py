"""`fractal realm`: which account, project or cluster every name is bound to, and accepting another one."""

from __future__ import annotations

from typing import Annotated

import typer

from fractal_cloud.cli.options import DEFAULT_URL, Output, OutputOption, Token, Url

realm_app = typer.Typer(help="See which realms names are bound to, and accept another one.", no_args_is_help=True)


@realm_app.command("list")
def every(output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Show every name with the realm it is bound to, and the other one that is reached by it now."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import console, emit, table

    with connect(url, token) as control:
        found = list(control.every("/realms"))
    if output is not Output.TABLE:
        emit(found, output)
        return
    names = ("environment", "provider", "name", "realm", "other")
    console().print(table(names, [tuple(one.get(name) or "" for name in names) for one in found]))


@realm_app.command("accept")
def accept(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What declarations call it, or the id of either realm.")],
    provider: Annotated[str, typer.Option("--provider", help="The cloud it belongs to.")],
    reason: Annotated[str, typer.Option("--reason", help="Why it was replaced, for the events.")],
    environment: Annotated[str, typer.Option("--environment", help="Whose name it is.")] = "default",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Accept the realm that is reached now in the place of the one that was: it was replaced for good.

    Everything in it is then found by its name and judged by its tags. What is absent is Missing until its LiveSystem is
    deployed again; deletions of what was in the old one end.
    """
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    body = {"name": name, "provider": provider, "reason": reason, "environment": environment}
    with connect(url, token) as control:
        done = control.post("/realms/accept", body)
    if output is not Output.TABLE:
        emit(done, output)
        return
    say(f"{provider} {name} is {done['after']} from now on, it was {done['before']}.")
    say(f"{done['components']} components are read there anew; {done['ended']} deletions ended as absent.")
    if done["components"]:
        say("What is absent there is Missing until you deploy its LiveSystem again.")
