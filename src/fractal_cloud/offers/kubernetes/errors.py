"""What an API server's answers mean in our closed set of errors. How an answer is got belongs in cloud.py."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
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
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.offers.refusals import refusal, when_read

_BY_STATUS: Final[dict[int, type[CloudError]]] = {
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    429: Throttled,
}
GONE: Final = 410
_WEBHOOK: Final = re.compile(r'admission webhook "[^"]*" denied the request')
_MISSING: Final = re.compile(
    r"error looking up service account|service account \S+ was not found|no PriorityClass with name|"
    r'RuntimeClass "[^"]*" not found'
)
"""What admission says of something else that an object refers to. That a role of the caller is «not found» is none.

https://github.com/kubernetes/kubernetes/issues/75117, https://github.com/kubernetes/kubernetes/issues/26457; classes:
plugin/pkg/admission/priority/admission.go and plugin/pkg/admission/runtimeclass/admission.go of Kubernetes.
"""
NO_SUCH_KIND: Final = "NoSuchKind"


class Expired(Unreadable):
    """The list was read too slowly: the server has forgotten how to continue it, and it must be begun anew."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an API server answered. ``status`` is 0 where there was no answer at all; ``call`` says what was asked."""

    status: int
    text: str
    request_id: str
    call: str
    is_read: bool

    @property
    def is_good(self) -> bool:
        """Whether it was carried out."""
        return 200 <= self.status < 300

    def body(self) -> dict[str, Any]:
        """The object it holds; raises where that cannot be understood."""
        try:
            found = json.loads(self.text)
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        raise error_of(
            Answer(0, f"the answer is no object: {self.text[:80]!r}", self.request_id, self.call, self.is_read)
        )

    @property
    def said(self) -> dict[str, Any] | None:
        """The ``Status`` object of a refusal; None where the server did not say one."""
        try:
            found = json.loads(self.text)
        except ValueError:
            return None
        return found if isinstance(found, dict) and found.get("kind") == "Status" else None


def error_of(answer: Answer) -> CloudError:
    """The error to raise: the server's cause first, its reason and the call for whoever looks it up, what follows."""
    said = answer.said or {}
    reason = str(said.get("reason") or "")
    return made(_kind_of(answer, reason), str(said.get("message") or answer.text[:300]), answer, reason)


def made(kind: type[CloudError], cause: str, answer: Answer, reason: str = "") -> CloudError:
    """An error with a cause of our own words for an answer."""
    code = reason or str(answer.status or "")
    return refusal(kind, cause, provider="kubernetes", code=code, call=answer.call, request_id=answer.request_id)


def no_such_kind(answer: Answer, kind: str, product: str) -> CloudError:
    """The cluster does not know the kind: a person must install what brings it (only this type is affected)."""
    remedy = f"install {product}" if product else "its API server is too old"
    found = Unreadable if answer.is_read else Invalid
    return found(f"the cluster has no {kind}: {remedy}", code=NO_SUCH_KIND, request_id=answer.request_id)


def is_unknown_kind(answer: Answer) -> bool:
    """Whether a 404 speaks of the path itself: in plain text, or in a ``Status`` that names no object.

    A kind that was taken away while its group stands is answered like that: nothing of it is proven to be gone (S0).
    """
    about = (answer.said or {}).get("details")
    return answer.status == 404 and not (isinstance(about, dict) and about.get("name"))


def _kind_of(answer: Answer, reason: str) -> type[CloudError]:
    if answer.is_read and answer.status == GONE:
        return Unreadable
    if answer.status == 0 or answer.status >= 500:
        kind: type[CloudError] = Transient
    elif answer.status == 403:
        kind = _kind_of_forbidden(answer)
    elif answer.status == 409 and reason != "AlreadyExists":
        kind = Overtaken
    else:
        kind = _BY_STATUS.get(answer.status, Invalid)
    return when_read(kind) if answer.is_read else kind


def _kind_of_forbidden(answer: Answer) -> type[CloudError]:
    """Admission refuses with the same status as access control: only the words, or a cause, distinguish them."""
    said = answer.said or {}
    words = str(said.get("message") or "")
    causes = (said.get("details") or {}).get("causes") or ()
    if any(isinstance(one, dict) and one.get("reason") == "NamespaceTerminating" for one in causes):
        return Conflict
    if "being terminated" in words:
        return Conflict
    if _MISSING.search(words):
        return DependencyMissing
    if "exceeded quota" in words:
        return LimitReached
    return Invalid if _WEBHOOK.search(words) else Denied
