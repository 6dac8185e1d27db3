"""What can go wrong between the store and its database, as a closed set, and which of it may be tried again.

DatabaseUnavailable     nothing is wrong with the request: come again (503)
├── Undone              surely rolled back: the same work may run again at once
├── Overloaded          surely rolled back, after a long wait: later
├── Unwritable          surely rolled back: the disk is full, or the file cannot be written; a person must act
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
from fractal_cloud.control.store.migrate import NewerSchema
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


class Unwritable(DatabaseUnavailable):
    """Surely rolled back, and it stays so until a person acts; what was stored can still be read."""


class OutcomeUnknown(DatabaseUnavailable):
    """The connection was lost while committing."""


class NotOpened(FractalError):
    """The database cannot be used at all: nothing starts until a person acts."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(f"{message}: {advice}")
        self.message = message
        self.advice = advice


@contextmanager
def opening(where: str) -> Iterator[None]:
    """Opening a database and bringing its schema up to date."""
    try:
        yield
    except DBAPIError as error:
        raise _not_opened(where, error) from error
    except OSError as error:
        advice = "choose another place, or let this user write there"
        raise NotOpened(f"the database {where} cannot be opened: {error.strerror}", advice) from error
    except NewerSchema as error:
        raise NotOpened(
            f"the database {where} has the schema {error.revision!r} of a newer version",
            "install the version that wrote it, or restore a backup of before",
        ) from error


def _not_opened(where: str, error: DBAPIError) -> NotOpened:
    said = str(error.orig).strip().split("\n", 1)[0]
    match cause_of(error):
        case Cause.DAMAGED:
            advice = "restore a backup in its place and run `fractal restored`, or take the file away to begin anew"
            return NotOpened(f"the database {where} is damaged ({said})", advice)
        case Cause.NOT_WRITABLE:
            advice = "let this user write to the file and its folder"
            return NotOpened(f"the database {where} cannot be written ({said})", advice)
        case Cause.DISK_FULL:
            return NotOpened(f"the database {where} cannot be written ({said})", "free space where it lies")
        case _:
            advice = "check that it runs, and its address (FRACTAL_DATABASE_URL)"
            return NotOpened(f"the database {where} cannot be opened ({said})", advice)


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
        case Cause.DISK_FULL:
            return Unwritable(
                "no space is left where the database lies, or it cannot be written: nothing was changed; free space "
                "there, then try again",
                10,
            )
        case Cause.DAMAGED | Cause.NOT_WRITABLE:
            said = str(error.orig).strip().split("\n", 1)[0]
            return Unwritable(f"the database cannot be used ({said}): nothing was changed; see the server's log", 30)
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
