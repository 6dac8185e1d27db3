"""What AWS's error codes mean in our closed set of errors, as a table.

How an error is caught belongs in cloud.py; nothing here knows the SDK.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    DependencyMissing,
    Invalid,
    LimitReached,
    NotFound,
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.offers.aws.services import services
from fractal_cloud.offers.refusals import refusal, when_read

# What botocore itself counts as throttling, but for LimitExceededException, which ECS and EKS also say of quotas.
_THROTTLED: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
_DENIED: Final = frozenset(
    {
        "403",
        "AccessDenied",
        "AccessDeniedException",
        "AccountProblem",
        "AllAccessDisabled",
        "AuthFailure",
        "Blocked",
        "ExpiredToken",
        "ExpiredTokenException",
        "Forbidden",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "NotAuthorized",
        "OptInRequired",
        "PendingVerification",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
_NOT_FOUND: Final = ("404", "NotFoundException")
_CONFLICT: Final = ("ConflictException",)
_BY_CODE: Final[dict[str, type[CloudError]]] = {
    code: kind
    for kind, codes in (
        (Throttled, _THROTTLED),
        (Denied, _DENIED),
        (NotFound, _NOT_FOUND),
        (Conflict, _CONFLICT),
        *((Invalid, service.invalid) for service in services().values()),
        *((LimitReached, service.limit) for service in services().values()),
        *((NotFound, service.not_found) for service in services().values()),
        *((Conflict, service.conflict) for service in services().values()),
    )
    for code in codes
}
"""What every service says, and what each says by itself."""
_BY_SUFFIX: Final[tuple[tuple[tuple[str, ...], type[CloudError]], ...]] = (
    (("NotFound", "NotFoundFault", "NotFoundException", "NotFoundError"), NotFound),
    (
        (
            *("LimitExceeded", "LimitExceededException", "LimitExceededFault", "CountExceeded"),
            *("QuotaExceeded", "QuotaExceededException", "QuotaExceededFault"),
        ),
        LimitReached,
    ),
)
_BY_STATUS: Final[dict[int, type[CloudError]]] = {
    403: Denied,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: Throttled,
}
_MISSING: Final = re.compile(
    r"\b(bucket|certificate|cluster|function|group|key|load ?balancer|policy|principal|profile|queue|role|secret|"
    r"stream|subnet|target|task ?definition|template|topic|vpc)s?\b.*"
    r"(do(es)? not exist|not (be )?found|cannot be assumed|no longer exists|not have an associated|not accessible)"
    r"|invalid (iam instance profile|principal in policy)|unable to assume",
    re.IGNORECASE | re.DOTALL,
)
"""What services say of something else that a write refers to, under codes that say only that the request is invalid.

Lambda and ECS: https://repost.aws/knowledge-center/ecs-unable-to-assume-role; EC2: «Invalid IAM Instance Profile name».
"""
_SAYS_NOTHING_ELSE: Final = "HeadBucket"
"""The one call whose refusal has no code, only a status: elsewhere a bare 404 comes from something in between (S0)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What AWS said to a call that it did not carry out. ``status`` is 0 where there was no answer at all."""

    message: str
    code: str
    request_id: str
    operation: str
    status: int
    is_read: bool


def kind_of(answer: Answer) -> type[CloudError]:
    """The error of the closed set; a read that failed is never anything from which absence could be concluded."""
    kind = _kind_of_answer(answer)
    if answer.is_read:
        return when_read(kind)
    return DependencyMissing if kind is Invalid and _MISSING.search(answer.message) else kind


def _kind_of_answer(answer: Answer) -> type[CloudError]:
    if answer.code == "404" and answer.is_read and answer.operation != _SAYS_NOTHING_ELSE:
        return Unreadable
    known = _BY_CODE.get(answer.code)
    if known is not None:
        return known
    for endings, kind in _BY_SUFFIX:
        if answer.code.endswith(endings):
            return kind
    if answer.code.startswith("ClusterContains"):
        return Conflict
    if answer.code.startswith("NoSuch"):
        return NotFound
    if answer.status == 0 or answer.status >= 500:
        return Transient
    if answer.status == 404 and answer.is_read:
        return Unreadable  # not an answer of AWS that is known to mean absence
    return _BY_STATUS.get(answer.status, Invalid)


def error_of(answer: Answer) -> CloudError:
    """The error to raise: the vendor's cause first, its code and call for whoever looks it up, what follows."""
    return refusal(
        kind_of(answer),
        answer.message,
        provider="aws",
        code=answer.code,
        call=answer.operation,
        request_id=answer.request_id,
    )
