"""`fractal status`, `fractal drift` and `fractal events`: reading, which changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fractal_cloud.cli.options import DEFAULT_URL, LiveSystemId, Output, OutputOption, Token, Url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fractal_cloud.rules.diff_words import Line

SomeLiveSystem = Annotated[str, typer.Argument(metavar="LS", help="Id of the LiveSystem; without it, all.")]
SomeComponent = Annotated[str, typer.Argument(metavar="COMPONENT", help="Id of one component.")]
Wide = Annotated[bool, typer.Option("--wide", help="One whole line each, however long; as in a pipe.")]

_WIDEST: Final = 30
_MOST_WAYS_BACK: Final = 5


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
    rows = [(one["id"], one.get("environment"), coloured(one.get("status", ""), one), _counts(one)) for one in found]
    console().print(table(("LiveSystem", "environment", "status", "components"), rows))


def _counts(one: Mapping[str, Any]) -> str:
    counts = [f"{count} {word}" for word, count in (one.get("counts") or {}).items()]
    return ", ".join([*counts, f"{one['staleComponents']} stale"] if one.get("stale") else counts)


def _show_live_system(found: Mapping[str, Any]) -> None:
    """Each component in one line; what does not fit there, and what differs, below it as wide as the terminal."""
    from rich.padding import Padding

    from fractal_cloud.cli.output import console, plain, say
    from fractal_cloud.cli.output import status as coloured

    out = console()
    title = plain(f"{found['id']}: ", "bold")
    is_stale = bool(found.get("stale"))
    word = found.get("status", "")
    out.print(title.append_text(coloured(word, found) if is_stale else plain(word, "bold")))
    components = found["components"]
    rows = [(one["componentId"], _short(one["type"]), coloured(one["status"], one)) for one in components]
    names = ("component", "type", "status")
    widths = [min(_WIDEST, max(len(str(row[at])) for row in (names, *rows))) for at in range(3)]
    if rows:
        heading = "   ".join(f"{name:<{width}}" for name, width in zip(names, widths, strict=True))
        out.print(plain(f"{heading}   message", "bold"), overflow="fold")
        out.print(plain("─" * min(out.width, len(heading) + 20)))
    for one, (component_id, kind, status_word) in zip(components, rows, strict=True):
        head = plain(f"{component_id:<{widths[0]}}   {kind:<{widths[1]}}   ").append_text(status_word)
        head.append(" " * (widths[2] - len(status_word)))
        said = _message_and_drift(one)
        if len(said) == 1 and head.cell_len + 3 + len(said[0]) <= out.width:
            head.append_text(plain(f"   {said.pop()}"))
        head.rstrip()
        out.print(head, overflow="fold")
        for line in said:
            out.print(Padding(plain(line), (0, 0, 0, 4), expand=False))
    held = [one["componentId"] for one in components if one["status"] == "ManualOverride" and one["override"]]
    for component_id in held[:_MOST_WAYS_BACK]:
        say(f"To hand {component_id} back: fractal glass {found['id']} {component_id} --readopt")
    if len(held) > _MOST_WAYS_BACK:
        say(f"and {len(held) - _MOST_WAYS_BACK} more in override, handed back the same way")


def _short(kind: str) -> str:
    return kind.rpartition(".")[2]


def _message_and_drift(component: Mapping[str, Any]) -> list[str]:
    said = [str(component["message"])] if component.get("message") else []
    return said + [str(line) for line in _drift(component)]


def _drift(component: Mapping[str, Any]) -> list[Line]:
    """The cloud against the declaration: ``+`` is only in the cloud, ``-`` is only declared."""
    from fractal_cloud.rules.diff_words import lines_of

    return list(lines_of((component.get("outputFields") or {}).get("drift") or {}))


def _show_component(found: Mapping[str, Any]) -> None:
    from fractal_cloud.cli.output import compact, console, say, table
    from fractal_cloud.cli.output import status as coloured
    from fractal_cloud.rules.diff_words import rows_of
    from fractal_cloud.rules.status_words import in_words
    from fractal_cloud.rules.words import generation_applied

    rows: list[tuple[object, object]] = [
        ("status", coloured(found["status"], found)),
        ("message", found.get("message") or ""),
        ("type", found["type"]),
        ("owner", found.get("owner") or "nobody"),
        ("generation", generation_applied(found["generation"], found["observedGeneration"], found["status"])),
        ("last updated", found.get("lastUpdated") or ""),
        ("last read", found.get("lastRead") or "never"),
    ]
    rows += [(f"override: {key}", value) for key, value in (found.get("override") or {}).items() if value]
    out = console()
    say(in_words(found, datetime.now(UTC)))
    out.print(table(("", ""), rows, str(found.get("id", ""))))
    fields = {key: value for key, value in (found.get("outputFields") or {}).items() if key != "drift"}
    if fields:
        out.print(table(("output field", "value"), [(key, compact(value)) for key, value in fields.items()]))
    lines = _drift(found)
    if lines:
        out.print(table(("drift", "declared", "actual"), rows_of(found["outputFields"]["drift"])))
        _explain_signs(lines)


def _explain_signs(lines: Iterable[Line]) -> None:
    from fractal_cloud.cli.output import say
    from fractal_cloud.rules.diff_words import IN_DRIFT

    if any(line.sign != "~" for line in lines):
        say(IN_DRIFT)


def drift(
    live_system: LiveSystemId, output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = ""
) -> None:
    """Show where the cloud differs from what a LiveSystem declares."""
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.output import console, emit, say, table
    from fractal_cloud.cli.output import status as coloured
    from fractal_cloud.rules.diff_words import rows_of

    with connect(url, token) as control:
        found = list(control.every(f"{path_of(live_system)}/components"))
    drifted = [one for one in found if (one.get("outputFields") or {}).get("drift")]
    if output is not Output.TABLE:
        emit({one["componentId"]: one["outputFields"]["drift"] for one in drifted}, output)
    elif not drifted:
        say(f"{live_system}: no drift")
    else:
        rows = [
            (one["componentId"], coloured(one["status"], one), *row)
            for one in drifted
            for row in rows_of(one["outputFields"]["drift"])
        ]
        console().print(table(("component", "status", "parameter", "declared", "actual"), rows, live_system))
        _explain_signs(line for one in drifted for line in _drift(one))
        if any(one["status"] == "ManualOverride" for one in drifted):
            say(f"`fractal absorb FILE {live_system}` writes what is in override into its declaration, to keep it.")


def events(
    live_system: SomeLiveSystem = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with events as they happen.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many of the newest to show.")] = 50,
    wide: Wide = False,
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Show what happened to a LiveSystem, the newest last."""
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.event_lines import columns
    from fractal_cloud.cli.following import follow as follow_on
    from fractal_cloud.cli.output import emit, say

    path = f"{path_of(live_system)}/events" if live_system else "/events"
    with connect(url, token) as control:
        found = list(control.every(path, limit))[::-1]
        if not follow and output is not Output.TABLE:
            emit(found, output)
        elif not follow and not found:
            say("Nothing has happened yet.")
        seen = max((int(event["seq"]) for event in found), default=0)
        if _is_grouped(output, wide=wide):
            _print_acts(found, with_live_system=not live_system)
        elif output is Output.TABLE and not follow and found:
            for line in columns(found, with_live_system=not live_system):
                say(line)
        for event in found if follow and not _is_grouped(output, wide=wide) else ():
            _print_event(event, output, wide=wide, with_live_system=not live_system)
        for event in follow_on(control, path, seen) if follow else ():
            _print_event(event, output, wide=wide, with_live_system=not live_system)


def _is_grouped(output: Output, *, wide: bool) -> bool:
    """Whether a person reads it: programs, pipes and ``--wide`` get every event."""
    from fractal_cloud.cli.output import console

    return output is Output.TABLE and not wide and console().is_terminal


def _print_acts(found: Sequence[Mapping[str, Any]], *, with_live_system: bool) -> None:
    """One entry per act, the newest last."""
    from fractal_cloud.cli.output import say
    from fractal_cloud.rules.acts import acts

    for act in reversed(acts(found)):
        _print_event(act.summary, Output.TABLE, wide=False, with_live_system=with_live_system)
        if act.rest:
            many = f" of {act.components} components" if act.components > 1 else ""
            say(f"    {len(act.events)} events{many}; --wide shows each")


def _print_event(event: Mapping[str, Any], output: Output, *, wide: bool, with_live_system: bool) -> None:
    from fractal_cloud.cli.event_lines import one_line, short_lines
    from fractal_cloud.cli.output import STYLES, console, emit, json_text, plain, say

    out = console()
    if output is Output.JSON:
        sys.stdout.write(json_text(event) + "\n")
    elif output is Output.YAML:
        sys.stdout.write("---\n")
        emit(event, output)
    elif wide or not out.is_terminal:
        say(one_line(event, with_live_system=with_live_system))
    else:
        head, *rest = short_lines(event, out.width, with_live_system=with_live_system)
        out.print(plain(head, STYLES.get(str(event.get("after")), "")), soft_wrap=True)
        for line in rest:
            out.print(plain(line), soft_wrap=True)
    sys.stdout.flush()
