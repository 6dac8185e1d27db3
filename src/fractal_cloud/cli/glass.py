"""`fractal glass` and `fractal force-push`: taking a component over, and handing it back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.options import DEFAULT_URL, ComponentId, LiveSystemId, Output, OutputOption, Token, Url

if TYPE_CHECKING:
    from collections.abc import Mapping

_SPANS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def glass(
    live_system: LiveSystemId,
    component: ComponentId,
    break_it: Annotated[
        bool, typer.Option("--break", help="Take it over now: the agent removes managed-by, where tags can change.")
    ] = False,
    readopt: Annotated[bool, typer.Option("--readopt", help="Hand it back now.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why, for all to see; with --break.")] = "",
    until: Annotated[
        str, typer.Option("--until", help="Until when: a date, a time, or a span like 4h or 3d; with --break.")
    ] = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Show how to take a component over and to hand it back, or do it.

    The commands are those of the cloud's own command line, with this resource's id filled in. Where nobody can change a
    tag after creation, they are this program's own.
    """
    from fractal_cloud.cli.client import connect, path_of

    if break_it and readopt:
        raise CommandError("--break and --readopt are opposites", advice="Give one of them.", code=Exit.USAGE)
    if (reason or until) and not break_it:
        raise CommandError("--reason and --until go with --break", advice="Add --break.", code=Exit.USAGE)
    path = path_of(live_system, component, "glass")
    body: dict[str, Any] = {"action": "break" if break_it else "readopt"}
    if reason:
        body["reason"] = reason
    if until:
        body["until"] = _point_in_time(until)
    with connect(url, token) as control:
        if break_it or readopt:
            answer = control.post(path, body)
            _show_request_made(component, answer, output, broken=break_it)
        else:
            _show_commands(control.get(path), output)


def _point_in_time(text: str) -> str:
    """A point in time as the API takes it; one without a zone is this machine's."""
    span = re.fullmatch(r"(\d{1,4})([mhdw])", text)
    if span:
        return (datetime.now(UTC) + timedelta(**{_SPANS[span[2]]: int(span[1])})).isoformat(timespec="seconds")
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="seconds")
    except ValueError:
        raise CommandError(
            f"--until is {text!r}",
            advice="Give a date (2030-01-31), a time (2030-01-31T18:00) or a span (30m, 4h, 3d, 2w).",
            code=Exit.USAGE,
        ) from None


def _show_request_made(component: str, answer: Any, output: Output, *, broken: bool) -> None:
    from fractal_cloud.cli.output import emit, say

    if output is not Output.TABLE:
        emit(answer, output)
    elif component in answer.get("tagsFrozen", ()):
        _show_frozen_tags_request(component, broken=broken)
    elif broken:
        say(f"{component}: asked for; the agent now removes managed-by, and then reads it and changes nothing.")
    else:
        say(f"{component}: asked for; the agent now takes it back and makes it as declared.")


def _show_frozen_tags_request(component: str, *, broken: bool) -> None:
    from fractal_cloud.cli.output import say

    if broken:
        say(
            f"{component}: asked for; its tags are frozen, so the control plane remembers it: "
            "nothing is written to the cloud, and the agent reads it and changes nothing."
        )
    else:
        say(f"{component}: asked for; the agent now makes it as declared, and then manages it again.")


def _show_commands(found: Mapping[str, Any], output: Output) -> None:
    from fractal_cloud.cli.output import console, emit, plain, say

    if output is not Output.TABLE:
        emit(found, output)
        return
    for title, key in (
        ("Break the glass: after this the agent reads it and changes nothing", "break"),
        ("Re-adopt: after this the agent makes it as declared", "readopt"),
    ):
        console().print(plain(title, "bold"))
        for command in found.get(key) or ["(there is no command for it)"]:
            say(f"  {command}")
    for remark in ("caveat", "message"):
        if found.get(remark):
            say(found[remark])


def force_push(
    live_system: LiveSystemId,
    component: Annotated[
        str, typer.Argument(metavar="COMPONENT", help="One component; without it, all in override.")
    ] = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Take back from manual override, and make as declared.

    Whatever was changed by hand is overwritten, on one component or on all that are in override.
    """
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.output import emit, say, warn

    with connect(url, token) as control:
        answer = control.post(path_of(live_system, component, "force-push"))
    if output is not Output.TABLE:
        emit(answer, output)
        return
    for name in answer["requested"]:
        stamps = "" if name in answer.get("tagsFrozen", ()) else "stamps the tags and "
        say(f"{name}: Force Push asked for; the agent {stamps}makes it as declared.")
    for refusal in answer["refused"]:
        warn(f"{refusal['componentId']} is left out: {refusal['reason']}")
