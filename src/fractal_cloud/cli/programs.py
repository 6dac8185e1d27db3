"""`fractal serve` and `fractal agent`: the long-running programs of the product, one per process."""

from __future__ import annotations

import json
import os
import secrets
from datetime import timedelta
from importlib import import_module
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fractal_cloud.agent.trust import BadAuthority, plain_text_warning
from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.lifeline import hold_lifeline
from fractal_cloud.cli.limit_options import (
    FailuresPerMinute,
    HeaderSeconds,
    IdleSeconds,
    MaxBodiesBytes,
    MaxBodyBytes,
    MaxConnections,
    MaxHeaderBytes,
    MaxReportBytes,
    RequestsPerToken,
    StallSeconds,
    StreamsPerToken,
    TrustedProxies,
    WaitsPerToken,
)
from fractal_cloud.cli.notify_options import (
    NotifyCaFile,
    NotifyGiveUp,
    NotifyGroup,
    NotifyHttp,
    NotifyKey,
    NotifyNetworks,
    NotifyRepeat,
    NotifyTimeout,
)
from fractal_cloud.cli.options import (
    CA_FILE,
    DEFAULT_CYCLE,
    DEFAULT_DATA_DIR,
    DEFAULT_HOST,
    DEFAULT_KEEP_DAYS,
    DEFAULT_PORT,
    DEFAULT_URL,
    AdminAgents,
    CaFile,
    CallSeconds,
    Concurrency,
    CycleSeconds,
    DatabaseConnections,
    DatabaseUrl,
    DatabaseWait,
    DataDir,
    EndpointHosts,
    Host,
    KeepDays,
    LockSeconds,
    Port,
    RealmsFile,
    SealingKeyText,
    SecretsDir,
    SecretsFile,
    SessionHours,
    SessionIdleHours,
    SetbackCycles,
    StateDir,
    StatementSeconds,
    SweepBudget,
    TlsCertificate,
    TlsKey,
    Token,
    Url,
)
from fractal_cloud.cli.private_files import keep_files_private, tighten_folder
from fractal_cloud.model import access_token
from fractal_cloud.model.address import is_loopback

if TYPE_CHECKING:
    from fractal_cloud.agent.realms_file import Realms
    from fractal_cloud.agent.settings import AgentSettings

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
    session_idle_hours: SessionIdleHours = 2.0,
    session_hours: SessionHours = 12.0,
    max_header_bytes: MaxHeaderBytes = 32_768,
    header_seconds: HeaderSeconds = 10.0,
    max_body_bytes: MaxBodyBytes = 8_388_608,
    max_report_bytes: MaxReportBytes = 67_108_864,
    max_bodies_bytes: MaxBodiesBytes = 268_435_456,
    stall_seconds: StallSeconds = 20.0,
    idle_seconds: IdleSeconds = 75.0,
    max_connections: MaxConnections = 8192,
    streams_per_token: StreamsPerToken = 100,
    waits_per_token: WaitsPerToken = 1000,
    requests_per_token: RequestsPerToken = 4,
    failures_per_minute: FailuresPerMinute = 60,
    trusted_proxies: TrustedProxies = "127.0.0.1,::1",
    tls_certificate: TlsCertificate = None,
    tls_key: TlsKey = None,
    admin_agents: AdminAgents = False,
    notify_key: NotifyKey = "",
    notify_http: NotifyHttp = False,
    notify_networks: NotifyNetworks = "",
    notify_ca_file: NotifyCaFile = "",
    notify_timeout_seconds: NotifyTimeout = 10.0,
    notify_group_seconds: NotifyGroup = 5.0,
    notify_repeat_minutes: NotifyRepeat = 15.0,
    notify_give_up_hours: NotifyGiveUp = 24.0,
    token: Annotated[
        str,
        typer.Option("--token", envvar="FRACTAL_TOKEN", help="The admin's token; without it, one is made and printed."),
    ] = "",
) -> None:
    """Run the control plane, with its API and its dashboard; any number of them on one PostgreSQL."""
    hold_lifeline()
    keep_files_private()
    from fractal_cloud.cli import logs
    from fractal_cloud.control.limits import ClientLimits
    from fractal_cloud.control.notifying.delivery import BadAuthority as UntrustedReceivers
    from fractal_cloud.control.notifying.settings import NotificationSettings
    from fractal_cloud.control.serve import run
    from fractal_cloud.control.settings import ControlSettings
    from fractal_cloud.control.store.failures import NotOpened
    from fractal_cloud.control.store.limits import Limits
    from fractal_cloud.control.store.sessions import Endings
    from fractal_cloud.control.tls import BadCertificate, Tls

    refuse_weak_token(host, token)
    if (tls_certificate is None) is not (tls_key is None):
        raise CommandError(
            "a certificate needs its key, and a key its certificate",
            advice="Give both --tls-certificate and --tls-key.",
            code=Exit.USAGE,
        )
    tls = Tls(tls_certificate, tls_key) if tls_certificate is not None and tls_key is not None else None
    scheme = "https" if tls is not None else "http"
    logs.set_up()
    if not database_url:
        make_folder(data_dir)
    admin_token = token or new_token()
    typer.echo(f"control plane: {url_of(host, port, scheme)}")
    typer.echo(f"dashboard:     {url_of(host, port, scheme)}/ui")
    if not token:
        typer.echo(f"admin token:   {admin_token}")
    settings = ControlSettings(
        database_url=database_url,
        admin_token=admin_token,
        host=host,
        port=port,
        data_dir=data_dir,
        cycle_seconds=cycle_seconds,
        keep_days=keep_days,
        session_endings=Endings(timedelta(hours=session_idle_hours), timedelta(hours=session_hours)),
        admin_agents=admin_agents,
        limits=Limits(
            connections=database_connections,
            wait_seconds=database_wait_seconds,
            statement_seconds=statement_seconds,
            lock_seconds=lock_seconds,
            idle_seconds=2 * statement_seconds,
        ),
        clients=ClientLimits(
            header_bytes=max_header_bytes,
            header_seconds=header_seconds,
            body_bytes=max_body_bytes,
            report_bytes=max_report_bytes,
            bodies_bytes=max_bodies_bytes,
            stall_seconds=stall_seconds,
            idle_seconds=idle_seconds,
            connections=max_connections,
            streams_per_token=streams_per_token,
            waits_per_token=waits_per_token,
            requests_per_token=requests_per_token,
            failures_per_minute=failures_per_minute,
            trusted_proxies=trusted_proxies,
        ),
        tls=tls,
        notifications=NotificationSettings(
            key=checked_notify_key(notify_key),
            allows_http=notify_http,
            networks=tuple(ip_network(one.strip()) for one in notify_networks.split(",") if one.strip()),
            ca_file=notify_ca_file,
            timeout_seconds=notify_timeout_seconds,
            group_seconds=notify_group_seconds,
            repeat_minutes=notify_repeat_minutes,
            give_up_hours=notify_give_up_hours,
        ),
    )
    try:
        run(settings)
    except NotOpened as error:
        raise CommandError(error.message, advice=error.advice) from None
    except BadCertificate as error:
        raise CommandError(str(error), advice="Give both in PEM, and the key without a passphrase.") from None
    except UntrustedReceivers as error:
        raise CommandError(str(error), advice="Give one with --notify-ca-file.", code=Exit.USAGE) from None


def checked_notify_key(key: str) -> str:
    """A key that cannot be guessed, or none."""
    from fractal_cloud.control.notifying.sealing import SHORTEST_KEY

    if key and len(key) < SHORTEST_KEY:
        raise CommandError(
            f"the key of notifications has {len(key)} characters, and {SHORTEST_KEY} are the fewest",
            advice="`openssl rand -hex 32` prints a good one.",
            code=Exit.USAGE,
        )
    return key


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
    endpoint_hosts: EndpointHosts = "",
    realms: RealmsFile = None,
    secrets: SecretsFile = None,
    secrets_dir: SecretsDir = None,
    ca_file: CaFile = "",
    url: Url = DEFAULT_URL,
    token: Token = "",
) -> None:
    """Run an agent: it reads the clouds and reconciles. It waits for a control plane that is not there yet."""
    if context.invoked_subcommand is not None:
        return
    reached = _read_realms(realms) if realms is not None else {}
    provider = [*dict.fromkeys([*(provider or ()), *reached])]
    if not provider:
        raise CommandError("no cloud is named", advice="Say which it serves: --provider aws", code=Exit.USAGE)
    hold_lifeline()
    keep_files_private()
    from fractal_cloud.agent.settings import AgentSettings
    from fractal_cloud.cli import logs
    from fractal_cloud.model.errors import LinkError, RegistrationError
    from fractal_cloud.offers.cluster_access import ALLOWED
    from fractal_cloud.offers.registry import installed
    from fractal_cloud.offers.secret import SealingKey

    registry = installed(*sorted(provider))
    try:
        for name in provider:
            if not registry.has_provider(name):
                installed().provider(name)  # which says what is there instead
        if sealing_key:
            SealingKey.from_text(sealing_key, "FRACTAL_SEALING_KEY")
    except RegistrationError as error:
        raise CommandError(str(error), advice="Install the package that has it.", code=Exit.USAGE) from None
    except LinkError as error:
        raise CommandError(str(error), code=Exit.USAGE) from None
    if not token:
        raise CommandError(
            "an agent needs a token",
            advice="Give it with --token or FRACTAL_TOKEN; `fractal token create --role agent --provider … "
            "--environment … --realm …` makes one.",
            code=Exit.USAGE,
        )
    if endpoint_hosts:
        os.environ[ALLOWED] = endpoint_hosts
    _check_secrets(secrets, secrets_dir)
    logs.set_up()
    typer.echo(f"agent: serves {', '.join(provider)} in environment {environment} for {url}")
    _warn_of_plain_text(url, token)
    settings = AgentSettings(
        url=url,
        token=token,
        ca_file=ca_file,
        environment=environment,
        providers=tuple(provider),
        cycle_seconds=cycle_seconds,
        concurrency=concurrency,
        sweep_budget=sweep_budget,
        call_seconds=call_seconds,
        setback_cycles=setback_cycles,
        sealing_key=sealing_key,
        state_dir=state_dir or own_state_dir(),
        secrets_file=secrets,
        secrets_dir=secrets_dir,
        realms=reached,
    )
    _run_agent(settings)


def _read_realms(file: Path) -> Realms:
    from fractal_cloud.agent.realms_file import parse_realms
    from fractal_cloud.cli.files import load_settings
    from fractal_cloud.model.errors import DeclarationError
    from fractal_cloud.offers.registry import installed

    registry = installed()
    try:
        return parse_realms(load_settings(file), {name: registry.provider(name) for name in registry.providers()})
    except DeclarationError as error:
        raise CommandError(
            f"{file}: is refused",
            advice="See docs/operating.md#many-accounts.",
            details=[str(one) for one in error.errors],
            code=Exit.USAGE,
        ) from None


def _run_agent(settings: AgentSettings) -> None:
    from fractal_cloud.agent.main import run
    from fractal_cloud.model.errors import LinkError, RegistrationError

    try:
        run(settings)
    except BadAuthority as error:
        raise CommandError(str(error), advice=f"Give one with --ca-file or {CA_FILE}.", code=Exit.USAGE) from None
    except LinkError as error:
        raise CommandError(str(error), code=Exit.USAGE) from None
    except RegistrationError as error:
        raise CommandError(str(error), advice="Fix the package that has this type, or uninstall it.") from None


def _check_secrets(file: Path | None, folder: Path | None) -> None:
    """Refuse bindings that cannot be used before anything begins: later on, components would fail one by one."""
    from fractal_cloud.offers.secret_stores import GUIDE, BadBindings, SecretSource

    if file is not None and folder is not None:
        raise CommandError(
            "both --secrets and --secrets-dir are given",
            advice="Bind the folder's files in the file of --secrets: nothing beside it counts.",
            code=Exit.USAGE,
        )
    if folder is not None and not folder.is_dir():
        raise CommandError(f"the folder of secrets {str(folder)!r} is not there", advice="Make it.", code=Exit.USAGE)
    try:
        SecretSource(file=file).check()
    except BadBindings as error:
        raise CommandError(f"the file of bindings {error}", advice=f"See {GUIDE}.", code=Exit.USAGE) from None


def _warn_of_plain_text(url: str, token: str) -> None:
    warning = plain_text_warning(url, token)
    if warning:
        typer.echo(f"agent: {warning}", err=True)


@agent_app.command("policy")
def policy(
    provider: Annotated[str, typer.Option("--provider", help="The cloud whose access policy is wanted.")] = "aws",
    with_links: Annotated[
        bool, typer.Option("--with-links", help="Also what links make: users, keys, secrets.")
    ] = False,
    with_generated_secrets: Annotated[
        bool,
        typer.Option("--with-generated-secrets", help="AWS, Kubernetes: also secrets that it makes for components."),
    ] = False,
    with_history: Annotated[
        bool, typer.Option("--with-history", help="AWS: also reading CloudTrail, to say who changed a resource.")
    ] = False,
    assume_role: Annotated[
        list[str] | None,
        typer.Option("--assume-role", help="AWS: a role of its file of realms; may be given several times."),
    ] = None,
    pass_role: Annotated[
        list[str] | None,
        typer.Option("--pass-role", help="A role it may hand to a service, such as EKS; may be given several times."),
    ] = None,
    boundary: Annotated[
        bool, typer.Option("--boundary", help="The limit of what links make, to be created beforehand.")
    ] = False,
    document: Annotated[int | None, typer.Option("--document", help="Only this one of several, from 1.")] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", help="Kubernetes: a namespace it works in; may be given several times."),
    ] = None,
    compartment: Annotated[
        list[str] | None,
        typer.Option("--compartment", help="OCI: a compartment it works in; may be given several times."),
    ] = None,
    resource_group: Annotated[
        list[str] | None,
        typer.Option("--resource-group", help="Azure: a resource group it works in; may be given several times."),
    ] = None,
    service_account: Annotated[
        list[str] | None,
        typer.Option(
            "--service-account", help="Google: what machines, clusters and services run as; may be given several times."
        ),
    ] = None,
    bucket: Annotated[
        list[str] | None,
        typer.Option(
            "--bucket",
            help="AWS: with --boundary, a bucket links may lead to (shop-*); else one whose lifecycle and logging the "
            "agent may set. Google: a bucket links may lead to. May be given several times.",
        ),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option("--secret", help="AWS: a secret in Secrets Manager it may read; may be given several times."),
    ] = None,
    component_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            "--types",
            help="A type by the vendor's own name (batch/v1/CronJob, AWS::SQS::Queue), or several with commas between; "
            "may be given several times.",
        ),
    ] = None,
    link_project: Annotated[
        str, typer.Option("--link-project", help="Google: the project of its own for what links make.")
    ] = "",
) -> None:
    """Print the access policy that lets the agent change only what carries managed-by, and gain no further rights."""
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
    from fractal_cloud.model.errors import PolicyOptionError
    from fractal_cloud.offers.policy import PolicyOptions

    options = PolicyOptions(
        with_links=with_links,
        with_generated_secrets=with_generated_secrets,
        with_history=with_history,
        assume_roles=tuple(assume_role or ()),
        pass_roles=tuple(pass_role or ()),
        boundary=boundary,
        document=document,
        namespaces=tuple(namespace or ()),
        compartments=tuple(compartment or ()),
        resource_groups=tuple(resource_group or ()),
        service_accounts=tuple(service_account or ()),
        buckets=tuple(bucket or ()),
        link_project=link_project,
        secrets=tuple(secret or ()),
        types=tuple(one for names in component_type or () for one in names.replace(",", " ").split()),
    )
    try:
        made = module.policy(options)
    except PolicyOptionError as error:
        raise CommandError(str(error), code=Exit.USAGE) from None
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
        tighten_folder(data_dir)
    except OSError as error:
        raise CommandError(
            f"the data folder {str(data_dir)!r} cannot be made: {error.strerror}",
            advice="Choose another with --data-dir or FRACTAL_DATA_DIR.",
        ) from None


def new_token() -> str:
    """A token nobody can guess."""
    return access_token.new_token(secrets.choice)


def refuse_weak_token(host: str, token: str) -> None:
    """Refuse an admin's token that can be guessed, where others than this machine reach the control plane (A9)."""
    if token and access_token.is_weak(token) and not is_loopback(host):
        raise CommandError(
            f"FRACTAL_TOKEN is too weak for {host!r}, which other machines may reach: it has {len(token)} characters, "
            f"{len(set(token))} of them different",
            advice=f"Give at least {access_token.WEAKEST_LENGTH} random ones, or leave it out: one is made.",
            code=Exit.USAGE,
        )


def url_of(host: str, port: int, scheme: str = "http") -> str:
    """The address at which this machine reaches what listens on a host and a port."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)
    return f"{scheme}://{reachable}:{port}"
