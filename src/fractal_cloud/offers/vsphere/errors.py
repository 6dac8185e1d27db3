"""vSphere's refusals as the closed set of errors: SOAP faults by their name, and the errors of its REST API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    Invalid,
    LimitReached,
    NotFound,
    Protected,
    Throttled,
    Transient,
)
from fractal_cloud.offers.refusals import refusal, when_read
from fractal_cloud.offers.rest import Answer, Dialect

PROVIDER: Final = "vsphere"
_FAULTS: Final[Mapping[str, type[CloudError]]] = {
    "InvalidLogin": Denied,
    "NotAuthenticated": Denied,
    "NoPermission": Denied,
    "RestrictedVersion": Denied,
    "ManagedObjectNotFound": NotFound,
    "DuplicateName": Conflict,
    "AlreadyExists": Conflict,
    "TaskInProgress": Conflict,
    "ConcurrentAccess": Conflict,
    "InvalidPowerState": Conflict,
    "InvalidState": Conflict,
    "ResourceInUse": Conflict,
    "MethodDisabled": Protected,
    "InsufficientCpuResourcesFault": LimitReached,
    "InsufficientMemoryResourcesFault": LimitReached,
    "InsufficientResourcesFault": LimitReached,
    "InsufficientStorageSpace": LimitReached,
    "NoDiskSpace": LimitReached,
    "NotEnoughLicenses": LimitReached,
    "HostCommunication": Transient,
    "HostNotConnected": Transient,
    "SystemError": Transient,
    "Timedout": Transient,
    "RequestCanceled": Transient,
}
_STATUSES: Final[Mapping[int, type[CloudError]]] = {401: Denied, 403: Denied, 429: Throttled, 503: Throttled}
_CODES: Final[Mapping[str, type[CloudError]]] = {
    "already_exists": Conflict,
    "resource_busy": Conflict,
    "not_found": NotFound,
    "unauthorized": Denied,
    "unauthenticated": Denied,
    "service_unavailable": Transient,
}


def fault(name: str, words: str, call: str, *, is_read: bool) -> CloudError:
    """The error to raise for a SOAP fault; an unknown one is blamed on the declaration."""
    return _refusal(_FAULTS.get(name, Invalid), words or name, name, call, is_read=is_read)


def failure(status: int, words: str, call: str, *, is_read: bool) -> CloudError:
    """The error to raise where an HTTP status, or no answer at all (0), came instead of a SOAP answer."""
    return _refusal(_STATUSES.get(status, Transient), words, str(status or ""), call, is_read=is_read)


def _refusal(kind: type[CloudError], words: str, code: str, call: str, *, is_read: bool) -> CloudError:
    return refusal(when_read(kind) if is_read else kind, words, provider=PROVIDER, code=code, call=call)


class VsphereDialect(Dialect):
    """The HTTP of vCenter's REST API. ``session``: the id that authenticates a call; empty before the login."""

    provider = PROVIDER

    def __init__(self) -> None:
        self.session = ""

    def authorise(self, method: str, url: str, headers: dict[str, str], content: bytes) -> None:
        """Show the session; a login brings a header of its own."""
        del method, url, content
        if self.session:
            headers["vmware-api-session-id"] = self.session

    def code_and_message(self, answer: Answer) -> tuple[str, str]:
        """The last word of the error's type, and its messages."""
        body = answer.body()
        if not isinstance(body, dict):
            return "", f"HTTP status {answer.status}"
        kind = str(body.get("error_type") or body.get("type") or "").rpartition(".")[2].lower()
        value = body.get("value") if isinstance(body.get("value"), dict) else body
        messages = value.get("messages") if isinstance(value, dict) else None
        words = [str(one.get("default_message") or "") for one in messages or () if isinstance(one, dict)]
        return kind, "; ".join(words) or kind or f"HTTP status {answer.status}"

    def kind_of(self, answer: Answer, code: str) -> type[CloudError]:
        """By the code; where it says nothing, by the status."""
        return _CODES.get(code) or _STATUSES.get(answer.status) or super().kind_of(answer, code)
