"""What can go wrong between the store and its database, as a closed set, and which of it may be tried again.

DatabaseTrouble         nothing is wrong with the request: come again (503)
├── Undone              surely rolled back: the same work may run again at once
├── Overloaded          surely rolled back, after a long wait: later
└── Unsure              the connection was lost while committing: it may be done, or not
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import stamina
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from fractal_cloud.model.errors import FractalError

T = TypeVar("T")
ATTEMPTS: Final = 5
_HOW: Final[Mapping[str, Any]] = {
    "attempts": ATTEMPTS - 1,
    "timeout": 10.0,
    "wait_initial": 0.02,
    "wait_max": 1.0,
    "wait_jitter": 0.05,
    "wait_exp_base": 3,
}
_SQLITE_BUSY: Final = 5
_SERIALISATION: Final = frozenset({"40001", "40P01"})
_OVERLOADED: Final = {
    "55P03": "what it needs was held by somebody else for too long",
    "57014": "a statement took too long",
    "53300": "the database has no connection left",
}


class DatabaseTrouble(FractalError):
    """The database could not do it now; what was asked for is not to blame."""

    def __init__(self, message: str, after_seconds: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.after_seconds = after_seconds


class Undone(DatabaseTrouble):
    """Surely rolled back: the same work may run again at once."""


class Overloaded(DatabaseTrouble):
    """Surely rolled back, after a long wait."""


class Unsure(DatabaseTrouble):
    """The connection was lost while committing."""


@contextmanager
def connecting() -> Iterator[None]:
    """Getting a connection: whatever fails here, nothing was begun."""
    try:
        yield
    except PoolTimeout as error:
        raise Overloaded("all connections to the database are in use: nothing was changed; try again", 2) from error
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) == "53300":
            raise _overloaded("53300") from error
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
        if is_writing and _is_cut(error):
            raise Unsure(
                "the connection to the database was lost while committing: it may be done, or not; "
                "look before you ask again",
                2,
            ) from error
        raise _explained(error) from error


def _explained(error: DBAPIError) -> Exception:
    """What an error inside a transaction means; one that is about the values is left as it is."""
    state = getattr(error.orig, "sqlstate", None)
    if state in _SERIALISATION:
        return Undone("others changed the same at the same time, again and again: nothing was changed; try again")
    if _is_cut(error):
        return Undone("the connection to the database was lost: nothing was changed; try again")
    if state in _OVERLOADED:
        return _overloaded(state)
    if getattr(error.orig, "sqlite_errorcode", None) == _SQLITE_BUSY:
        return _overloaded("55P03")
    return error


def _overloaded(state: str) -> Overloaded:
    return Overloaded(f"{_OVERLOADED[state]}: nothing was changed; try again", 2)


def _is_cut(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or state.startswith(("08", "57P0", "25P0"))


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


_AGAIN: Final = stamina.RetryingCaller(**_HOW).on(Undone)
_AGAIN_ASYNC: Final = stamina.AsyncRetryingCaller(**_HOW).on(Undone)
