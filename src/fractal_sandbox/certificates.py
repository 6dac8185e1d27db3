"""An authority of the sandbox's own, for vendors' tools that send their tokens over TLS only.

It is made anew for every process, in its memory: whoever trusts it trusts nothing but this one process.
"""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography import x509

__all__ = ["Authority", "authority"]

_LIFE = timedelta(days=365)


class Authority:
    """Makes its keys when it is first asked for something: most sandboxes never are."""

    @cached_property
    def certificate(self) -> str:
        """What a client must trust, as PEM."""
        return self._made[0]

    @cached_property
    def context(self) -> ssl.SSLContext:
        """What a server answers with."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "server.pem"
            path.write_text(self._made[1])
            context.load_cert_chain(path)
        return context

    @cached_property
    def _made(self) -> tuple[str, str]:
        """The authority's certificate, and the server's with its key."""
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        authority_name, server_name = _name("fractal sandbox authority"), _name("fractal sandbox")
        authority = _certificate(authority_name, authority_name, authority_key.public_key(), is_authority=True)
        authority = authority.add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        server = _certificate(server_name, authority_name, server_key.public_key(), is_authority=False)
        server = server.add_extension(x509.SubjectAlternativeName(names), critical=False)
        server = server.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        pem = serialization.Encoding.PEM
        key = server_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        signed = _signed(server, authority_key).public_bytes(pem)
        return _signed(authority, authority_key).public_bytes(pem).decode(), (signed + key).decode()


@cache
def authority() -> Authority:
    """The one of this process: what its clouds name to clients as trusted is what its ports answer with."""
    return Authority()


def _name(text: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: Any, *, is_authority: bool) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _signed(builder: x509.CertificateBuilder, key: Any) -> x509.Certificate:
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())
