"""`fractal plan` and `fractal deploy`: what a file declares, shown first or done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fractal_cloud.cli.errors import Exit
from fractal_cloud.cli.options import (
    DEFAULT_TIMEOUT,
    DEFAULT_URL,
    File,
    Only,
    Output,
    OutputOption,
    Timeout,
    Token,
    Url,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fractal_cloud.cli.client import ControlPlane
    from fractal_cloud.cli.files import Declared
    from fractal_cloud.rules.diff_words import Line

_MARKS = {
    "create": ("+", "green"),
    "change": ("~", "yellow"),
    "import": ("→", "cyan"),
    "delete": ("-", "red"),
    "drop": ("x", "magenta"),
    "leave": ("!", "yellow"),
    "fail": ("!", "bold red"),
    "unknown": ("?", "bold red"),
    "nothing": (" ", "dim"),
}
_SUMMARY = {
    "create": "to create",
    "change": "to change",
    "import": "to import",
    "delete": "to delete",
    "drop": "to drop",
    "leave": "left alone",
    "fail": "that would fail",
    "unknown": "unknown",
    "nothing": "as declared",
}
_VERDICTS = {
    "Completed": ("The deploy would complete.", "green"),
    "Failed": ("The deploy would fail:", "bold red"),
    "Unknown": ("Whether the deploy would complete is unknown: not every agent has answered.", "bold red"),
}


def plan(
    file: File,
    only: Only = None,
    output: OutputOption = Output.TABLE,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 3 if anything would change.")] = False,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Show what a deploy of FILE would do, and do nothing."""
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.files import load
    from fractal_cloud.cli.output import emit

    declared = load(file, only or ())
    with connect(url, token) as control:
        plans = [control.post(path_of(one.id, "", "plan"), one.document) for one in declared]
    if output is not Output.TABLE:
        emit(plans[0] if len(plans) == 1 else plans, output)
    else:
        for one, made in zip(declared, plans, strict=True):
            show_plan(one.id, made)
    if any(made["verdict"] != "Completed" for made in plans):
        raise typer.Exit(Exit.FAILED)
    if exit_code and any(made["hasChanges"] for made in plans):
        raise typer.Exit(Exit.CHANGES)


def show_plan(live_system_id: str, made: Mapping[str, Any]) -> None:
    """Print what a plan says of every component, and how many there are of each kind."""
    from fractal_cloud.cli.output import console, plain, table, warn
    from fractal_cloud.rules.diff_words import IN_PLAN

    rows = []
    counts: dict[str, int] = {}
    for item in made.get("components", []):
        action = str(item["action"])
        counts[action] = counts.get(action, 0) + 1
        mark, style = _MARKS.get(action, ("?", ""))
        rows.append((plain(f"{mark} {action}", style), item["componentId"], "\n".join(_plan_lines(item))))
    out = console()
    out.print(table(("action", "component", "what and why"), rows, live_system_id))
    if any(line.sign != "~" for item in made.get("components", []) for line in _changes(item)):
        out.print(plain(IN_PLAN))
    parts = [f"{counts[action]} {words}" for action, words in _SUMMARY.items() if action in counts]
    out.print(plain(", ".join(parts) or "nothing is declared"))
    for warning in made.get("warnings") or []:
        warn(warning)
    words, style = _VERDICTS[str(made["verdict"])]
    out.print(plain(words, style))
    for reason in made.get("reasons") or []:
        out.print(plain(f"  {reason}", style), soft_wrap=True)


def _plan_lines(item: Mapping[str, Any]) -> Iterator[str]:
    if item.get("message"):
        yield str(item["message"])
    yield from map(str, _changes(item))
    for path, values in (item.get("found") or {}).items():
        yield f"    {path} finds {', '.join(map(str, values))}"
    yield from _link_lines(item.get("links") or [])
    for warning in item.get("warnings") or []:
        yield f"warning: {warning}"


def _changes(item: Mapping[str, Any]) -> Iterator[Line]:
    """What would be written: ``+`` is added to the cloud, ``-`` is removed from it."""
    from fractal_cloud.rules.diff_words import plan_lines

    for name, change in (item.get("changes") or {}).items():
        yield from plan_lines(name, change.get("declared"), change.get("actual"))


def _link_lines(links: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What would become of its links; those that stay as they are, and wait for nothing, are not worth a line."""
    from fractal_cloud.cli.output import compact

    for link in links:
        if link["action"] == "nothing" and not link["waits"]:
            continue
        lines = [f"link to {link['target']}: {link['action'] if link['action'] != 'nothing' else 'as it is'}"]
        for name, change in link["changes"].items():
            both = {"add": (change["declared"],), "remove": (change["actual"],)}
            values = both.get(link["action"], (change["actual"], change["declared"]))
            lines.append(f"{name}: {' → '.join(map(compact, values))}")
        yield ", ".join(lines) + (f"; waits: {link['waits']}" if link["waits"] else "")


def deploy(
    file: File,
    only: Only = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress; exit 0 only when all is settled.")] = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Deploy what FILE declares. Nothing is stored if anything of it is refused."""
    from fractal_cloud.cli import waiting
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.files import load

    declared = load(file, only or ())
    with connect(url, token) as control:
        awaited = [_put(control, one) for one in declared]
        if wait:
            waiting.wait(control, [waiting.Awaited(*one) for one in awaited], timeout)


def _put(control: ControlPlane, one: Declared) -> tuple[str, str]:
    from fractal_cloud.cli.client import path_of
    from fractal_cloud.cli.errors import CommandError
    from fractal_cloud.cli.output import say, warn

    try:
        answer = control.put(path_of(one.id), one.document)
    except CommandError as error:
        error.cause = f"{one.source}: {error.cause}"
        raise
    say(f"{one.id}: deployed as mutation {answer['mutationId']}")
    for warning in answer.get("warnings") or []:
        warn(warning)
    return one.id, str(answer["mutationId"])
