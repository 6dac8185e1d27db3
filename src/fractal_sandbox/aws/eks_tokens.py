"""Who a token for an EKS cluster says it is: a signed `GetCallerIdentity`, good for the cluster whose name is signed.

The real cluster sends the request to AWS's token service, which checks the signature; here it is checked at once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from fractal_sandbox.aws import AGENT_ACCESS_KEY, PERSON_ACCESS_KEY, SECRET_KEY
from fractal_sandbox.calls import Actor

__all__ = ["caller"]

_PREFIX: Final = "k8s-aws-v1."
_HEADER: Final = "x-k8s-aws-id"
_ACTORS: Final[dict[str, Actor]] = {AGENT_ACCESS_KEY: "agent", PERSON_ACCESS_KEY: "person"}
_LIFE: Final = timedelta(minutes=15)


def caller(token: str, cluster: str) -> Actor | None:
    """Who made a token for that cluster; None where it is malformed, too old, or for another cluster."""
    if not token.startswith(_PREFIX):
        return None
    text = token.removeprefix(_PREFIX)
    try:
        url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
        query = dict(parse_qsl(url.query, strict_parsing=True))
        signature = query.pop("X-Amz-Signature")
        key, day, region, service, _ = query["X-Amz-Credential"].split("/")
        signed_at = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        headers = query["X-Amz-SignedHeaders"].split(";")
    except (binascii.Error, UnicodeError, ValueError, KeyError):
        return None
    is_question = query.get("Action") == "GetCallerIdentity" and service == "sts" and _HEADER in headers
    if not is_question or abs(datetime.now(UTC) - signed_at) > _LIFE:
        return None
    values = {"host": url.netloc, _HEADER: cluster}
    if any(name not in values for name in headers):
        return None
    asked = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in sorted(query.items()))
    canonical = "\n".join(
        [
            *("GET", url.path or "/", asked, *(f"{name}:{values[name]}" for name in headers), ""),
            *(";".join(headers), _hash(b"")),
        ]
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, _hash(canonical.encode())])
    signing = f"AWS4{SECRET_KEY}".encode()
    for part in (day, region, service, "aws4_request"):
        signing = hmac.digest(signing, part.encode(), "sha256")
    is_good = hmac.compare_digest(hmac.digest(signing, text.encode(), "sha256").hex(), signature)
    return _ACTORS.get(key) if is_good else None


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
