"""`fractal overrides`: everything that somebody holds by hand, the oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fractal_cloud.cli.options import DEFAULT_URL, Output, OutputOption, Token, Url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def overrides(
    overdue: Annotated[bool, typer.Option("--overdue", help="Only those whose end has passed.")] = False,
    mine: Annotated[bool, typer.Option("--mine", help="Only those in the name of your token.")] = False,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Show what is in manual override: who holds it, since and until when, why, and what differs."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit

    query: dict[str, Any] = {"sort": "override", "override": "overdue" if overdue else "true"}
    with connect(url, token) as control:
        if mine:
            query["by"] = control.get("/whoami")["name"]
        found = [_one(component) for component in control.every("/components", **query)]
    if output is not Output.TABLE:
        emit(found, output)
    else:
        _show(found, overdue=overdue, by=query.get("by", ""))


def _one(component: Mapping[str, Any]) -> dict[str, Any]:
    """What of a component says how it is held."""
    override = component["override"] or {}
    return {
        "liveSystemId": component["liveSystemId"],
        "componentId": component["componentId"],
        "environment": component["environment"],
        "status": component["status"],
        **{name: override.get(name) for name in ("by", "since", "until", "reason")},
        "overdue": component["overdue"],
        "drift": (component.get("outputFields") or {}).get("drift") or {},
    }


def _show(found: Sequence[Mapping[str, Any]], *, overdue: bool, by: str) -> None:
    from fractal_cloud.cli.output import console, say, table

    if not found:
        held = "is overdue" if overdue else "is in manual override"
        say(f"Nothing {held}{f' in the name of {by}' if by else ''}.")
        return
    columns = ("component", "held by", "since (UTC)", "until (UTC)", "why, and what differs")
    console().print(table(columns, [_row(one) for one in found]))
    first = found[0]
    say(f"To hand one back: fractal glass {first['liveSystemId']} {first['componentId']} --readopt")
    say("For longer, or to somebody else: --extend 4h, --hand-over NAME")


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    from fractal_cloud.rules.diff_words import lines_of

    drift = [str(line) for line in lines_of(one["drift"])]
    until = _moment(one["until"]) if one["until"] is not None else "no end"
    return (
        f"{one['liveSystemId']}/\n{one['componentId']}",
        one["by"] or "unknown",
        _moment(one["since"]),
        f"{until}\noverdue" if one["overdue"] else until,
        "\n".join([*([one["reason"]] if one["reason"] else []), *drift]) or "no reason given, nothing differs",
    )


def _moment(text: str) -> str:
    """A point in time on two short lines."""
    from fractal_cloud.cli.times import moment

    return moment(text).removesuffix(" UTC").replace(" ", "\n")
