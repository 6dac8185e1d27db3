"""`fractal serve` and `fractal agent`: the long-running programs of the product, one per process."""

from __future__ import annotations

import json
import os
import secrets
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.lifeline import hold_lifeline
from fractal_cloud.cli.options import (
    DEFAULT_CYCLE,
    DEFAULT_DATA_DIR,
    DEFAULT_HOST,
    DEFAULT_KEEP_DAYS,
    DEFAULT_PORT,
    DEFAULT_URL,
    CallSeconds,
    Concurrency,
    CycleSeconds,
    DatabaseConnections,
    DatabaseUrl,
    DatabaseWait,
    DataDir,
    Host,
    KeepDays,
    LockSeconds,
    Port,
    SealingKeyText,
    SetbackCycles,
    StateDir,
    StatementSeconds,
    SweepBudget,
    Token,
    Url,
)

Providers = Annotated[
    list[str] | None, typer.Option("--provider", help="A cloud it serves, such as aws; may be given several times.")
]

agent_app = typer.Typer(invoke_without_command=True, help="Run an agent: it reads the clouds and reconciles.")


def serve(
    host: Host = DEFAULT_HOST,
    port: Port = DEFAULT_PORT,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    database_url: DatabaseUrl = "",
    database_connections: DatabaseConnections = 20,
    database_wait_seconds: DatabaseWait = 5.0,
    statement_seconds: StatementSeconds = 30.0,
    lock_seconds: LockSeconds = 10.0,
    cycle_seconds: CycleSeconds = DEFAULT_CYCLE,
    keep_days: KeepDays = DEFAULT_KEEP_DAYS,
    token: Annotated[
        str,
        typer.Option("--token", envvar="FRACTAL_TOKEN", help="The admin's token; without it, one is made and printed."),
    ] = "",
) -> None:
    """Run the control plane, with its API and its dashboard; any number of them on one PostgreSQL."""
    hold_lifeline()
    from fractal_cloud.cli import logs
    from fractal_cloud.control.serve import run
    from fractal_cloud.control.settings import ControlSettings
    from fractal_cloud.control.store.limits import Limits

    logs.set_up()
    if not database_url:
        make_folder(data_dir)
    admin_token = token or new_token()
    typer.echo(f"control plane: {url_of(host, port)}")
    typer.echo(f"dashboard:     {url_of(host, port)}/ui")
    if not token:
        typer.echo(f"admin token:   {admin_token}")
    run(
        ControlSettings(
            database_url=database_url,
            admin_token=admin_token,
            host=host,
            port=port,
            data_dir=data_dir,
            cycle_seconds=cycle_seconds,
            keep_days=keep_days,
            limits=Limits(
                connections=database_connections,
                wait_seconds=database_wait_seconds,
                statement_seconds=statement_seconds,
                lock_seconds=lock_seconds,
                idle_seconds=2 * statement_seconds,
            ),
        )
    )


@agent_app.callback()
def agent(
    context: typer.Context,
    provider: Providers = None,
    environment: Annotated[str, typer.Option("--environment", help="Whose LiveSystems it serves.")] = "default",
    cycle_seconds: CycleSeconds = DEFAULT_CYCLE,
    concurrency: Concurrency = 16,
    sweep_budget: SweepBudget = 100,
    call_seconds: CallSeconds = 120.0,
    setback_cycles: SetbackCycles = 10,
    sealing_key: SealingKeyText = "",
    state_dir: StateDir = None,
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Run an agent: it reads the clouds and reconciles. It waits for a control plane that is not there yet."""
    if context.invoked_subcommand is not None:
        return
    if not provider:
        raise CommandError("no cloud is named", advice="Say which it serves: --provider aws", code=Exit.USAGE)
    hold_lifeline()
    from fractal_cloud.agent.main import AgentSettings, run
    from fractal_cloud.cli import logs
    from fractal_cloud.model.errors import LinkError, RegistrationError
    from fractal_cloud.offers.registry import installed
    from fractal_cloud.offers.secret import SealingKey

    registry = installed(*sorted(provider))
    try:
        for name in provider:
            if not registry.has_provider(name):
                installed().provider(name)  # which says what is there instead
        if sealing_key:
            SealingKey.from_text(sealing_key)
    except RegistrationError as error:
        raise CommandError(str(error), advice="Install the package that has it.", code=Exit.USAGE) from None
    except LinkError as error:
        raise CommandError(str(error), code=Exit.USAGE) from None
    if not token:
        raise CommandError(
            "an agent needs a token",
            advice="Give it with --token or FRACTAL_TOKEN; `fractal token create --role agent` makes one.",
            code=Exit.USAGE,
        )
    logs.set_up()
    typer.echo(f"agent: serves {', '.join(provider)} in environment {environment} for {url}")
    settings = AgentSettings(
        url=url,
        token=token,
        environment=environment,
        providers=tuple(provider),
        cycle_seconds=cycle_seconds,
        concurrency=concurrency,
        sweep_budget=sweep_budget,
        call_seconds=call_seconds,
        setback_cycles=setback_cycles,
        sealing_key=sealing_key,
        state_dir=state_dir or own_state_dir(),
    )
    try:
        run(settings)
    except RegistrationError as error:
        raise CommandError(str(error), advice="Fix the package that has this type, or uninstall it.") from None


@agent_app.command("policy")
def policy(
    provider: Annotated[str, typer.Option("--provider", help="The cloud whose access policy is wanted.")] = "aws",
) -> None:
    """Print the access policy that lets the agent change only what carries managed-by."""
    name = f"fractal_cloud.offers.{provider}.policy"
    try:
        if not provider.isidentifier():
            raise ModuleNotFoundError(name=name)
        module: Any = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        from fractal_cloud.offers.registry import installed

        known = ", ".join(installed().providers())
        raise CommandError(
            f"there is no access policy for {provider!r}", advice=f"Installed are: {known}.", code=Exit.USAGE
        ) from None
    made = module.policy()
    typer.echo(made if isinstance(made, str) else json.dumps(made, indent=2))


def own_state_dir() -> Path | None:
    """Where agents of this user keep what they remember: in the data folder if one is named, else where programs do."""
    data_dir = os.environ.get("FRACTAL_DATA_DIR", "")
    if data_dir:
        return Path(data_dir) / "agent"
    state = os.environ.get("XDG_STATE_HOME", "")
    try:
        return (Path(state) if state else Path.home() / ".local" / "state") / "fractal-cloud"
    except RuntimeError:
        typer.echo("agent: this user has no home, so nothing is kept on disk: name a folder with --state-dir", err=True)
        return None


def make_folder(data_dir: Path) -> None:
    """Make the data folder, for this user's eyes only: it holds the database and logs."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"the data folder {str(data_dir)!r} cannot be made: {error.strerror}",
            advice="Choose another with --data-dir or FRACTAL_DATA_DIR.",
        ) from None


def new_token() -> str:
    """A token nobody can guess."""
    return secrets.token_urlsafe(24)


def url_of(host: str, port: int) -> str:
    """The address at which this machine reaches what listens on a host and a port."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)
    return f"http://{reachable}:{port}"
