"""`fractal glass`, `force-push` and `transfer`: taking a component over, handing it back, moving its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.options import DEFAULT_URL, ComponentId, LiveSystemId, Output, OutputOption, Token, Url
from fractal_cloud.cli.times import moment, point_in_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def glass(
    live_system: LiveSystemId,
    component: ComponentId,
    break_it: Annotated[
        bool, typer.Option("--break", help="Take it over now: the agent removes managed-by, where tags can change.")
    ] = False,
    readopt: Annotated[bool, typer.Option("--readopt", help="Hand it back now.")] = False,
    extend: Annotated[
        str, typer.Option("--extend", metavar="UNTIL", help="Give an override another end: 4h from now, or a date.")
    ] = "",
    hand_over: Annotated[
        str, typer.Option("--hand-over", metavar="NAME", help="Put an override in somebody else's name.")
    ] = "",
    reason: Annotated[
        str, typer.Option("--reason", help="Why, for all to see; with --break, --extend or --hand-over.")
    ] = "",
    until: Annotated[
        str,
        typer.Option("--until", help="Until when: a date, a time, or a span like 4h; with --break or --hand-over."),
    ] = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Show how to take a component over and to hand it back, or do it; or extend an override, or hand it over.

    The commands are those of the cloud's own command line, with this resource's id filled in. Where nobody can change a
    tag after creation, they are this program's own.
    """
    from fractal_cloud.cli.client import connect, path_of

    asked = {"break": break_it, "readopt": readopt, "extend": bool(extend), "handOver": bool(hand_over)}
    action = _action([name for name, is_asked in asked.items() if is_asked])
    _check_flags(action, reason, until)
    path = path_of(live_system, component, "glass")
    with connect(url, token) as control:
        if not action:
            _show_commands(control.get(path), output)
            return
        body: dict[str, Any] = {"action": action}
        if reason:
            body["reason"] = reason
        if until or extend:
            body["until"] = point_in_time("--extend" if extend else "--until", extend or until)
        if hand_over:
            body["to"] = hand_over
        answer = control.post(path, body)
    if output is not Output.TABLE:
        from fractal_cloud.cli.output import emit

        emit(answer, output)
    elif action in ("extend", "handOver"):
        _show_changed_override(component, answer)
    else:
        _show_request_made(component, answer, broken=break_it)


def _action(asked: Sequence[str]) -> str:
    """The one thing that is asked for, by the name the API has for it; empty where nothing is."""
    if len(asked) <= 1:
        return asked[0] if asked else ""
    if {"break", "readopt"} <= set(asked):
        raise CommandError("--break and --readopt are opposites", advice="Give one of them.", code=Exit.USAGE)
    raise CommandError(
        "--break, --readopt, --extend and --hand-over are one act each",
        advice="Give one of them. --hand-over takes --until too.",
        code=Exit.USAGE,
    )


def _check_flags(action: str, reason: str, until: str) -> None:
    if until and action == "extend":
        raise CommandError("--extend and --until both name the end", advice="Give --extend alone.", code=Exit.USAGE)
    if (reason or until) and action in ("", "readopt"):
        raise CommandError(
            "--reason and --until go with --break or --hand-over, --reason with --extend",
            advice="Add what is to be done.",
            code=Exit.USAGE,
        )


def _show_changed_override(component: str, answer: Mapping[str, Any]) -> None:
    """Print who holds it now and until when, and what it was before."""
    from fractal_cloud.cli.output import say

    now, before = answer["override"], answer["before"]
    if not answer["changed"]:
        say(f"{component}: nothing changed: it was {_held(now)} already.")
        return
    say(f"{component}: {_held(now)}; it was {_held(before)}.")
    if now["since"] is None:
        say("The override itself was asked for, and no agent has carried it out yet.")
    else:
        say("Nothing was written to the cloud: it stays in manual override, and the agent only reads it.")


def _held(override: Mapping[str, Any]) -> str:
    until = "without an end" if override["until"] is None else f"until {moment(override['until'])}"
    return f"held by {override['by'] or 'somebody unknown'} {until}"


def _show_request_made(component: str, answer: Any, *, broken: bool) -> None:
    from fractal_cloud.cli.output import say

    if broken and component in answer.get("alreadyInOverride", ()):
        _show_broken_again(component, answer)
    elif component in answer.get("tagsFrozen", ()):
        _show_frozen_tags_request(component, broken=broken)
    elif broken:
        say(f"{component}: asked for; the agent now removes managed-by, and then reads it and changes nothing.")
    else:
        say(f"{component}: asked for; the agent now takes it back and makes it as declared.")


def _show_broken_again(component: str, answer: Mapping[str, Any]) -> None:
    """Say that the glass was broken before, and by whom: what this changes is whose it is."""
    from fractal_cloud.cli.output import say

    before = answer["override"]
    say(
        f"{component}: already in manual override since {moment(before['since'])}, {_held(before)}. From now on it "
        "is in your name, with the reason and the end that you gave."
    )
    say("To change only the end or the name, use --extend or --hand-over.")


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
    titles = (
        ("Break the glass: after this the agent reads it and changes nothing", "break"),
        ("Re-adopt: after this the agent makes it as declared", "readopt"),
    )
    for title, key in titles if found["break"] or found["readopt"] else ():
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


def transfer(
    live_system: LiveSystemId,
    component: ComponentId,
    to: Annotated[str, typer.Option("--to", metavar="LS2", help="The LiveSystem that owns it from now on.")],
    reason: Annotated[str, typer.Option("--reason", help="Why, for all to see.")] = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Make another LiveSystem the owner of a component's resource.

    Both must declare it. The agent replaces the owner tag, and nothing else. The new owner shows for one cycle what it
    would change, before it changes anything.
    """
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.output import emit, say

    body = {"to": to, "reason": reason} if reason else {"to": to}
    with connect(url, token) as control:
        answer = control.post(path_of(live_system, component, "transfer"), body)
    if output is not Output.TABLE:
        emit(answer, output)
        return
    say(f"{component}: asked for; the agent now writes fractal-cloud-owner: {to} on {answer['resourceId']},")
    say(f"if it is still {live_system}'s by then. Afterwards {live_system} only reads it, and {to} shows for one cycle")
    say(f"what it would change. What came of it: fractal events {live_system}")
