"""`fractal agent list`, `approve` and `withdraw-approval`, `fractal environment`: who is let in, and who has to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from fractal_cloud.cli.options import DEFAULT_URL, Output, OutputOption, Token, Url

environment_app = typer.Typer(
    help="See and set whether new agents of an environment need approval.", no_args_is_help=True
)


def every(output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Show all agents that were heard of lately, and those that wait for approval."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import console, emit, say, table

    with connect(url, token) as control:
        found, waiting = list(control.every("/agents")), list(control.every("/approvals"))
    if output is not Output.TABLE:
        emit({"agents": found, "waiting": waiting}, output)
        return
    console().print(table(("agent", "environment", "token", "key", "alive", "reaches"), [_agent(one) for one in found]))
    if waiting:
        say("")
        say("Waiting for approval; nothing is leased or sealed to them before `fractal agent approve AGENT`:")
        console().print(table(("agent", "environment", "token", "key", "waits at"), _waiting(waiting)))


def _agent(one: Mapping[str, Any]) -> tuple[str, ...]:
    reaches = ", ".join(f"{reach['provider']} {reach['realm']}" for reach in one["reaches"])
    return one["id"], one["environment"], one["token"], one["key"][:12], "yes" if one["alive"] else "no", reaches


def _waiting(found: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    names = ("agentId", "environment", "token")
    return [
        (*(one[name] for name in names), one["key"][:12], f"{one['provider']} {one['realm']}".strip()) for one in found
    ]


def approve(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT|KEY", help="An agent's id, or its sealing key or fingerprint.")
    ],
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Approve an agent, or a key, at every realm where it waits. Check first whose token it came with."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    with connect(url, token) as control:
        done = control.post("/approvals", {"agent": agent})
    if output is not Output.TABLE:
        emit(done, output)
        return
    for one in done["approved"]:
        where = f"{one['provider']} {one['realm']}".strip()
        say(f"{one['agentId']} (token {one['token']}) is approved at {where} in {one['environment']}.")


def withdraw(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT|KEY", help="An agent's id, or its sealing key or fingerprint.")
    ],
    reason: Annotated[str, typer.Option("--reason", help="Why, for the events.")] = "withdrawn",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Withdraw the approval of an agent, or of a key: its leases end now, and nothing more is sealed to it.

    What was sealed to its key before, it can still open: `fractal agent withdraw-key` has that provided anew.
    """
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    with connect(url, token) as control:
        done = control.post("/approvals/withdraw", {"agent": agent, "reason": reason})
    if output is not Output.TABLE:
        emit(done, output)
        return
    for one in done["withdrawn"]:
        where = f"{one['provider']} {one['realm']}".strip()
        say(f"{one['agentId']} (token {one['token']}) waits for approval at {where} in {one['environment']}.")
    for key in sorted({one["key"] for one in done["withdrawn"] if one["key"]}):
        say(f"If its key may be known to others: fractal agent withdraw-key {key}")


@environment_app.command("list")
def environments(output: OutputOption = Output.TABLE, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Show the environments of which something was set."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import console, emit, table

    with connect(url, token) as control:
        found = list(control.every("/environments"))
    if output is not Output.TABLE:
        emit(found, output)
        return
    rows = [(one["name"], "required" if one["approveAgents"] else "not required") for one in found]
    console().print(table(("environment", "approval of agents"), rows))


@environment_app.command("set")
def set_environment(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The environment.")],
    approve_agents: Annotated[
        bool, typer.Option("--approve-agents/--no-approve-agents", help="Whether new agents and keys need approval.")
    ],
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Say whether new agents and keys of an environment wait until somebody approves them.

    Those that were there before are not new. Without approval, those that wait are let in.
    """
    from urllib.parse import quote

    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import emit, say

    with connect(url, token) as control:
        done = control.put(f"/environments/{quote(name, safe='')}", {"approveAgents": approve_agents})
    if output is not Output.TABLE:
        emit(done, output)
        return
    say(f"{name}: new agents and keys {'wait for approval' if approve_agents else 'need no approval'} from now on.")
    for one in done["approved"]:
        say(f"{one['agentId']} (token {one['token']}) is let in at {one['provider']} {one['realm']}.")
