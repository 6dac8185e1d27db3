"""Ports for servers that tests start and stop again under one address.

A port that the kernel hands out (port 0) may be handed to anybody's connection while its server is down. These lie
below what it hands out, and every worker of the test run has its own.
"""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path
from typing import Final

_HANDED_OUT: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_EACH: Final = 1_000
_MOST_WORKERS: Final = 12


def _first() -> int:
    """Where the ports of this worker begin."""
    lowest = int(_HANDED_OUT.read_text().split()[0]) if _HANDED_OUT.exists() else 32_768
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _MOST_WORKERS
    return max(lowest - _EACH * _MOST_WORKERS, 1_024) + _EACH * worker


_next = itertools.cycle(range(_first(), _first() + _EACH))


def free_port() -> int:
    """A port of the loopback that nobody has, and that nobody gets by chance."""
    for _ in range(_EACH):
        port = next(_next)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
