"""What the codes of Azure's refusals mean in our closed set of errors. How a call is sent is for ``offers.rest``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    DependencyMissing,
    Invalid,
    LimitReached,
    NotFound,
    Overtaken,
    Protected,
    Throttled,
    Transient,
    Unreadable,
)

NO_GROUP: Final = "ResourceGroupNotFound"
# What a read that is answered with 404 proves something by.
_ABSENT: Final = frozenset({"NotFound", "ParentResourceNotFound", "ResourceNotFound", NO_GROUP})
_NOT_ALLOWED: Final = "OperationNotAllowed"
_QUOTA: Final = "quota"
_LIMITS: Final = ("CountExceeded", "CountLimitReached", "LimitExceeded", "LimitReached", "PerSubscriptionExceeded")
# What a write refers to is not there, under the status of a bad request. «Resource … referenced by resource … was not
# found. Please make sure that the referenced resource exists»: https://github.com/MicrosoftDocs/azure-docs/issues/81734
# «Principal … does not exist in the directory»: https://learn.microsoft.com/azure/role-based-access-control/troubleshooting
_MISSING: Final = frozenset({"InvalidResourceReference", "PrincipalNotFound"})
# Azure answers these with a status that says less, or something else.
_BY_CODE: Final[Mapping[str, type[CloudError]]] = {
    # busy, full, or in use: it may go later
    "AllocationFailed": Conflict,
    "AnotherOperationInProgress": Conflict,
    "InUseNetworkSecurityGroupCannotBeDeleted": Conflict,
    "InUseSubnetCannotBeDeleted": Conflict,
    "InUseSubnetCannotBeUpdated": Conflict,
    _NOT_ALLOWED: Conflict,
    "RetryableErrorDueToAnotherOperation": Conflict,
    "SkuNotAvailable": Conflict,
    # the name or the value will never do
    "InvalidResourceLocation": Invalid,
    "PropertyChangeNotAllowed": Invalid,
    "ServerNameAlreadyExists": Invalid,
    "StorageAccountAlreadyTaken": Invalid,
    "StorageAccountInAnotherResourceGroup": Invalid,
    # a subscription that these credentials do not reach is no proof that something in it is gone
    "InvalidSubscriptionId": Denied,
    "SubscriptionNotFound": Denied,
    "ScopeLocked": Protected,
    "TooManyRequests": Throttled,
}
_BY_STATUS: Final[Mapping[int, type[CloudError]]] = {
    401: Denied,
    403: Denied,
    404: NotFound,
    408: Transient,
    409: Conflict,
    412: Overtaken,
    429: Throttled,
}


def kind_of(status: int, code: str, method: str, words: str = "") -> type[CloudError]:
    """Return the error of the closed set that a refusal is.

    Azure says «OperationNotAllowed» of quotas, too: only the words distinguish them.
    """
    is_quota = "Quota" in code or code.endswith(_LIMITS) or (code == _NOT_ALLOWED and _QUOTA in words.lower())
    if is_quota and status != 429:
        return LimitReached
    if code == NO_GROUP and method in ("PUT", "PATCH", "POST"):
        return Conflict  # somebody makes the group, and it goes on
    if code in _MISSING and method != "GET":
        return DependencyMissing
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status == 404 and method == "GET" and code not in _ABSENT:
        return Unreadable  # Azure says it also of a provider or a type that it does not know
    if status == 0 or status >= 500:
        return Transient
    return _BY_STATUS.get(status, Invalid)


def code_and_words(body: Any) -> tuple[str, str]:
    """The code and the words of a refusal; some services leave the usual envelope away."""
    error = body.get("error", body) if isinstance(body, dict) else {}
    if not isinstance(error, dict):
        return "", str(error)
    details = [one.get("message") for one in error.get("details") or () if isinstance(one, dict)]
    words = [error.get("message"), *details]
    return str(error.get("code") or ""), "; ".join(str(text).strip(". ") for text in words if text)
