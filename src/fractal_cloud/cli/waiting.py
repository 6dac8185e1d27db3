"""Waiting for mutations and showing how they come along: a live table on a terminal, lines of changes elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.live import Live

from fractal_cloud.cli.client import ControlPlane, path_of
from fractal_cloud.cli.errors import CommandError
from fractal_cloud.cli.output import console, plain, say, status, table

POLL_SECONDS = 0.5
LINK_SECONDS = 10.0
"""How long links are waited for after all components are there: some wait for people, and hold nothing up (C8)."""
_WRONG = ("Failed", "Missing")

Mutation = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Awaited:
    """One mutation somebody waits for."""

    live_system_id: str
    mutation_id: str


class Progress(Protocol):
    """Where news of mutations go."""

    def show(self, mutations: Sequence[Mutation]) -> None:
        """Show where they stand now."""


@dataclass
class Lines:
    """One line per change, for logs and pipes."""

    say: Callable[[str], None] = say
    _last: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def show(self, mutations: Sequence[Mutation]) -> None:
        """Print what changed since the last time."""
        for mutation in mutations:
            for name, component in components_of(mutation):
                now = (str(component.get("status", "")), str(component.get("message") or ""))
                key = (str(mutation.get("liveSystemId", "")), name)
                if self._last.get(key) != now:
                    self._last[key] = now
                    self.say(f"{key[0]}/{name}  {now[0]}" + (f"  {now[1]}" if now[1] else ""))


@dataclass
class Tables:
    """A table that is drawn anew in its place."""

    live: Live

    def show(self, mutations: Sequence[Mutation]) -> None:
        """Draw it."""
        self.live.update(Group(*(_table(mutation) for mutation in mutations)), refresh=True)


def _table(mutation: Mutation) -> RenderableType:
    rows = [
        (name, status(component.get("status", "")), component.get("message") or "")
        for name, component in components_of(mutation)
    ]
    return table(("component", "status", "message"), rows, f"{mutation.get('liveSystemId')}: {mutation.get('status')}")


def components_of(mutation: Mutation) -> list[tuple[str, Mapping[str, Any]]]:
    """The components of a mutation's record, by their short ids."""
    return [(str(found.get("componentId", name)), found) for name, found in (mutation.get("components") or {}).items()]


def wait(control: ControlPlane, awaited: Sequence[Awaited], timeout: float) -> list[Mutation]:
    """Show progress until every mutation has ended. Raises unless all are completed, naming what is wrong."""
    out = console()
    if not out.is_terminal:
        found = _follow(control, awaited, timeout, Lines())
    else:
        with Live(console=out, auto_refresh=False) as live:
            found = _follow(control, awaited, timeout, Tables(live))
    _print_outcome(found, timeout)
    return found


def _follow(control: ControlPlane, awaited: Sequence[Awaited], timeout: float, progress: Progress) -> list[Mutation]:
    deadline = time.monotonic() + timeout
    completed: float | None = None
    while True:
        found: list[Mutation] = [
            control.get(path_of(one.live_system_id, "", "mutations", one.mutation_id)) for one in awaited
        ]
        progress.show(found)
        now = time.monotonic()
        if all(mutation["status"] != "InProgress" for mutation in found):
            completed = completed or now
            if now >= completed + LINK_SECONDS or not any(mutation.get("linksWaiting") for mutation in found):
                return found
        if now >= deadline:
            return found
        time.sleep(min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))


def _print_outcome(mutations: Sequence[Mutation], timeout: float) -> None:
    """Print what was left as it is, and what still waits; raises where a mutation did not complete."""
    for mutation in mutations:
        for name in mutation.get("heldByOverride") or []:
            console().print(plain(f"{name} is in manual override: it was left as it is", "yellow"), soft_wrap=True)
        for link in mutation.get("linksWaiting") or []:
            console().print(plain(f"waits: {link}", "yellow"), soft_wrap=True)
    bad = [mutation for mutation in mutations if mutation["status"] != "Completed"]
    if not bad:
        return
    raise CommandError(
        "; ".join(_failure_text(mutation, timeout) for mutation in bad),
        details=[line for mutation in bad for line in _failure_reasons(mutation)],
        advice="The agents go on trying; `fractal status LS` shows where they stand.",
    )


def _failure_text(mutation: Mutation, timeout: float) -> str:
    name = mutation.get("liveSystemId")
    if mutation["status"] == "InProgress":
        return f"{name}: not settled within {timeout:g} s"
    if mutation["status"] == "Cancelled":
        return f"{name}: a newer deploy or delete took its place"
    return f"{name}: {mutation['status']}"


def _failure_reasons(mutation: Mutation) -> list[str]:
    """Why a mutation failed, as the control plane says it; else a line for each component that is still on its way."""
    if mutation["status"] == "Failed" and mutation.get("reasons"):
        return [str(reason) for reason in mutation["reasons"]]
    found = components_of(mutation)
    wrong = [item for item in found if item[1].get("status") in _WRONG]
    under_way = [item for item in found if item[1].get("status") not in ("Active", "ExternallyManaged", "Deleted")]
    return [
        f"{name}: {component.get('status')}: {component.get('message') or 'no message'}"
        for name, component in wrong or under_way
    ]
