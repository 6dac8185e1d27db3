"""`fractal restored`: a backup of the control plane's database was restored; what it remembers is no truth (C9)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_URL,
    DatabaseUrl,
    DataDir,
    LiveSystemId,
    Output,
    OutputOption,
    Token,
    Url,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

restored_app = typer.Typer(
    invoke_without_command=True,
    help="Say that a backup was restored: nothing is written for a LiveSystem until it is confirmed or deployed again.",
)
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@restored_app.callback()
def restored(
    context: typer.Context,
    status: Annotated[bool, typer.Option("--status", help="Only show what waits to be confirmed.")] = False,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Write to the database itself, before the control plane is started on it."),
    ] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    database_url: DatabaseUrl = "",
    output: OutputOption = Output.TABLE,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Say that a backup was restored: nothing is written for a LiveSystem until it is confirmed or deployed again."""
    if context.invoked_subcommand is not None:
        return
    from fractal_cloud.cli.client import connect

    if offline and status:
        raise CommandError("--offline begins a recovery, --status only reads", code=Exit.USAGE)
    if offline:
        _show(_begin_offline(data_dir, database_url), output)
        return
    with connect(url, token) as control:
        _show(control.get("/recovery") if status else control.post("/recovery"), output)


def _begin_offline(data_dir: Path, database_url: str) -> Mapping[str, Any]:
    from fractal_cloud.control.settings import ControlSettings
    from fractal_cloud.control.store import open_store, recovery

    where = ControlSettings(database_url=database_url, data_dir=data_dir).resolved_database_url()
    file = where.removeprefix("sqlite:///")
    if file != where and not Path(file).exists():
        raise CommandError(f"there is no database {file!r}", advice="Name it: --database-url, or --data-dir.")
    store = open_store(where)
    try:
        with store.write() as tx:
            return recovery.begin(tx, "fractal restored --offline")
    finally:
        store.close()


def _show(found: Mapping[str, Any], output: Output) -> None:
    from fractal_cloud.cli.output import console, emit, say, table

    if output is not Output.TABLE:
        emit(found, output)
        return
    if not found["inRecovery"]:
        say("Nothing waits to be confirmed.")
        return
    say(f"In recovery since {_time_text(found['since'])}: {found['reason']} ({found['by']}).")
    rows = [
        (one["id"], "being deleted" if one["deleting"] else "", one["generation"], _time_text(one["deployedAt"]))
        for one in found["liveSystems"]
    ]
    if rows:
        title = "Nothing is written for these"
        console().print(table(("LiveSystem", "", "generation", "deployed"), rows, title))
        say("Deploy each again, or see what confirming it would do: fractal restored confirm LS")
    if found["tokens"]:
        say(f"{len(found['tokens'])} agents' tokens wait, and are refused: fractal restored confirm-tokens")


def _time_text(at: object) -> str:
    return str(at or "")[:19].replace("T", " ")


@restored_app.command("confirm")
def confirm(live_system: LiveSystemId, yes: Yes = False, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Show what would be created, changed and deleted, and let the LiveSystem be written to again."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.deploy import show_plan
    from fractal_cloud.cli.output import say

    with connect(url, token) as control:
        plan = control.post(f"/recovery/livesystems/{live_system}/plan")
        show_plan(live_system, plan)
        if plan["fingerprint"] is None:
            raise CommandError(
                f"it is not known what would become of {', '.join(plan['unknown'])}, so nothing was confirmed",
                advice="Start their agents (`fractal restored confirm-tokens` lets them in), or deploy it again.",
            )
        if not yes:
            _ask(f"Confirm {live_system}?", f"fractal restored confirm {live_system} --yes")
        control.post(f"/recovery/livesystems/{live_system}/confirm", {"fingerprint": plan["fingerprint"]})
    say(f"{live_system}: confirmed; what would change is shown for one more cycle before it is written")


@restored_app.command("confirm-tokens")
def confirm_tokens(yes: Yes = False, url: Url = DEFAULT_URL, token: Token = "") -> None:
    """Show the agents' tokens that stood in the backup, and let them in again. Revoke first what was revoked since."""
    from fractal_cloud.cli.client import connect
    from fractal_cloud.cli.output import console, say, table

    with connect(url, token) as control:
        waiting = control.get("/recovery")["tokens"]
        if not waiting:
            say("No agent's token waits.")
            return
        rows = [(one["name"], ", ".join(one["providers"]) or "all", _time_text(one["createdAt"])) for one in waiting]
        console().print(table(("name", "providers", "created"), rows, "Agents' tokens of the backup"))
        say("One that was revoked since the backup is valid in it again: `fractal token revoke NAME` first.")
        if not yes:
            _ask("Let all of them in?", "fractal restored confirm-tokens --yes")
        done = control.post("/recovery/tokens/confirm", {"tokens": [one["id"] for one in waiting]})
    say(f"confirmed: {', '.join(done['confirmed'])}")


def _ask(question: str, command: str) -> None:
    if not sys.stdin.isatty():
        raise CommandError(
            "nobody is there to answer, so nothing was confirmed",
            advice=f"Say that you have seen the above: {command}",
            code=Exit.USAGE,
        )
    if not typer.confirm(question):
        raise CommandError("nothing was confirmed")
