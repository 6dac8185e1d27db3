"""How OCI wants requests signed: HTTP signatures, version 1, by an RSA key. The one file that knows cryptography.

Where keys come from, and who they belong to, does not belong here.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from email.utils import formatdate
from typing import Any, Final
from urllib.parse import urlsplit

from fractal_cloud.model.errors import Denied

GENERIC: Final = ("date", "(request-target)", "host")
WITH_BODY: Final = ("content-length", "content-type", "x-content-sha256")
_BODIED: Final = frozenset({"POST", "PUT", "PATCH"})


class Key:
    """A private key, and what its signatures look like."""

    def __init__(self, private: Any) -> None:
        self._private = private

    @classmethod
    def from_pem(cls, pem: str, passphrase: str = "") -> Key:
        """The key of a PEM text; raises ``Denied`` where it is none, or its passphrase is another."""
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        secret = passphrase.encode() or None
        try:
            try:
                private = load_pem_private_key(pem.encode(), secret)
            except TypeError:  # a passphrase for a key that has none: one of another profile
                private = load_pem_private_key(pem.encode(), None)
        except (TypeError, ValueError) as error:
            raise Denied(f"the private key cannot be read: {error}; check key_file and pass_phrase") from error
        return cls(private)

    @classmethod
    def new(cls) -> Key:
        """A fresh key, for a session."""
        from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

        return cls(generate_private_key(65537, 2048))

    def public_pem(self) -> str:
        """The public half, as PEM."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        found: bytes = self._private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return found.decode()

    def signature(self, text: str) -> str:
        """What signs a text."""
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA256

        return b64encode(self._private.sign(text.encode(), PKCS1v15(), SHA256())).decode()


def certificate_facts(pem: str) -> tuple[str, str]:
    """The tenancy a certificate of an instance names, and its fingerprint; raises ``Denied`` where it names none."""
    from cryptography.hazmat.primitives.hashes import SHA1
    from cryptography.x509 import load_pem_x509_certificate

    certificate = load_pem_x509_certificate(pem.encode())
    for attribute in certificate.subject:
        beginning, _, tenancy = str(attribute.value).partition(":")
        if beginning in ("opc-tenant", "opc-identity") and tenancy:
            # Not for security: it is the name by which OCI knows the certificate.
            return tenancy, ":".join(f"{byte:02X}" for byte in certificate.fingerprint(SHA1()))  # noqa: S303
    raise Denied("the certificate of this instance names no tenancy: instance principals cannot be used here")


def sign(
    key: Key,
    key_id: str,
    method: str,
    url: str,
    headers: dict[str, str],
    content: bytes,
    generic: Sequence[str] = GENERIC,
) -> None:
    """Add to the headers of a request what proves who sends it."""
    parts = urlsplit(url)
    target = f"{method.lower()} {parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")
    headers.setdefault("date", formatdate(usegmt=True))
    headers["host"] = parts.netloc
    names = list(generic)
    if method in _BODIED:
        headers.setdefault("content-type", "application/json")
        headers["content-length"] = str(len(content))
        headers["x-content-sha256"] = b64encode(hashlib.sha256(content).digest()).decode()
        names += WITH_BODY
    text = "\n".join(f"{name}: {target if name == '(request-target)' else headers[name]}" for name in names)
    headers["authorization"] = (
        f'Signature algorithm="rsa-sha256",headers="{" ".join(names)}",keyId="{key_id}",'
        f'signature="{key.signature(text)}",version="1"'
    )
