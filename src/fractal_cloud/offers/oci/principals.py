"""Instance principals: a machine of OCI trades its own certificate for a token, and comes again before that ends."""

from __future__ import annotations

import json
import os
from typing import Any, Final

from fractal_cloud.model.errors import Denied
from fractal_cloud.offers.oci.credentials import Token
from fractal_cloud.offers.oci.regions import address
from fractal_cloud.offers.oci.signing import Key, certificate_facts, sign

METADATA: Final = "http://169.254.169.254/opc/v2"
_HEADERS: Final = {"authorization": "Bearer Oracle"}
_SECONDS: Final = 10.0
_ARMOUR: Final = ("CERTIFICATE", "PUBLIC KEY")


def instance_principal(region: str = "") -> Token:
    """The principal of the machine this runs on; raises ``Denied`` where it is no machine of OCI."""
    region = region or str(json.loads(_metadata("instance/regionInfo"))["regionIdentifier"]).lower()
    tenancy, _ = certificate_facts(_metadata("identity/cert.pem"))
    return Token(lambda: _token(region), region, tenancy)


def _token(region: str) -> tuple[str, Key]:
    """A fresh token, for a fresh key: asked for with the machine's certificate, which is replaced now and then."""
    certificate = _metadata("identity/cert.pem")
    tenancy, fingerprint = certificate_facts(certificate)
    session = Key.new()
    body = json.dumps(
        {
            "certificate": _bare(certificate),
            "publicKey": _bare(session.public_pem()),
            "intermediateCertificates": [_bare(_metadata("identity/intermediate.pem"))],
        }
    ).encode()
    url = os.environ.get("OCI_CLI_FEDERATION_ENDPOINT") or f"{address('auth', region)}/v1/x509"
    headers = {"content-type": "application/json"}
    own = Key.from_pem(_metadata("identity/key.pem"))
    sign(own, f"{tenancy}/fed-x509/{fingerprint}", "POST", url, headers, body, generic=("date", "(request-target)"))
    answer = _send("POST", url, headers, body)
    try:
        return str(json.loads(answer)["token"]), session
    except (ValueError, KeyError) as error:
        raise Denied(f"{url} answers no token: {answer[:200]!r}") from error


def _metadata(path: str) -> str:
    base = os.environ.get("OCI_METADATA_BASE_URL", "").strip().rstrip("/") or METADATA
    return _send("GET", f"{base}/{path}", dict(_HEADERS))


def _send(method: str, url: str, headers: dict[str, str], content: bytes = b"") -> str:
    import httpx2

    try:
        answer: Any = httpx2.request(method, url, headers=headers, content=content, timeout=_SECONDS)
    except httpx2.HTTPError as error:
        raise Denied(f"{url} does not answer ({error}): instance principals need a machine of OCI") from error
    if answer.status_code != 200:
        raise Denied(f"{url} refuses: {answer.status_code} {answer.text[:200]!r}")
    return str(answer.text)


def _bare(pem: str) -> str:
    """A PEM text without its armour, in one line."""
    for word in _ARMOUR:
        pem = pem.replace(f"-----BEGIN {word}-----", "").replace(f"-----END {word}-----", "")
    return "".join(pem.split())
