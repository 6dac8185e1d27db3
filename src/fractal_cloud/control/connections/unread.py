"""How an app learns whether its answers are read: the connection of a request, as far as that matters to it (A9).

A server passes an answer to its connection whole, and is done with it; whether anybody reads it, only the connection
knows. Servers that do not say so (those of tests) have no such entry in their scopes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from starlette.types import Scope

EXTENSION: Final = "fractal.answering"


class Answering(Protocol):
    """A connection over which answers go out."""

    @property
    def is_blocked(self) -> bool:
        """Whether its client does not read its answer as fast as it is written."""
        ...

    async def until_read(self) -> None:
        """Wait while it is blocked."""
        ...

    def when_read(self, then: Callable[[], None]) -> None:
        """Call this once it is blocked no longer, or has ended."""
        ...


def answering(scope: Scope) -> Answering | None:
    """The connection that a request came on, if its server says."""
    found: Answering | None = scope.get("extensions", {}).get(EXTENSION)
    return found
