"""`fractal agent keys`, `rotate-key` and `withdraw-key`: the keys that secrets of links are sealed to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from fractal_cloud.cli.options import DEFAULT_URL, Output, OutputOption, Token, Url

Reason = Annotated[str, typer.Option("--reason", help="Why, for the events.")]


def every(output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Show every sealing key, the realm it belongs to, and who has it."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import console, emit, table

    with connect(url, token) as control:
        found = list(control.every("/sealing-keys"))
    if output is not Output.TABLE:
        emit(found, output)
        return
    titles = ("key", "provider", "realm", "environment", "agent", "token", "state")
    names = ("fingerprint", "provider", "realm", "environment", "agentId", "token")
    console().print(table(titles, [(*(str(one.get(name) or "") for name in names), _state(one)) for one in found]))


def _state(one: Mapping[str, Any]) -> str:
    if one.get("withdrawnAt"):
        return f"withdrawn {str(one['withdrawnAt'])[:19].replace('T', ' ')}"
    if not one.get("approved"):
        return "waits for approval"
    return "in use" if one.get("alive") else "gone"


def rotate_key(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id, as `fractal agent keys` lists it.")],
    reason: Reason = "rotated",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Replace an agent's sealing key: what was sealed to the old one is revoked and provided anew.

    The agent makes the new key by itself. One that was given its key (FRACTAL_SEALING_KEY) needs another from you.
    """
    done = _post(f"/agents/{quote(agent, safe='')}/rotate-key", reason, url, token)
    _show(done, output)
    if output is Output.TABLE:
        typer.echo("The agent makes a new key, unless FRACTAL_SEALING_KEY holds it: then set another, and restart it.")


def withdraw_key(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its fingerprint, as `fractal agent keys` lists it.")],
    reason: Reason = "withdrawn",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Withdraw a sealing key of any agent, gone ones too: what was sealed to it is revoked and provided anew."""
    _show(_post(f"/sealing-keys/{quote(key, safe='')}/withdraw", reason, url, token), output)


def _post(path: str, reason: str, url: str, token: str) -> Any:
    from fractal_cloud.cli.client import connect

    with connect(url, token) as control:
        return control.post(path, {"reason": reason})


def _show(done: Any, output: Output) -> None:
    from fractal_cloud.cli.output import emit, say

    if output is not Output.TABLE:
        emit(done, output)
        return
    realms = ", ".join(f"{one['provider']} {one['realm']}" for one in done["realms"])
    say(f"Key {done['fingerprint']} of {realms} is withdrawn.")
    say("What was sealed to it is revoked at its target and provided anew: `fractal events` shows each.")
