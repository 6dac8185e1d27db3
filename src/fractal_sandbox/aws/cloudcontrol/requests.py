"""The requests of Cloud Control: asynchronous, known by their token for seven days, repeatable by a client's token.

Keeps what is to happen when one is over; whether and how it succeeds was decided when it was taken. Used only under
the cloud's lock.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from fractal_sandbox.fault_injection import Countdown

__all__ = ["Request", "Requests", "Status"]

Status = Literal["PENDING", "IN_PROGRESS", "SUCCESS", "FAILED", "CANCEL_IN_PROGRESS", "CANCEL_COMPLETE"]
_UNDER_WAY: Final = ("PENDING", "IN_PROGRESS")
_KEPT_SECONDS: Final = 7 * 24 * 3600
_TOKEN_SECONDS: Final = 36 * 3600
_RETRY_SECONDS: Final = 5


@dataclass
class Request:
    """One request; `outcome` is its status once its time is over, and `finish` what that still does."""

    operation: Literal["CREATE", "UPDATE", "DELETE"]
    type_name: str
    identifier: str
    account: str
    region: str
    client_token: str
    body: str
    started: float
    token: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: Status = "IN_PROGRESS"
    outcome: Literal["SUCCESS", "FAILED"] = "SUCCESS"
    code: str = ""
    message: str = ""
    hook: str = ""
    countdown: Countdown | None = None
    is_identifier_known: bool = True
    finish: Callable[[], None] | None = None

    @property
    def is_under_way(self) -> bool:
        return self.status in _UNDER_WAY

    def fail(self, code: str, message: str) -> None:
        self.outcome, self.code, self.message = "FAILED", code, message

    def event(self) -> dict[str, Any]:
        """Return it as a `ProgressEvent`."""
        found: dict[str, Any] = {
            "TypeName": self.type_name,
            "RequestToken": self.token,
            "Operation": self.operation,
            "OperationStatus": self.status,
            "EventTime": self.started,
        }
        if self.identifier and (self.is_identifier_known or self.status == "SUCCESS"):
            found["Identifier"] = self.identifier
        if self.is_under_way:
            found["RetryAfter"] = self.started + _RETRY_SECONDS
        if self.status == "FAILED":
            found |= {"ErrorCode": self.code, "StatusMessage": self.message}
        if self.hook:
            found["HooksRequestToken"] = self.token
        return found


class Requests:
    """All requests, newest last."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._all: dict[str, Request] = {}

    def reset(self) -> None:
        self._all.clear()

    def add(self, request: Request) -> None:
        self._all[request.token] = request

    def find(self, token: str, account: str, region: str) -> Request | None:
        found = self._all.get(token)
        return found if found is not None and (found.account, found.region) == (account, region) else None

    def of_client(self, client_token: str, account: str, region: str) -> Request | None:
        """Return the request that a client's token stands for; None where it is new, or older than 36 hours."""
        since = self.clock() - _TOKEN_SECONDS
        fitting = [one for one in self.all(account, region) if client_token and one.client_token == client_token]
        return next((one for one in reversed(fitting) if one.started >= since), None)

    def under_way(self, type_name: str, identifier: str, account: str, region: str) -> Request | None:
        """Return the request that a resource is busy with."""
        same = (type_name, identifier)
        found = (one for one in self.all(account, region) if (one.type_name, one.identifier) == same)
        return next((one for one in found if one.is_under_way and identifier), None)

    def all(self, account: str, region: str) -> Iterator[Request]:
        return (one for one in self._all.values() if (one.account, one.region) == (account, region))

    def settle(self) -> None:
        """End the requests whose time is over, and forget the old ones."""
        for request in list(self._all.values()):
            if request.status == "CANCEL_IN_PROGRESS":
                request.status = "CANCEL_COMPLETE"
            elif request.is_under_way and (request.countdown is None or request.countdown.is_over):
                request.status = request.outcome
                if request.finish is not None:
                    request.finish()
            if request.started < self.clock() - _KEPT_SECONDS:
                del self._all[request.token]
