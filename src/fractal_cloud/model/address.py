"""Which addresses only this machine reaches; nothing here resolves a name or opens a connection."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether only this machine is reached by a host's name or address; a name that is not known is not."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
