"""`fractal up`: everything on one machine, to try it out: control plane, agent, sandbox clouds and a sample."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_HOST,
    DEFAULT_PORT,
    DEFAULT_SANDBOX_PORT,
    DEFAULT_URL,
    CycleSeconds,
    DatabaseUrl,
    DataDir,
    Host,
    Port,
    SandboxPort,
)
from fractal_cloud.cli.private_files import keep_files_private
from fractal_cloud.cli.programs import make_folder, new_token, refuse_weak_token, url_of
from fractal_cloud.cli.sandbox import installed_sandbox

if TYPE_CHECKING:
    from fractal_cloud.cli.children import Children

_SAMPLE = "sample"
_CYCLE = 5.0
_AGENT = "fractal-up"
"""The name of its agent's token."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to run, and where."""

    host: str
    port: int
    sandbox_port: int
    data_dir: Path
    database_url: str
    cycle_seconds: float
    token: str
    sandbox: bool
    keep: bool
    sample: bool

    @property
    def url(self) -> str:
        return url_of(self.host, self.port)

    @property
    def sandbox_url(self) -> str:
        return url_of(self.host, self.sandbox_port)


def up(
    host: Host = DEFAULT_HOST,
    port: Port = DEFAULT_PORT,
    sandbox_port: SandboxPort = DEFAULT_SANDBOX_PORT,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    database_url: DatabaseUrl = "",
    cycle_seconds: CycleSeconds = _CYCLE,
    token: Annotated[
        str,
        typer.Option("--token", envvar="FRACTAL_TOKEN", help="The admin's token; without it, one is made and printed."),
    ] = "",
    keep: Annotated[bool, typer.Option("--keep", help="Keep the database of the last time.")] = False,
    no_sandbox: Annotated[
        bool, typer.Option("--no-sandbox", help="Use the real clouds, with your credentials; keeps the database.")
    ] = False,
) -> None:
    """Run everything here, with a sample, until Ctrl-C.

    Control plane, agent, dashboard and sandbox clouds run as children of this process and end with it. It begins
    with an empty database, because the sandbox's clouds are empty, too. UP_SAMPLE=0 deploys no sample.
    """
    from fractal_cloud.cli.children import Children, Ended

    plan = _Plan(
        host=host,
        port=port,
        sandbox_port=sandbox_port,
        data_dir=data_dir.absolute(),
        database_url=database_url,
        cycle_seconds=cycle_seconds,
        token=token or new_token(),
        sandbox=not no_sandbox,
        keep=keep or no_sandbox,
        # A sample in a real cloud would cost money: there it is deployed only if it was asked for.
        sample=os.environ.get("UP_SAMPLE", "0" if no_sandbox else "1") not in ("0", ""),
    )
    refuse_weak_token(host, token)
    _check_ports(plan)
    _prepare_data(plan)
    try:
        with Children(plan.data_dir) as children:
            _start(plan, children)
            mutation_id = _deploy_sample(plan) if plan.sample else None
            _print_addresses(plan)
            if mutation_id is not None:
                _await_sample(plan, children, mutation_id)
            children.watch()
    except Ended:
        typer.echo("\nEnded, with all that was started.")


def _check_ports(plan: _Plan) -> None:
    ports = [(plan.port, "--port or FRACTAL_PORT")]
    if plan.sandbox:
        ports.append((plan.sandbox_port, "--sandbox-port or FRACTAL_SANDBOX_PORT"))
    for port, setting in ports:
        family = socket.AF_INET6 if ":" in plan.host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((plan.host, port))
            except OSError as error:
                raise CommandError(
                    f"cannot listen on {plan.host}:{port}: {error.strerror or error}",
                    advice=f"End what listens there, or choose another port with {setting}.",
                ) from None


def _prepare_data(plan: _Plan) -> None:
    """Make the data folder, and begin with an empty database: the sandbox's clouds are empty, too."""
    keep_files_private()
    make_folder(plan.data_dir)
    if plan.keep:
        return
    if not plan.database_url:
        database = plan.data_dir / "fractal.db"
    elif plan.database_url.startswith("sqlite:///"):
        database = Path(plan.database_url.removeprefix("sqlite:///"))
    else:
        raise CommandError(
            "`fractal up` begins with an empty database, and this one is not its own to empty",
            advice="Keep it with --keep, or leave FRACTAL_DATABASE_URL away.",
            code=Exit.USAGE,
        )
    for suffix in ("", "-wal", "-shm", "-journal"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    shutil.rmtree(_state_dir(plan), ignore_errors=True)  # of a database that is no more


def _state_dir(plan: _Plan) -> Path:
    """Where the agent keeps what it remembers of the control plane."""
    return plan.data_dir / "agent"


def _start(plan: _Plan, children: Children) -> None:
    local = ",".join(filter(None, [os.environ.get("NO_PROXY", ""), "127.0.0.1", "localhost", plan.host]))
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = local
    common = {
        **os.environ,
        "FRACTAL_URL": plan.url,
        "FRACTAL_TOKEN": plan.token,
        "FRACTAL_HOST": plan.host,
        "FRACTAL_PORT": str(plan.port),
        "FRACTAL_SANDBOX_PORT": str(plan.sandbox_port),
        "FRACTAL_DATA_DIR": str(plan.data_dir),
        "FRACTAL_STATE_DIR": str(_state_dir(plan)),
        "FRACTAL_CYCLE_SECONDS": str(plan.cycle_seconds),
    }
    if plan.database_url:
        common["FRACTAL_DATABASE_URL"] = plan.database_url
    children.start("control plane", ["serve"], common)
    if plan.sandbox:
        children.start("sandbox", ["sandbox"], common)
        children.wait_for("sandbox", lambda: _listens(plan.host, plan.sandbox_port))
    children.wait_for("control plane", lambda: _is_ready(plan.url))
    providers = _providers(plan)
    served = [word for name in providers for word in ("--provider", name)]
    agents = {**common, "FRACTAL_TOKEN": _agent_token(plan, providers)}
    children.start("agent", ["agent", *served], _agent_env(plan, agents))
    if plan.sandbox:  # at a real cloud it may wait for credentials, and says so in its log
        children.wait_for("agent", lambda: _has_agent(plan))


def _agent_token(plan: _Plan, providers: list[str]) -> str:
    """A new token for the agent that is started here, in the place of the one of last time; no other one may be its."""
    from fractal_cloud.cli.client import connect

    bound = {"providers": providers, "environments": ["*"], "realms": ["*"]}
    with connect(plan.url, plan.token) as control:
        if any(one["name"] == _AGENT for one in control.every("/tokens")):
            control.delete(f"/tokens/{_AGENT}")
        return str(control.post("/tokens", {"name": _AGENT, "role": "agent", **bound})["token"])


def _providers(plan: _Plan) -> list[str]:
    """The clouds to serve: all of the sandbox's, or the real ones for which there can be credentials."""
    from fractal_cloud.offers.registry import installed

    registry = installed()
    found = [registry.provider(name) for name in registry.providers()]
    if plan.sandbox:
        in_sandbox = {cloud.provider for cloud in installed_sandbox().clouds()}
        return [provider.name for provider in found if provider.name in in_sandbox and provider.can_connect()]
    return [provider.name for provider in found if provider.can_connect() and provider.is_at_hand()]


def _agent_env(plan: _Plan, common: dict[str, str]) -> dict[str, str]:
    """The agent's environment: with the sandbox, nothing that could lead it to a real cloud is left in it."""
    if not plan.sandbox:
        return common
    sandbox = installed_sandbox()
    return {**sandbox.without_real_clouds(common), **sandbox.agent_env(plan.sandbox_url, plan.data_dir)}


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1" if host == "0.0.0.0" else host, port), timeout=1):
            return True
    except OSError:
        return False


def _is_ready(url: str) -> bool:
    import httpx2

    try:
        return httpx2.get(f"{url}/readyz", timeout=2).status_code == httpx2.codes.OK
    except httpx2.HTTPError:
        return False


def _has_agent(plan: _Plan) -> bool:
    from fractal_cloud.cli.client import connect

    with connect(plan.url, plan.token) as control:
        return any(agent["alive"] for agent in control.every("/agents"))


def _deploy_sample(plan: _Plan) -> str:
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.files import load

    [declared] = load(str(Path(__file__).with_name("sample.py")))
    with connect(plan.url, plan.token) as control:
        return str(control.put(path_of(declared.id), declared.document)["mutationId"])


def _await_sample(plan: _Plan, children: Children, mutation_id: str) -> None:
    """Say how the sample came out; that it does not settle ends nothing."""
    from fractal_cloud.cli.client import connect, path_of
    from fractal_cloud.cli.waiting import components_of

    path = path_of(_SAMPLE, "", "mutations", mutation_id)
    found: dict[str, Any] = {}
    with connect(plan.url, plan.token) as control:

        def is_over() -> bool:
            found.update(control.get(path))
            return bool(found["status"] == "Completed")  # what failed may still come right

        try:
            children.wait_for("sample", is_over)
        except CommandError as error:
            children.check()
            typer.echo(f"{error.cause}: `{shlex.quote(_program())} status {_SAMPLE}` shows why")
            return
    counts = Counter(str(component.get("status")) for _, component in components_of(found))
    summary = ", ".join(f"{count} {word}" for word, count in counts.items())
    typer.echo(f"The LiveSystem {_SAMPLE!r} is deployed: {summary}.")


def _print_addresses(plan: _Plan) -> None:
    """Print where everything is, and what to try next."""
    program = shlex.quote(_program())
    port = "" if plan.sandbox_port == DEFAULT_SANDBOX_PORT else f" --sandbox-port {plan.sandbox_port}"
    facts = [
        ("dashboard", f"{plan.url}/ui?token={quote(plan.token, safe='')}"),
        ("API", f"{plan.url} (described at /openapi.json)"),
        ("sandbox", f"{plan.sandbox_url} ({_titles()})") if plan.sandbox else ("clouds", "the real ones"),
        ("token", plan.token),
        ("logs", f"{plan.data_dir}/*.log"),
    ]
    steps = [f"export FRACTAL_TOKEN={shlex.quote(plan.token)}"]
    if plan.url != DEFAULT_URL:
        steps.append(f"export FRACTAL_URL={shlex.quote(plan.url)}")
    if plan.sandbox:
        steps.append(f'eval "$({program} sandbox env{port})"')
    if plan.sample:
        steps += [
            f"{program} status {_SAMPLE}",
            f"{program} glass {_SAMPLE} web      # how to take the machine over, and to hand it back",
            f"{program} status {_SAMPLE} shop    # what its link to the other workload brought",
            f"{program} events {_SAMPLE} --follow",
        ]
    steps.append(f"{program} --help")
    typer.echo("Fractal Cloud is up. Ctrl-C ends it.\n")
    for name, value in facts:
        typer.echo(f"  {name:<10} {value}")
    typer.echo("\nIn another terminal, try:\n")
    for step in steps:
        typer.echo(f"  {step}")
    typer.echo("")


def _titles() -> str:
    return ", ".join(dict.fromkeys(cloud.title for cloud in installed_sandbox().clouds()))


def _program() -> str:
    """How this program is called from here."""
    here = Path(sys.argv[0])
    found = shutil.which("fractal")
    if here.name != "fractal" or (found and Path(found).resolve() == here.resolve()):
        return "fractal"
    beside = os.path.relpath(here)
    return beside if not beside.startswith("..") else str(here)
