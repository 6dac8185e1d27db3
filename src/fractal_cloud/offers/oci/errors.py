"""OCI's HTTP: how a request is signed, where its ids and error codes stand, and what they mean in our closed set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    Invalid,
    LimitReached,
    NotFound,
    Overtaken,
    Throttled,
)
from fractal_cloud.offers.oci.credentials import Caller
from fractal_cloud.offers.oci.signing import sign
from fractal_cloud.offers.rest import Answer, Dialect

# What is not there, and what the caller may not see: OCI says the same of both, so nothing is concluded from a write.
HIDDEN: Final = frozenset({"NotAuthorizedOrNotFound", "BucketNotFound", "NamespaceNotFound", "NotFound"})
_BY_CODE: Final[dict[str, type[CloudError]]] = {
    "BucketAlreadyExists": Invalid,
    "IfMatchFailed": Overtaken,
    "LimitExceeded": LimitReached,
    "NoEtagMatch": Overtaken,
    "NotAuthenticated": Denied,
    "OutOfHostCapacity": Conflict,
    "QuotaExceeded": LimitReached,
    "SignUpRequired": Denied,
    "TooManyRequests": Throttled,
}


class OciDialect(Dialect):
    """``caller``: whose key signs; asked for every request, because some keys are replaced every hour."""

    provider = "oci"
    request_id_header = "opc-request-id"

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self._caller = caller

    def authorise(self, method: str, url: str, headers: dict[str, str], content: bytes) -> None:
        """Sign the request."""
        key_id, key = self._caller().key()
        sign(key, key_id, method, url, headers, content)

    def code_and_message(self, answer: Answer) -> tuple[str, str]:
        """The code and the message of a refusal."""
        body = answer.body()
        if isinstance(body, dict):
            return str(body.get("code") or ""), str(body.get("message") or "")
        return "", answer.content[:300].decode("utf-8", "replace")

    def kind_of(self, answer: Answer, code: str) -> type[CloudError]:
        """A 404 to a write is a refusal: what is written to was seen a moment ago, so the rights are what lacks."""
        if answer.status == 404 or code in HIDDEN:
            return NotFound if answer.call.is_read else Denied
        return _BY_CODE.get(code) or super().kind_of(answer, code)
