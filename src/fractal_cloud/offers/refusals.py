"""How a cloud's refusal is worded, the same for all providers: the vendor's cause, where to look it up, what follows.

Which error of the closed set a refusal is, each provider decides from its vendor's own codes.
"""

from __future__ import annotations

from typing import Final

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
from fractal_cloud.offers.known_secrets import KNOWN

_FOLLOWS: Final[dict[type[CloudError], str]] = {
    Throttled: "it is tried again later",
    Unreadable: "nothing is decided from it, and it is read again",
    Conflict: "it is tried again",
    Overtaken: "nothing was written, and it is tried again",
    Protected: "it is respected until a person switches it off",
    Denied: "allow it to the agent: `fractal agent policy --provider {provider}` prints what it needs",
    LimitReached: "raise the limit, or free something; it is tried again from time to time",
    Invalid: "correct the declaration and deploy again",
    NotFound: "it is looked for again",
    DependencyMissing: "create it, or refer to another one; it is tried again until it is there",
    Transient: "whether it took effect is unknown until it is read again",
}
_READABLE: Final = (Throttled, Denied, NotFound, Unreadable)


_MAX_UNEXPECTED: Final = 300


def describe_unexpected(error: BaseException) -> str:
    """An unexpected error in one short line that any program can show."""
    words = "".join(char if char.isprintable() else " " for char in KNOWN.redact(str(error)))
    text = f"{type(error).__name__}: {' '.join(words.split())}".removesuffix(": ")
    return text if len(text) <= _MAX_UNEXPECTED else f"{text[:_MAX_UNEXPECTED]}…"


def when_read(kind: type[CloudError]) -> type[CloudError]:
    """What a refusal means to a read: never anything from which absence could be concluded (S0)."""
    return kind if issubclass(kind, _READABLE) else Unreadable


def refusal(
    kind: type[CloudError], cause: str, *, provider: str, code: str = "", call: str = "", request_id: str = ""
) -> CloudError:
    """Return the error to raise. Its message has no request id: the same problem has the same words in every cycle."""
    said = " ".join(KNOWN.redact(cause).split()).rstrip(". ") or "no reason was given"
    where = ", ".join(part for part in (code, call) if part)
    follows = _FOLLOWS[kind].format(provider=provider)
    cause = f"{said} ({where})"
    return kind(f"{cause}: {follows}", code=code, request_id=request_id, cause=cause)


def missing_elsewhere(error: NotFound) -> DependencyMissing:
    """What «not found» means where the resource that is written cannot be meant: something else that it refers to."""
    message = f"{error.cause}: {_FOLLOWS[DependencyMissing]}"
    return DependencyMissing(message, code=error.code, request_id=error.request_id, cause=error.cause)
