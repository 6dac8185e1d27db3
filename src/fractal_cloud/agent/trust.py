"""How the control plane is reached: whom a client trusts, and whether others could read a token on its way."""

from __future__ import annotations

import ssl
from urllib.parse import urlsplit

from fractal_cloud.model.address import is_loopback


class BadAuthority(ValueError):
    """A file holds no certificate of an authority; the text says which and why."""


def trusted(ca_file: str) -> ssl.SSLContext | bool:
    """What a client verifies certificates with: the usual authorities, and those in a file."""
    if not ca_file:
        return True
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(cafile=ca_file)
    except OSError as error:
        why = error.strerror or "it holds no certificate in PEM"
        raise BadAuthority(f"the certificates in {ca_file!r} cannot be used: {why}") from None
    return context


def plain_text_warning(url: str, token: str) -> str:
    """What to say before a token is sent to an address over plain http, past this machine; empty where it is not."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if not token or parts.scheme != "http" or is_loopback(parts.hostname or ""):
        return ""
    return f"the token is sent to {parts.hostname} over plain http, where others can read it: use https"
