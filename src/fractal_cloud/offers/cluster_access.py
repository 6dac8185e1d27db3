"""How a cluster that a vendor keeps is entered, and to which addresses an agent sends its credentials (A6).

The vendor's own API says where a cluster answers and which authority it has, asked by the agent that enters it, with
its own credentials. What it says is still held against the vendor's host names: an answer that leads elsewhere is not
followed. A setting allows further hosts.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import yaml

from fractal_cloud.model.errors import Denied, Unreadable

ALLOWED: Final = "FRACTAL_ENDPOINT_HOSTS"
"""Further hosts to which an agent may send its credentials: names or patterns, each with a port where it is not 443."""
# Nothing but scheme, host, port and a plain path: no user, no query, nothing that two readers could read differently.
_SERVER: Final = re.compile(
    r"https://(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~-]+)*)/?",
    re.ASCII,
)
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the clusters of a vendor answer: patterns of host names, in lower case.

    ``ports``: the only ones. ``has_ips``: they may answer at an address without a name; whoever answers there is known
    by the authority that the vendor's API named in the same answer.
    """

    names: tuple[str, ...] = ()
    ports: frozenset[int] = frozenset({443})
    has_ips: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """How a cluster is entered. ``authority``, ``certificate`` and ``key`` are PEM in base64.

    ``token``: asked before every request, and quick; None where a certificate is enough. ``context``: what people call
    the cluster once the vendor's own command has entered it into their kubeconfig.
    """

    context: str
    server: str
    authority: str
    token: Callable[[], str] | None = None
    certificate: str = ""
    key: str = ""

    def kubeconfig(self) -> dict[str, Any]:
        """The same in the form the official client takes; a token is not in it."""
        certificate = {"client-certificate-data": self.certificate, "client-key-data": self.key}
        cluster = {"server": self.server, "certificate-authority-data": self.authority}
        return {
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": certificate if self.certificate else {}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }


def check_access(access: Access, addresses: Addresses) -> None:
    """Raise ``Unreadable`` where credentials must not be sent to what a vendor's API named."""
    found = _SERVER.fullmatch(access.server)
    if found is None:
        raise Unreadable(f"the cloud says that the cluster answers at {access.server!r}, which is no https address")
    host, port = found["host"].lower(), int(found["port"] or 443)
    if not _is_allowed(host, port, allowed_hosts()) and not (not found["path"] and _is_vendors(host, port, addresses)):
        raise Unreadable(
            f"the cloud says that the cluster answers at {access.server!r}, which is none of its host names: "
            f"nothing is sent there; if it is right, allow it: {ALLOWED}={host}{'' if port == 443 else f':{port}'}"
        )
    if not _is_certificate(access.authority):
        raise Unreadable("the cloud does not say by which authority the cluster is known: nothing is sent to it")


def allowed_hosts() -> list[str]:
    """What the setting allows beside the vendors' own host names."""
    return [one.strip().lower() for one in os.environ.get(ALLOWED, "").split(",") if one.strip()]


def _is_allowed(host: str, port: int, allowed: Iterable[str]) -> bool:
    return any(fnmatchcase(f"{host}:{port}", one if _has_port(one) else f"{one}:443") for one in allowed)


def _has_port(pattern: str) -> bool:
    return re.search(r":[0-9*]+$", pattern.removeprefix("[")) is not None and not pattern.endswith("]")


def _is_vendors(host: str, port: int, addresses: Addresses) -> bool:
    if port not in addresses.ports:
        return False
    try:
        ip = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return any(re.fullmatch(name, host) for name in addresses.names)
    # A private cluster has a private address; what leads to this machine, or to the cloud's metadata, is none.
    is_elsewhere = not (ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip.is_reserved)
    return addresses.has_ips and is_elsewhere


def _is_certificate(text: object) -> bool:
    try:
        return isinstance(text, str) and _CERTIFICATE in base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False


def of_kubeconfig(context: str, content: Any, token: Callable[[], str] | None = None) -> Access:
    """What a kubeconfig in base64 says of its current context; ``token``: where it would execute something for one."""
    try:
        kubeconfig = yaml.safe_load(base64.b64decode(content, validate=True))
        contexts = {one["name"]: one["context"] for one in kubeconfig["contexts"]}
        here = contexts[kubeconfig["current-context"]]
        cluster = {one["name"]: one["cluster"] for one in kubeconfig["clusters"]}[here["cluster"]]
        user = {one["name"]: one["user"] for one in kubeconfig["users"]}[here["user"]]
        server, authority = str(cluster["server"]), str(cluster["certificate-authority-data"])
    except (binascii.Error, yaml.YAMLError, UnicodeError, KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"the kubeconfig that was downloaded cannot be read ({type(error).__name__})") from error
    if user.get("client-certificate-data"):
        return Access(context, server, authority, None, user["client-certificate-data"], user["client-key-data"])
    if user.get("token"):
        return Access(context, server, authority, lambda: str(user["token"]))
    if token is None:
        raise Denied("the kubeconfig that was downloaded holds neither a token nor a certificate")
    return Access(context, server, authority, token)
