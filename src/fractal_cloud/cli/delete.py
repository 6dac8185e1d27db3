"""`fractal delete`: what goes, what stays and who will miss it is shown before anything is asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.options import DEFAULT_TIMEOUT, DEFAULT_URL, LiveSystemId, Timeout, Token, Url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fractal_cloud.cli.client import ControlPlane


_STYLES = {"deleted": "red", "left": "yellow", "unknown": "bold red"}


def delete(
    live_system: LiveSystemId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress; exit 0 only when all is gone.")] = False,
    forget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMPONENT", help="End the deletion of this component without proof; its resource is left."
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="With --forget: why nobody can confirm that it is gone.")] = "",
    timeout: Timeout = DEFAULT_TIMEOUT,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Delete a LiveSystem and what it owns.

    What goes, what stays and who will miss it is shown first.
    """
    from fractal_cloud.cli import waiting
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.output import say

    if forget and not reason.strip():
        raise CommandError(
            "--forget needs a reason, which stands in the result and the events",
            advice=f'Say why: fractal delete {live_system} --forget {forget[0]} --reason "the account is closed"',
            code=Exit.USAGE,
        )
    with connect(url, token) as control:
        if forget:
            _forget(control, live_system, forget, reason)
            return
        _show_preview(live_system, control.delete(path_of(live_system), dryRun="true"))
        if dry_run:
            return
        if not yes:
            _ask(live_system)
        answer = control.delete(path_of(live_system))
        say(f"{live_system}: being deleted, mutation {answer['mutationId']}")
        if wait:
            waiting.wait(control, [waiting.Awaited(live_system, str(answer["mutationId"]))], timeout)


def _forget(control: ControlPlane, live_system: str, components: list[str], reason: str) -> None:
    from fractal_cloud.cli.client import path_of
    from fractal_cloud.cli.output import say

    control.delete(path_of(live_system), forget=components, reason=reason)
    named = ", ".join(components)
    say(f"{live_system}: the deletion of {named} has ended: left, not confirmed. Nothing was written to the cloud.")


def _ask(live_system: str) -> None:
    if not sys.stdin.isatty():
        raise CommandError(
            "nobody is there to answer, so nothing was deleted",
            advice=f"Say that you have seen the above: fractal delete {live_system} --yes",
            code=Exit.USAGE,
        )
    if not typer.confirm(f"Delete {live_system}?"):
        raise CommandError("nothing was deleted")


def _show_preview(live_system: str, found: Mapping[str, Any]) -> None:
    from fractal_cloud.cli.output import console, plain, say, table, warn

    rows = [
        (item["componentId"], plain(item["ending"], _STYLES.get(item["ending"], "")), _remarks(item))
        for item in found.get("preview", found).get("components") or []
    ]
    if rows:
        title = f"Deleting {live_system} would do this"
        console().print(table(("component", "what becomes of it", "why"), rows, title))
    else:
        say(f"{live_system} has no components.")
    for warning in found.get("warnings") or []:
        warn(warning)


def _remarks(item: Mapping[str, Any]) -> str:
    lines = [str(item["message"])] if item.get("message") else []
    if item.get("holdsData"):
        lines.append("holds data")
    for key, words in (("importers", "imported by"), ("brokenLinks", "breaks links of")):
        if item.get(key):
            lines.append(f"{words} {', '.join(str(name) for name in item[key])}")
    return "\n".join(lines)
