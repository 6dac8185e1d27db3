"""Who sends a request: the signature is verified as OCI verifies it, so a client that signs wrongly is turned away."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from fractal_sandbox.calls import Actor
from fractal_sandbox.oci import USERS, key_id
from fractal_sandbox.oci.keys import public_key
from fractal_sandbox.rest import Refused

__all__ = ["signer_of"]

_PART: Final = re.compile(r'(\w+)="([^"]*)"')
_NEEDED: Final = frozenset({"date", "(request-target)", "host"})
_NEEDED_OF_BODIES: Final = frozenset({"content-length", "content-type", "x-content-sha256"})
_OBJECT: Final = re.compile(r"/b/[^/]+/o/")  # the content of an object is not signed
_SKEW: Final = timedelta(minutes=5)


def signer_of(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Actor:
    """Whose key signed a request; `target` is its path and query as they were sent."""
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    parts = dict(_PART.findall(rest))
    actor = next((one for one in USERS if key_id(one) == parts.get("keyId")), None)
    if scheme != "Signature" or parts.get("algorithm") != "rsa-sha256" or actor is None:
        raise _stranger()
    names = parts.get("headers", "").split()
    has_body = method in ("POST", "PUT", "PATCH") and not _OBJECT.search(target)
    needed = _NEEDED | (_NEEDED_OF_BODIES if has_body else frozenset())
    if not needed <= set(names) or _is_old(headers.get("date", "")) or not _is_body(headers, body, names):
        raise _stranger()
    values = {**headers, "(request-target)": f"{method.lower()} {target}", "content-length": str(len(body))}
    lines = [f"{name}: {values.get(name, '')}" for name in names]
    if not _verifies(actor, "\n".join(lines), parts.get("signature", "")):
        raise _stranger()
    return actor


def _verifies(actor: Actor, text: str, signature: str) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        public_key(actor).verify(b64decode(signature), text.encode(), PKCS1v15(), SHA256())
    except (InvalidSignature, ValueError):
        return False
    return True


def _is_old(date: str) -> bool:
    try:
        return abs(datetime.now(UTC) - parsedate_to_datetime(date)) > _SKEW
    except (ValueError, TypeError):
        return True


def _is_body(headers: Mapping[str, str], body: bytes, names: list[str]) -> bool:
    digest = headers.get("x-content-sha256")
    return "x-content-sha256" not in names or digest == b64encode(hashlib.sha256(body).digest()).decode()


def _stranger() -> Refused:
    return Refused(401, "NotAuthenticated", "The required information to complete authentication was not provided.")
