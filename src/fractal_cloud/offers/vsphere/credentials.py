"""Where vSphere's users keep what opens a vCenter: the environment of `govc`, or that of Terraform's provider.

How it is used does not belong here.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from fractal_cloud.model.errors import Denied

_ADVICE: Final = "set GOVC_URL, GOVC_USERNAME and GOVC_PASSWORD (or VSPHERE_SERVER, VSPHERE_USER and VSPHERE_PASSWORD)"
_TRUE: Final = frozenset({"1", "true", "yes"})


@dataclass(frozen=True, slots=True)
class Credentials:
    """What opens one vCenter. ``base``: its address; what it answers lies below `/sdk`, `/api` and `/rest`."""

    base: str
    user: str
    password: str = field(repr=False)
    is_insecure: bool = False
    authorities: str = ""

    def context(self) -> ssl.SSLContext:
        """How its certificate is checked."""
        context = ssl.create_default_context(cafile=self.authorities or None)
        if self.is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def is_at_hand() -> bool:
    """Whether this environment names a vCenter."""
    return bool(_said("GOVC_URL", "VSPHERE_SERVER"))


def credentials() -> Credentials:
    """The vCenter that `govc` would talk to; raises ``Denied``, saying what to do, where none is named."""
    address = _said("GOVC_URL", "VSPHERE_SERVER")
    if not address:
        raise Denied(f"no vCenter is named: {_ADVICE}")
    return of_address(
        address,
        _said("GOVC_USERNAME", "VSPHERE_USER"),
        _said("GOVC_PASSWORD", "VSPHERE_PASSWORD"),
        is_insecure=_said("GOVC_INSECURE", "VSPHERE_ALLOW_UNVERIFIED_SSL").lower() in _TRUE,
        authorities=_said("GOVC_TLS_CA_CERTS"),
    )


def of_address(address: str, user: str, password: str, *, is_insecure: bool, authorities: str) -> Credentials:
    """The vCenter at an address, which may hold the login itself; raises ``Denied`` where something is missing."""
    url = urlsplit(address if "://" in address else f"https://{address}")
    user = user or unquote(url.username or "")
    password = password or unquote(url.password or "")
    if not url.hostname or not user or not password:
        raise Denied(f"the vCenter at {url.hostname or address!r} cannot be logged in to: {_ADVICE}")
    port = f":{url.port}" if url.port else ""
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    path = url.path.rstrip("/").removesuffix("/sdk")
    return Credentials(
        base=f"{url.scheme}://{host}{port}{path}",
        user=user,
        password=password,
        is_insecure=is_insecure,
        authorities=authorities,
    )


def _said(*names: str) -> str:
    return next((value for name in names if (value := os.environ.get(name, ""))), "")
