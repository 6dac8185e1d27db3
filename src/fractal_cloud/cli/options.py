"""The settings that several commands share: each an environment variable and a flag of the same name."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Option

CA_FILE: Final = "FRACTAL_CA_FILE"
DEFAULT_URL: Final = "http://127.0.0.1:8600"
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8600
DEFAULT_SANDBOX_PORT: Final = 8700
DEFAULT_DATA_DIR: Final = Path(".fractal")
DEFAULT_CYCLE: Final = 180.0
DEFAULT_KEEP_DAYS: Final = 400.0
DEFAULT_TIMEOUT: Final = 900.0


class Output(StrEnum):
    """How a reading command prints what it read."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Url = Annotated[str, Option("--url", envvar="FRACTAL_URL", help="Address of the control plane.")]
Token = Annotated[str, Option("--token", envvar="FRACTAL_TOKEN", help="Token for the control plane.")]
TlsCertificate = Annotated[
    Path | None,
    Option(
        "--tls-certificate", envvar="FRACTAL_TLS_CERTIFICATE", help="Its certificate and chain in PEM: speak https."
    ),
]
TlsKey = Annotated[
    Path | None, Option("--tls-key", envvar="FRACTAL_TLS_KEY", help="The key of the certificate in PEM.")
]
CaFile = Annotated[
    str,
    Option("--ca-file", envvar=CA_FILE, help="Certificates of authorities to trust besides the usual ones, in PEM."),
]
Host = Annotated[str, Option("--host", envvar="FRACTAL_HOST", help="Address to listen on.")]
Port = Annotated[int, Option("--port", envvar="FRACTAL_PORT", min=1, max=65535, help="Port of the control plane.")]
SandboxPort = Annotated[
    int, Option("--sandbox-port", envvar="FRACTAL_SANDBOX_PORT", min=1, max=65535, help="Port of the sandbox clouds.")
]
DataDir = Annotated[
    Path, Option("--data-dir", envvar="FRACTAL_DATA_DIR", help="Folder for the database and everything else kept.")
]
DatabaseUrl = Annotated[
    str,
    Option(
        "--database-url",
        envvar="FRACTAL_DATABASE_URL",
        help="SQLite file or PostgreSQL; without it, a file in the data folder.",
    ),
]
DatabaseConnections = Annotated[
    int,
    Option(
        "--database-connections",
        envvar="FRACTAL_DATABASE_CONNECTIONS",
        min=1,
        help="Connections to PostgreSQL at most; one more listens.",
    ),
]
DatabaseWait = Annotated[
    float,
    Option(
        "--database-wait-seconds",
        envvar="FRACTAL_DATABASE_WAIT_SECONDS",
        min=0.1,
        help="Seconds to wait for a free connection to PostgreSQL, before the answer is 503.",
    ),
]
StatementSeconds = Annotated[
    float,
    Option(
        "--statement-seconds",
        envvar="FRACTAL_STATEMENT_SECONDS",
        min=1,
        help="Seconds one statement may take in PostgreSQL.",
    ),
]
KeepDays = Annotated[
    float,
    Option(
        "--keep-days",
        envvar="FRACTAL_KEEP_DAYS",
        min=0,
        max=36_500,
        help="How long events and the journal are kept, in days; 0: for ever.",
    ),
]
SessionIdleHours = Annotated[
    float,
    Option(
        "--session-idle-hours",
        envvar="FRACTAL_SESSION_IDLE_HOURS",
        min=0.01,
        help="After how many hours without use a session at the dashboard ends.",
    ),
]
SessionHours = Annotated[
    float,
    Option(
        "--session-hours",
        envvar="FRACTAL_SESSION_HOURS",
        min=0.01,
        help="After how many hours a session at the dashboard ends in any case.",
    ),
]
AdminAgents = Annotated[
    bool,
    Option(
        "--admin-agents",
        envvar="FRACTAL_ADMIN_AGENTS",
        help="Let an admin's token be an agent's, to try things out; only while it listens on this machine alone.",
    ),
]
LockSeconds = Annotated[
    float,
    Option(
        "--lock-seconds",
        envvar="FRACTAL_LOCK_SECONDS",
        min=0.1,
        help="Seconds a statement waits in PostgreSQL for what somebody else holds.",
    ),
]
CycleSeconds = Annotated[
    float,
    Option(
        "--cycle-seconds", envvar="FRACTAL_CYCLE_SECONDS", min=0.01, help="Seconds between two reads of the clouds."
    ),
]
Concurrency = Annotated[
    int, Option("--concurrency", envvar="FRACTAL_CONCURRENCY", min=1, help="Cloud calls under way at once.")
]
CallSeconds = Annotated[
    float,
    Option(
        "--call-seconds",
        envvar="FRACTAL_CALL_SECONDS",
        min=1.0,
        help="Seconds after which a call to a cloud that makes no progress is given up.",
    ),
]
SealingKeyText = Annotated[
    str,
    Option(
        "--sealing-key",
        envvar="FRACTAL_SEALING_KEY",
        help="32 bytes in base64 by which it opens sealed values; without it, it makes a key and keeps it on disk.",
    ),
]
EndpointHosts = Annotated[
    str,
    Option(
        "--endpoint-hosts",
        envvar="FRACTAL_ENDPOINT_HOSTS",
        help="Hosts of declared clusters to which it may send its credentials beside the vendors' own, with commas "
        "between them: k8s.corp.example,*.clusters.example:6443",
    ),
]
StateDir = Annotated[
    Path | None,
    Option(
        "--state-dir",
        envvar="FRACTAL_STATE_DIR",
        help="Folder in which agents keep their sealing key and which event they saw last; else in FRACTAL_DATA_DIR, "
        "or the user's own.",
    ),
]
RealmsFile = Annotated[
    Path | None,
    Option(
        "--realms",
        envvar="FRACTAL_REALMS",
        help="File of the accounts, projects, clusters and the like that it reaches, on all clouds.",
    ),
]
SecretsFile = Annotated[
    Path | None,
    Option(
        "--secrets",
        envvar="FRACTAL_SECRETS",
        help="File that binds the names of secrets to their stores, and says which LiveSystems may use each.",
    ),
]
SecretsDir = Annotated[
    Path | None,
    Option(
        "--secrets-dir",
        envvar="FRACTAL_SECRETS_DIR",
        help="Folder with a folder for each LiveSystem and a file for each of its secrets; without --secrets.",
    ),
]
SweepBudget = Annotated[
    int,
    Option(
        "--sweep-budget",
        envvar="FRACTAL_SWEEP_BUDGET",
        min=0,
        help="Calls per service and cycle for settings that a cloud returns only one by one.",
    ),
]
SetbackCycles = Annotated[
    int,
    Option(
        "--setback-cycles",
        envvar="FRACTAL_SETBACK_CYCLES",
        min=1,
        help="A value that somebody set back three times within so many cycles is no longer corrected.",
    ),
]
OutputOption = Annotated[Output, Option("--output", "-o", help="How to print it.")]
Timeout = Annotated[float, Option("--timeout", min=0, help="Seconds to wait at most.")]

LiveSystemId = Annotated[str, Argument(metavar="LS", help="Id of the LiveSystem.")]
ComponentId = Annotated[str, Argument(metavar="COMPONENT", help="Id of the component.")]
File = Annotated[str, Argument(metavar="FILE", help="Declaration in Python, YAML or JSON; - reads YAML or JSON.")]
Only = Annotated[
    list[str] | None,
    Option("--only", metavar="LS", help="Only this LiveSystem of the file; may be given several times."),
]
