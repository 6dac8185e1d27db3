"""The settings of `fractal serve` for how much of it its clients may use; what they limit is in `control.limits`."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated

from typer import BadParameter, Option

MaxHeaderBytes = Annotated[
    int,
    Option(
        "--max-header-bytes",
        envvar="FRACTAL_MAX_HEADER_BYTES",
        min=4096,
        help="Bytes of the request line and the headers of a request.",
    ),
]
HeaderSeconds = Annotated[
    float,
    Option(
        "--header-seconds", envvar="FRACTAL_HEADER_SECONDS", min=0.1, help="Seconds in which all headers must come."
    ),
]
MaxBodyBytes = Annotated[
    int, Option("--max-body-bytes", envvar="FRACTAL_MAX_BODY_BYTES", min=65_536, help="Bytes of a body.")
]
MaxReportBytes = Annotated[
    int,
    Option("--max-report-bytes", envvar="FRACTAL_MAX_REPORT_BYTES", min=65_536, help="Bytes of a body of an agent."),
]
MaxBodiesBytes = Annotated[
    int,
    Option(
        "--max-bodies-bytes",
        envvar="FRACTAL_MAX_BODIES_BYTES",
        min=65_536,
        help="Bytes of all bodies under way; one token or address gets a quarter.",
    ),
]
StallSeconds = Annotated[
    float,
    Option(
        "--stall-seconds",
        envvar="FRACTAL_STALL_SECONDS",
        min=0.1,
        help="Seconds after which a body or an answer is given up of which less than 16 KiB moved.",
    ),
]
IdleSeconds = Annotated[
    float,
    Option("--idle-seconds", envvar="FRACTAL_IDLE_SECONDS", min=1, help="Seconds until an idle connection is closed."),
]
MaxConnections = Annotated[
    int,
    Option(
        "--max-connections",
        envvar="FRACTAL_MAX_CONNECTIONS",
        min=16,
        help="Connections of this process; one address gets half of them.",
    ),
]
StreamsPerToken = Annotated[
    int, Option("--streams-per-token", envvar="FRACTAL_STREAMS_PER_TOKEN", min=1, help="Open streams of one token.")
]
WaitsPerToken = Annotated[
    int,
    Option(
        "--waits-per-token",
        envvar="FRACTAL_WAITS_PER_TOKEN",
        min=1,
        help="Requests of one token that wait for news or for agents.",
    ),
]
RequestsPerToken = Annotated[
    int,
    Option(
        "--requests-per-token",
        envvar="FRACTAL_REQUESTS_PER_TOKEN",
        min=1,
        help="Requests of one token that are worked on at once; the next ones wait.",
    ),
]
FailuresPerMinute = Annotated[
    int,
    Option(
        "--failures-per-minute",
        envvar="FRACTAL_FAILURES_PER_MINUTE",
        min=1,
        help="Failed log-ins of one address, or with one token, before they are slowed.",
    ),
]


def _addresses(text: str) -> str:
    for one in filter(None, (part.strip() for part in text.split(","))):
        try:
            ip_network(one, strict=False)
        except ValueError:
            raise BadParameter(f"{one!r} is no address: give addresses or networks, such as 10.0.0.0/8") from None
    return text


TrustedProxies = Annotated[
    str,
    Option(
        "--trusted-proxies",
        envvar="FRACTAL_TRUSTED_PROXIES",
        callback=_addresses,
        help="Addresses whose X-Forwarded-For and X-Forwarded-Proto are believed, separated by commas.",
    ),
]
