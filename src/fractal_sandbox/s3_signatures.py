"""Requests signed as for S3 (Signature Version 4), at clouds that speak it beside their own tongue: whose key, and
whether it is theirs; and answers in the XML that S3's clients read.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final
from urllib.parse import urlsplit

from fractal_sandbox.rest import Reply, Request

__all__ = ["is_signed_with", "key_id_of", "refused", "xml"]

_PARTS: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/,]+)/(\d{8}/[^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)"
)
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"


def key_id_of(request: Request) -> str:
    """The id of the key a request says it is signed with; empty where it says none."""
    found = _PARTS.fullmatch(request.headers.get("authorization", ""))
    return found[1] if found else ""


def is_signed_with(request: Request, secret: str, region: str) -> bool:
    """Whether a request was signed with that secret, for that region, as it arrived here."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    found = _PARTS.fullmatch(request.headers.get("authorization", ""))
    digest = request.headers.get("x-amz-content-sha256", "")
    if found is None or digest not in (_UNSIGNED, hashlib.sha256(request.body).hexdigest()):
        return False
    signed = {name: request.headers.get(name, "") for name in found[3].split(";")}
    if not {"host", "x-amz-date", "x-amz-content-sha256"} <= signed.keys():
        return False
    parts = urlsplit(request.base)
    asked = AWSRequest(request.method, f"{parts.scheme}://{parts.netloc}{request.target}", headers=signed)
    asked.context["timestamp"] = signed["x-amz-date"]
    signer = S3SigV4Auth(Credentials(found[1], secret), "s3", region)
    if signer.credential_scope(asked) != found[2]:
        return False
    right = signer.signature(signer.string_to_sign(asked, signer.canonical_request(asked)), asked)
    return secrets.compare_digest(str(right), found[4])


def xml(status: int, content: str) -> Reply:
    """An answer in XML."""
    text = f'<?xml version="1.0" encoding="UTF-8"?>{content}'
    return Reply(status, text.encode(), (("Content-Type", "application/xml"),))


def refused(status: int, code: str, message: str) -> Reply:
    """A refusal, as S3's clients read it."""
    reply = xml(status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>")
    return Reply(reply.status, reply.content, reply.headers, error=code)
