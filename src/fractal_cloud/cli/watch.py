"""`fractal agents` and `fractal scopes`: who reads what, since when, and what nobody reads (C11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fractal_cloud.cli.options import DEFAULT_URL, Output, OutputOption, Token, Url

if TYPE_CHECKING:
    from rich.text import Text

_MOST_NAMED: Final = 3
OnlyStale = Annotated[bool, typer.Option("--stale", help="Only what was not read for two cycles.")]


def agents(
    stale: OnlyStale = False, output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = ""
) -> None:
    """Show all agents that were heard of lately: the dead first, then those whose scopes are not read."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    with connect(url, token) as control:
        found = [one for one in control.every("/agents") if one["stale"] or not stale]
    if output is not Output.TABLE:
        emit(found, output)
        return
    if not found:
        say("No agent is stale." if stale else "No agent has registered. `fractal agent --provider …` starts one.")
        return
    _print([(one["id"], _state(one), _of_agent(one)) for one in found])


def _print(found: Sequence[tuple[str, Text, Sequence[str]]]) -> None:
    """Each thing in one line, its state first, and what else is known of it below, as wide as the terminal."""
    from rich.padding import Padding

    from fractal_cloud.cli.output import console, plain

    out = console()
    width = max(len(state) for _, state, _ in found)
    for name, state, lines in found:
        out.print(state, plain(f"{' ' * (width - len(state))} {name}"), overflow="fold")
        for line in lines:
            out.print(Padding(plain(line), (0, 0, 0, 4)))


def _of_agent(one: Mapping[str, Any]) -> list[str]:
    environments = ", ".join(one["environments"] or [one["environment"]])
    scopes = _counted(one["scopes"], "scope") + (f", {one['staleScopes']} stale" if one["staleScopes"] else "")
    facts = [f"version {one['version'] or 'unknown'}", f"environment {environments}", scopes]
    return ["; ".join([*facts, f"last cycle {_since(one['lastCycle'])}"]), f"reaches {_realms(one['reaches'])}"]


def _realms(reaches: Iterable[Mapping[str, str]]) -> str:
    """The realms by provider, each once; of many, how many there are."""
    by_provider: dict[str, dict[str, None]] = {}
    for reach in reaches:
        by_provider.setdefault(reach["provider"], {})[reach["realm"]] = None
    named = [
        f"{provider} {', '.join(realms)}" if len(realms) <= _MOST_NAMED else f"{provider} ({len(realms)} realms)"
        for provider, realms in by_provider.items()
    ]
    return "; ".join(named) or "nothing"


def _state(one: Mapping[str, Any]) -> Text:
    from fractal_cloud.cli.output import STALE, plain

    if not one["alive"]:
        return plain(f"dead: last seen {_since(one['lastSeen'])}", "bold red")
    if one["stale"]:
        return plain(f"stale: last seen {_since(one['lastSeen'])}", STALE)
    return plain("alive", "green")


def scopes(
    stale: OnlyStale = False, output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = ""
) -> None:
    """Show all scopes with components: account, place, who reads them, and how the last cycle went; the stale first."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    with connect(url, token) as control:
        found = [one for one in control.every("/scopes") if one["stale"] or not stale]
    if output is not Output.TABLE:
        emit(found, output)
        return
    if not found:
        say("No scope is stale." if stale else "No agent has reached anything that is declared yet.")
        return
    _print([(f"{one['provider']} {one['realm']} {one['place']}", _read(one), _of_scope(one)) for one in found])


def _read(one: Mapping[str, Any]) -> Text:
    from fractal_cloud.cli.output import STALE, plain
    from fractal_cloud.cli.output import stale as stale_words

    if one["stale"]:
        return plain(stale_words(one), STALE)
    return plain("not read yet" if one["lastRead"] is None else f"read {_since(one['lastRead'])}")


def _counted(many: int, noun: str) -> str:
    return f"{many} {noun}" if many == 1 else f"{many} {noun}s"


def _of_scope(one: Mapping[str, Any]) -> list[str]:
    holder = one["holder"] or (f"{one['lastHolder']}, which is dead" if one["lastHolder"] else "nobody")
    said = [f"held by {holder}", _counted(one["components"], "component")]
    cycle = one["lastCycle"]
    if cycle is not None:
        more = "".join(f", {_counted(cycle[f'{noun}s'], noun)}" for noun in ("throttle", "error") if cycle[f"{noun}s"])
        said.append(f"last cycle {cycle['seconds']:.1f} s, {_counted(cycle['calls'], 'call')}{more}")
    if one["unread"]:
        said.append(f"not read: {', '.join(name.rpartition('.')[2] for name in one['unread'])}")
    return ["; ".join(said)]


def _since(at: str | None) -> str:
    from datetime import UTC, datetime

    from fractal_cloud.rules.staleness import ago

    return "never" if at is None else ago(datetime.fromisoformat(at), datetime.now(UTC))
