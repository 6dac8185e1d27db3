"""Which addresses notifications may be sent to: none inside the network of the control plane, unless a setting says so.

A name is checked where it is connected to, by the addresses that it resolves to at that moment, and the connection goes
to the address that was checked: a name that answers otherwise the second time gains nothing.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, Final

import httpcore2
import httpx2

from fractal_cloud.control.notifying.settings import Network, NotificationSettings
from fractal_cloud.model.visible_text import hidden_character

Address = IPv4Address | IPv6Address
MOST_CHARACTERS: Final = 2_000
_NAT64: Final = IPv6Network("64:ff9b::/96")
HOW_TO_ALLOW: Final = "`fractal serve --notify-networks` allows it"


class BadAddress(ValueError):
    """An address that nothing is sent to; the text says why."""


class NoSuchName(httpcore2.ConnectError):
    """A name that stands for no address."""


def checked_url(text: str, settings: NotificationSettings) -> httpx2.URL:
    """The address of a receiver, or ``BadAddress``. Whom a name stands for shows when it is connected to."""
    if len(text) > MOST_CHARACTERS or hidden_character(text) is not None or " " in text:
        raise BadAddress(f"is no address: at most {MOST_CHARACTERS} characters, without spaces and control characters")
    try:
        url = httpx2.URL(text)
        port = url.port
    except (httpx2.InvalidURL, ValueError):
        raise BadAddress("is no address: give one like https://hooks.example.com/fractal") from None
    if url.scheme not in ("https", "http") or not url.host:
        raise BadAddress("is no address of a web server: give one like https://hooks.example.com/fractal")
    if url.scheme == "http" and not settings.allows_http:
        raise BadAddress("is plain http, where others can read along: give an https address")
    if url.userinfo or url.fragment or port == 0:
        raise BadAddress("has a user, a fragment or port 0: leave that out; notifications are signed instead")
    literal = _literal(url.host)
    if literal is not None and not is_allowed(literal, settings.networks):
        raise BadAddress(f"is inside a network that is not public ({literal}): {HOW_TO_ALLOW}")
    return url


def shown(url: httpx2.URL) -> str:
    """What of an address may be shown: the paths of many hooks are their secret."""
    port = "" if url.port is None else f":{url.port}"
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}{port}/…"


def is_allowed(address: Address, networks: Iterable[Network]) -> bool:
    """Whether an address is public, or in a network that the operator named."""
    meant = _meant(address)
    if any(meant in network for network in networks if network.version == meant.version):
        return True
    return meant.is_global and not meant.is_multicast and not meant.is_reserved and not meant.is_unspecified


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to, where it is one of those."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo is not None else None) or address


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


class GuardedNetwork(httpcore2.NetworkBackend):
    """Connects to allowed addresses only, and ends everything on the connection at a deadline."""

    def __init__(self, networks: Sequence[Network], seconds: float) -> None:
        self._networks = networks
        self._until = time.monotonic() + seconds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Resolve a name, and connect to the first of its allowed addresses that answers."""
        plain = httpcore2.SyncBackend()
        failure: Exception = httpcore2.ConnectError("it has no address")
        for address in self._addresses(host, port):
            try:
                stream = plain.connect_tcp(
                    str(address), port, _left(self._until, timeout), local_address, socket_options or ()
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return _TimedStream(stream, self._until)
        raise failure

    def _addresses(self, host: str, port: int) -> Iterator[Address]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise NoSuchName("its name cannot be resolved") from None
        addresses = [ip_address(str(one[4][0]).partition("%")[0]) for one in found]
        allowed = [one for one in dict.fromkeys(addresses) if is_allowed(one, self._networks)]
        if addresses and not allowed:
            raise BadAddress(f"is inside a network that is not public ({addresses[0]}): {HOW_TO_ALLOW}")
        yield from allowed


class _TimedStream(httpcore2.NetworkStream):
    """A connection of which nothing goes on after a deadline, however slowly the other side feeds it."""

    def __init__(self, stream: httpcore2.NetworkStream, until: float) -> None:
        self._stream = stream
        self._until = until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what is there."""
        return self._stream.read(max_bytes, _left(self._until, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of it."""
        self._stream.write(buffer, _left(self._until, timeout))

    def close(self) -> None:
        """Close it."""
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """Go on encrypted."""
        inner = self._stream.start_tls(ssl_context, server_hostname, _left(self._until, timeout))
        return _TimedStream(inner, self._until)

    def get_extra_info(self, info: str) -> Any:
        """Describe the connection."""
        return self._stream.get_extra_info(info)


def _left(until: float, timeout: float | None) -> float:
    """The seconds that are left, at most those of one step; a moment where none are."""
    left = max(until - time.monotonic(), 0.001)
    return left if timeout is None else min(left, timeout)
