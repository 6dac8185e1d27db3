"""`fractal status`, `fractal drift` and `fractal events`: reading, which changes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fractal_cloud.cli.options import DEFAULT_URL, LiveSystemId, Output, OutputOption, Token, Url

if TYPE_CHECKING:
    from rich.text import Text

SomeLiveSystem = Annotated[str, typer.Argument(metavar="LS", help="Id of the LiveSystem; without it, all.")]
SomeComponent = Annotated[str, typer.Argument(metavar="COMPONENT", help="Id of one component.")]


def status(
    live_system: SomeLiveSystem = "",
    component: SomeComponent = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Show how a LiveSystem, or one of its components, is doing."""
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.output import emit

    with connect(url, token) as control:
        if not live_system:
            found: Any = list(control.every("/livesystems"))
        elif component:
            found = control.get(path_of(live_system, component))
        else:
            found = control.get(path_of(live_system))
            found["components"] = list(control.every(f"{path_of(live_system)}/components"))
    if output is not Output.TABLE:
        emit(found, output)
    elif not live_system:
        _show_all(found)
    elif component:
        _show_component(found)
    else:
        _show_live_system(found)


def _show_all(found: list[Mapping[str, Any]]) -> None:
    from fractal_cloud.cli.output import console, say, table
    from fractal_cloud.cli.output import status as coloured

    if not found:
        say("No LiveSystem is deployed. `fractal deploy FILE` deploys one.")
        return
    rows = [(one["id"], one.get("environment"), coloured(one.get("status", "")), _counts(one)) for one in found]
    console().print(table(("LiveSystem", "environment", "status", "components"), rows))


def _counts(one: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {word}" for word, count in (one.get("counts") or {}).items())


def _show_live_system(found: Mapping[str, Any]) -> None:
    from fractal_cloud.cli.output import console, table
    from fractal_cloud.cli.output import status as coloured

    rows = [
        (one["componentId"], _short(one["type"]), coloured(one["status"]), _message_and_drift(one))
        for one in found["components"]
    ]
    title = f"{found['id']}: {found.get('status', '')}"
    console().print(table(("component", "type", "status", "message"), rows, title))


def _short(kind: str) -> str:
    return kind.rpartition(".")[2]


def _message_and_drift(component: Mapping[str, Any]) -> str:
    lines = [str(component["message"])] if component.get("message") else []
    lines += [f"{name}: declared {declared}, actual {actual}" for name, declared, actual in _drift(component)]
    return "\n".join(lines)


def _drift(component: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    from fractal_cloud.cli.output import compact

    found = (component.get("outputFields") or {}).get("drift") or {}
    return [(name, compact(one.get("declared")), compact(one.get("actual"))) for name, one in found.items()]


def _show_component(found: Mapping[str, Any]) -> None:
    from fractal_cloud.cli.output import compact, console, table
    from fractal_cloud.cli.output import status as coloured
    from fractal_cloud.rules.words import generation_applied

    rows: list[tuple[object, object]] = [
        ("status", coloured(found["status"])),
        ("message", found.get("message") or ""),
        ("type", found["type"]),
        ("owner", found.get("owner") or "nobody"),
        ("generation", generation_applied(found["generation"], found["observedGeneration"], found["status"])),
        ("last updated", found.get("lastUpdated") or ""),
    ]
    rows += [(f"override: {key}", value) for key, value in (found.get("override") or {}).items() if value]
    out = console()
    out.print(table(("", ""), rows, str(found.get("id", ""))))
    fields = {key: value for key, value in (found.get("outputFields") or {}).items() if key != "drift"}
    if fields:
        out.print(table(("output field", "value"), [(key, compact(value)) for key, value in fields.items()]))
    if _drift(found):
        out.print(table(("drift", "declared", "actual"), _drift(found)))


def drift(
    live_system: LiveSystemId, output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = ""
) -> None:
    """Show where the cloud differs from what a LiveSystem declares."""
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.output import console, emit, say, table
    from fractal_cloud.cli.output import status as coloured

    with connect(url, token) as control:
        found = list(control.every(f"{path_of(live_system)}/components"))
    drifted = [one for one in found if (one.get("outputFields") or {}).get("drift")]
    if output is not Output.TABLE:
        emit({one["componentId"]: one["outputFields"]["drift"] for one in drifted}, output)
    elif not drifted:
        say(f"{live_system}: no drift")
    else:
        rows = [(one["componentId"], coloured(one["status"]), *line) for one in drifted for line in _drift(one)]
        console().print(table(("component", "status", "parameter", "declared", "actual"), rows, live_system))
        if any(one["status"] == "ManualOverride" for one in drifted):
            say(f"`fractal absorb FILE {live_system}` writes what is in override into its declaration, to keep it.")


def events(
    live_system: SomeLiveSystem = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with events as they happen.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many of the newest to show.")] = 50,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Show what happened to a LiveSystem, the newest last."""
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.following import follow as follow_on
    from fractal_cloud.cli.output import console, emit, say, table

    path = f"{path_of(live_system)}/events" if live_system else "/events"
    with connect(url, token) as control:
        found = list(control.every(path, limit))[::-1]
        if not follow:
            if output is not Output.TABLE:
                emit(found, output)
            elif not found:
                say("Nothing has happened yet.")
            else:
                console().print(table(("when", "what", "who", "where and why"), [_row(event) for event in found]))
            return
        seen = 0
        for event in found:
            _print_event(event, output)
            seen = max(seen, int(event["seq"]))
        for event in follow_on(control, path, seen):
            _print_event(event, output)


def _row(event: Mapping[str, Any]) -> tuple[object, ...]:
    return _time_text(event), _kind(event), event.get("by") or "", _event_text(event)


def _kind(event: Mapping[str, Any]) -> Text:
    from fractal_cloud.cli.output import STYLES, plain

    return plain(event.get("kind", ""), STYLES.get(str(event.get("after")), ""))


def _time_text(event: Mapping[str, Any]) -> str:
    return str(event.get("at", ""))[:19].replace("T", " ")


def _event_text(event: Mapping[str, Any]) -> str:
    where = event.get("componentId") or event.get("liveSystemId") or ""
    change = f" {event['before']} → {event['after']}" if _is_text(event, "before") and _is_text(event, "after") else ""
    message = f": {event['message']}" if event.get("message") else ""
    return f"{where}{change}{message}"


def _is_text(event: Mapping[str, Any], key: str) -> bool:
    return isinstance(event.get(key), str)


def _print_event(event: Mapping[str, Any], output: Output) -> None:
    from fractal_cloud.cli.output import emit, say

    if output is Output.JSON:
        sys.stdout.write(json.dumps(event, ensure_ascii=False) + "\n")
    elif output is Output.YAML:
        sys.stdout.write("---\n")
        emit(event, output)
    else:
        say(
            f"{_time_text(event)}  {event.get('kind', '')}  {_event_text(event)}"
            + (f"  by {event['by']}" if event.get("by") else "")
        )
    sys.stdout.flush()
