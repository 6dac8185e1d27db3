"""How Google says no: where its error codes stand, which error of the closed set they are, and its request ids.

How a request is signed is passed in, because only the session knows the vendor's auth library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    DependencyMissing,
    Invalid,
    LimitReached,
    Overtaken,
    Throttled,
    Unreadable,
)
from fractal_cloud.offers.refusals import refusal
from fractal_cloud.offers.rest import Answer, Dialect

PROVIDER: Final = "gcp"
UPLOAD_ID: Final = "x-guploader-uploadid"

_EXHAUSTED: Final = "RESOURCE_EXHAUSTED"  # said of calls and of quotas
# Whatever their status: some services throttle with 403, and refuse what is merely busy with 400.
_BY_CODE: Final[Mapping[str, type[CloudError]]] = {
    "rateLimitExceeded": Throttled,
    "userRateLimitExceeded": Throttled,
    "quotaExceeded": LimitReached,
    "QUOTA_EXCEEDED": LimitReached,
    "RATE_LIMIT_EXCEEDED": Throttled,
    _EXHAUSTED: Throttled,
    "conditionNotMet": Overtaken,
    "ABORTED": Overtaken,
    "resourceInUseByAnotherResource": Conflict,
    "resourceNotReady": Conflict,
    "operationInProgress": Conflict,
    "FAILED_PRECONDITION": Conflict,
}
# An operation that was begun and came to nothing: what is short today may be there tomorrow.
_SHORT: Final = ("EXHAUSTED", "STOCKOUT", "RESOURCE_POOL", "TIMEOUT")
# Quotas of calls, which are full again after their time; all others are limits of what may be there.
_RATES: Final = ("per minute", "per second", "per 100 seconds", "per day", "rate limit")
_QUOTA: Final = "QUOTA"
_MISSING: Final = re.compile(
    r"the referenced [\w ]+ resource cannot be found|\b(network|subnetwork|service ?account|address)\b.* does not exist"
    r"|resource '[^']+' was not found",
    re.IGNORECASE,
)
"""What a request refers to is not there, under the status of a bad request or in an operation that came to nothing.

«Invalid value for field 'resource.networkInterfaces[0].network': … The referenced network resource cannot be found»:
https://github.com/google/anthos-microk8s/issues/1; «Network 'default' does not exist»:
https://github.com/GoogleCloudPlatform/google-cloud-eclipse/issues/3578.
"""
_HARMLESS: Final = frozenset({"NO_RESULTS_ON_PAGE"})


class GoogleDialect(Dialect):
    """Google's HTTP. ``token``: gives the bearer token of the moment; raises ``Denied`` where there is none."""

    provider = PROVIDER

    def __init__(self, token: Callable[[], str], headers: Mapping[str, str]) -> None:
        self._token = token
        self._headers = headers

    def authorise(self, method: str, url: str, headers: dict[str, str], content: bytes) -> None:
        """Add the bearer token, and the project that pays for the calls where the credentials name one."""
        del method, url, content
        headers["authorization"] = f"Bearer {self._token()}"
        headers.update(self._headers)

    def code_and_message(self, answer: Answer) -> tuple[str, str]:
        """Return the most specific code of a refusal (reason before status), and its words."""
        error = (answer.body() or {}).get("error") if isinstance(answer.body(), dict) else None
        if not isinstance(error, dict):
            return "", answer.content[:200].decode("utf-8", "replace")
        reasons = [one.get("reason") for key in ("errors", "details") for one in error.get(key) or ()]
        code = next((reason for reason in reasons if reason), error.get("status") or "")
        return str(code), str(error.get("message") or "")

    def kind_of(self, answer: Answer, code: str) -> type[CloudError]:
        """What the code says, else what the status says."""
        if not 400 <= answer.status < 500:
            return super().kind_of(answer, code)
        kind = _BY_CODE.get(code)
        words = self.code_and_message(answer)[1].lower()
        is_open = kind in (None, LimitReached) or code == _EXHAUSTED
        if is_open and answer.status != 404 and "quota" in words:
            return Throttled if any(rate in words for rate in _RATES) else LimitReached
        if kind is None and answer.status == 400 and not answer.call.is_read and _MISSING.search(words):
            return DependencyMissing
        return kind or super().kind_of(answer, code)

    def request_id(self, answer: Answer) -> str:
        """The operation that a write began, under whose name the audit log has it; Cloud Storage's own id there."""
        body = answer.body()
        began = body.get("name") if isinstance(body, dict) and _is_operation(body) else None
        return str(began or answer.headers.get(UPLOAD_ID, ""))


def _is_operation(body: Mapping[str, Any]) -> bool:
    return (
        str(body.get("kind", "")).endswith("#operation")
        or "operationType" in body
        or "/operations/" in str(body.get("name", ""))
    )


def check_whole(page: Mapping[str, Any], where: str) -> None:
    """Raise where Google answers a list although it could not reach all of it: unreachable is not absent (S0)."""
    warnings = [page.get("warning") or {}, *(page.get("warnings") or ())]
    said = [str(one.get("message") or one["code"]) for one in warnings if one.get("code", "") not in ("", *_HARMLESS)]
    missing = [*(page.get("missingZones") or ()), *(page.get("unreachable") or ())]
    if said or missing:
        cause = "; ".join(said) or f"{', '.join(map(str, missing))} did not answer"
        raise Unreadable(f"{cause} ({where}): the list is not whole, so nothing is decided from it")


def check_operation(operation: Mapping[str, Any], call: str) -> None:
    """Raise where an operation that Google took has come to nothing already."""
    errors: Iterable[Mapping[str, Any]] = (operation.get("error") or {}).get("errors") or ()
    for error in errors:
        code = str(error.get("code") or "")
        if code == "PERMISSIONS_ERROR":
            kind: type[CloudError] = Denied
        elif _QUOTA in code:
            kind = LimitReached
        else:
            kind = Throttled if any(word in code for word in _SHORT) else Invalid
        words = str(error.get("message") or code)
        if kind is Invalid and (code == "RESOURCE_NOT_FOUND" or _MISSING.search(words)):
            kind = DependencyMissing
        raise refusal(kind, words, provider=PROVIDER, code=code, call=call, request_id=str(operation.get("name", "")))
