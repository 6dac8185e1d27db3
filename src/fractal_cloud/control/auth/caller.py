"""By what a request is counted: the token it came with, else the address it came from."""

from __future__ import annotations

import ipaddress
from typing import Final

from starlette.types import Scope

_IPV6_PREFIX: Final = 64
"""A network of this size is one client's own: it has as many addresses as it likes."""


def caller(scope: Scope) -> str:
    """Whom a request is counted for."""
    principal = scope.get("state", {}).get("principal")
    return f"address {address(scope)}" if principal is None else f"token {principal.id}"


def address(scope: Scope) -> str:
    """Where a request came from: an IPv4 address, or an IPv6 network."""
    client = scope.get("client")
    host: str = client[0] if client else ""
    if ":" not in host:
        return host
    try:
        found = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = found.ipv4_mapped
    return str(mapped or ipaddress.IPv6Network((int(found) >> _IPV6_PREFIX << _IPV6_PREFIX, _IPV6_PREFIX)))
