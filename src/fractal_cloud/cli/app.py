"""All commands in one place: which there are, and how the program ends. What each does stands in its own file."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from fractal_cloud import __version__
from fractal_cloud.cli import (
    absorb,
    approvals,
    convert,
    delete,
    deploy,
    discover,
    glass,
    keys,
    notify,
    overrides,
    programs,
    read,
    realm,
    restored,
    sandbox,
    token,
    types,
    up,
    verify,
    watch,
    who,
)
from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.options import CA_FILE, CaFile
from fractal_cloud.cli.secret_files import read_secret_files
from fractal_cloud.model.errors import RegistrationError

app = typer.Typer(
    name="fractal",
    help="Declare cloud resources, keep them as declared, and let people take over any of them at any time.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _program(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    ca_file: CaFile = "",
) -> None:
    """Declare cloud resources, keep them as declared, and let people take over any of them at any time."""
    if ca_file:
        os.environ[CA_FILE] = ca_file


app.command("up")(up.up)
app.command("serve")(programs.serve)
programs.agent_app.command("list")(approvals.every)
programs.agent_app.command("approve")(approvals.approve)
programs.agent_app.command("withdraw-approval")(approvals.withdraw)
programs.agent_app.command("keys")(keys.every)
programs.agent_app.command("rotate-key")(keys.rotate_key)
programs.agent_app.command("withdraw-key")(keys.withdraw_key)
app.add_typer(programs.agent_app, name="agent")
app.add_typer(sandbox.sandbox_app, name="sandbox")
app.command("plan")(deploy.plan)
app.command("deploy")(deploy.deploy)
app.command("status")(read.status)
app.command("agents")(watch.agents)
app.command("scopes")(watch.scopes)
app.command("drift")(read.drift)
app.command("events")(read.events)
app.command("who")(who.who)
app.command("glass")(glass.glass)
app.command("force-push")(glass.force_push)
app.command("transfer")(glass.transfer)
app.command("overrides")(overrides.overrides)
app.command("absorb")(absorb.absorb)
app.command("delete")(delete.delete)
app.command("discover")(discover.discover)
app.command("convert")(convert.convert)
app.command("verify")(verify.verify)
app.add_typer(realm.realm_app, name="realm")
app.add_typer(token.token_app, name="token")
app.add_typer(approvals.environment_app, name="environment")
app.add_typer(notify.notify_app, name="notify")
app.add_typer(types.types_app, name="types")
app.add_typer(restored.restored_app, name="restored")


def run() -> None:
    """Run a command and end the process with its exit code."""
    try:
        read_secret_files(os.environ, lambda text: typer.echo(f"warning: {text}", err=True))
        app()
    except CommandError as error:
        _fail(error)
    except RegistrationError as error:
        _fail(CommandError(str(error)))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has enough; closing it here keeps Python from complaining at exit.
        sys.stderr.close()
        sys.exit(int(Exit.DONE))


def _fail(error: CommandError) -> NoReturn:
    from fractal_cloud.cli.output import show_error

    show_error(error)
    sys.exit(int(error.code))
