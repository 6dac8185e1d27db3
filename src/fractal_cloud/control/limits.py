"""How much of one server process its clients may take, all of them and each by itself (A9)."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
_KEPT_FILES: Final = 256
"""Open files that are never given to clients: the database, its log, the libraries."""
_MOST_FILES: Final = 65_536


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What clients may send, how slowly, and how much of it at once; each is a setting of `fractal serve`.

    ``header_bytes``, ``header_seconds``: the request line and the headers of one request, and the time for all of them.
    ``body_bytes``, ``report_bytes``: a body, and one of an agent. ``bodies_bytes``: all bodies under way; one token or
    address gets a quarter. ``stall_seconds``: a body or an answer that hardly moves for so long is given up.
    ``idle_seconds``: until a connection without a request is closed; longer than clients and balancers keep one (60 s),
    so that it is they who close it, never under a request. ``connections``: of one process; one address gets half,
    unless it is one of ``trusted_proxies``, whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are believed.
    ``streams_per_token``, ``waits_per_token``, ``requests_per_token``: streams of events, requests that wait for agents
    or for news, and other requests that are worked on at once. ``failures_per_minute``: failed log-ins of one address,
    or with one token, before they are slowed.
    """

    header_bytes: int = 32 * KIB
    header_seconds: float = 10.0
    body_bytes: int = 8 * MIB
    report_bytes: int = 64 * MIB
    bodies_bytes: int = 256 * MIB
    stall_seconds: float = 20.0
    idle_seconds: float = 75.0
    connections: int = 8192
    streams_per_token: int = 100
    waits_per_token: int = 1000
    requests_per_token: int = 4
    failures_per_minute: int = 60
    trusted_proxies: str = "127.0.0.1,::1"

    @property
    def bodies_bytes_of_one(self) -> int:
        """What the bodies of one token or address may take; one body of the largest size always fits."""
        return max(self.bodies_bytes // 4, self.body_bytes, self.report_bytes)


DEFAULT_CLIENT_LIMITS: Final = ClientLimits()


def allow_open_files() -> None:
    """Let this process open as many files as it may: the usual 1,024 are fewer than its connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def possible_connections(wanted: int) -> int:
    """How many connections this process can hold and still open its own files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(16, min(wanted, soft - _KEPT_FILES))
