"""What can go wrong between the store and its database, as a closed set, and which of it may be tried again.

DatabaseUnavailable     nothing is wrong with the request: come again (503)
├── Undone              surely rolled back: the same work may run again at once
├── Overloaded          surely rolled back, after a long wait: later
└── OutcomeUnknown      the connection was lost while committing: it may be done, or not
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import stamina
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from fractal_cloud.control.store.driver import Cause, cause_of
from fractal_cloud.model.backoff import Backoff
from fractal_cloud.model.errors import FractalError

T = TypeVar("T")
ATTEMPTS: Final = 5
_RETRIES: Final[Mapping[str, Any]] = {
    "attempts": ATTEMPTS - 1,
    "timeout": 10.0,
    **Backoff.in_seconds(0.02, 1.0, factor=3, jitter=0.05).for_stamina(),
}
_OVERLOADED: Final = {
    Cause.LOCK_TIMEOUT: "what it needs was held by somebody else for too long",
    Cause.STATEMENT_TIMEOUT: "a statement took too long",
    Cause.TOO_MANY_CONNECTIONS: "the database has no connection left",
}


class DatabaseUnavailable(FractalError):
    """The database could not do it now; what was asked for is not to blame."""

    def __init__(self, message: str, after_seconds: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.after_seconds = after_seconds


class Undone(DatabaseUnavailable):
    """Surely rolled back: the same work may run again at once."""


class Overloaded(DatabaseUnavailable):
    """Surely rolled back, after a long wait."""


class OutcomeUnknown(DatabaseUnavailable):
    """The connection was lost while committing."""


@contextmanager
def connecting() -> Iterator[None]:
    """Getting a connection: whatever fails here, nothing was begun."""
    try:
        yield
    except PoolTimeout as error:
        raise Overloaded("all connections to the database are in use: nothing was changed; try again", 2) from error
    except OperationalError as error:
        if cause_of(error) is Cause.TOO_MANY_CONNECTIONS:
            raise _overloaded(Cause.TOO_MANY_CONNECTIONS) from error
        cause = str(error.orig).strip().split("\n", 1)[0]
        raise Undone(f"the database cannot be reached ({cause}): nothing was changed; try again") from error


@contextmanager
def working() -> Iterator[None]:
    """Inside a transaction: what fails here is rolled back, also if the connection is gone."""
    try:
        yield
    except DBAPIError as error:
        raise _explained(error) from error


@contextmanager
def committing(*, is_writing: bool) -> Iterator[None]:
    """At the COMMIT itself: where its answer is lost, nobody knows whether it was carried out."""
    try:
        yield
    except DBAPIError as error:
        if is_writing and cause_of(error) is Cause.DISCONNECTED:
            raise OutcomeUnknown(
                "the connection to the database was lost while committing: it may be done, or not; "
                "look before you ask again",
                2,
            ) from error
        raise _explained(error) from error


def _explained(error: DBAPIError) -> Exception:
    """What an error inside a transaction means; one that is about the values is left as it is."""
    match cause_of(error):
        case Cause.CONFLICT:
            return Undone("others changed the same at the same time, again and again: nothing was changed; try again")
        case Cause.DISCONNECTED:
            return Undone("the connection to the database was lost: nothing was changed; try again")
        case Cause.OTHER:
            return error
        case cause:
            return _overloaded(cause)


def _overloaded(cause: Cause) -> Overloaded:
    return Overloaded(f"{_OVERLOADED[cause]}: nothing was changed; try again", 2)


def again(work: Callable[[], T]) -> T:
    """Run work, and run it again as a whole, a few times, where the database surely undid it."""
    try:
        return work()
    except Undone:
        return _AGAIN(work)


async def again_async(work: Callable[[], Awaitable[T]]) -> T:
    """As ``again``, for what is awaited."""
    try:
        return await work()
    except Undone:
        return await _AGAIN_ASYNC(work)


_AGAIN: Final = stamina.RetryingCaller(**_RETRIES).on(Undone)
_AGAIN_ASYNC: Final = stamina.AsyncRetryingCaller(**_RETRIES).on(Undone)
