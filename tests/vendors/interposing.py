"""Puts something between clients and the clouds of a sandbox: it sees every request, and may change the answer.

Neither the product nor the sandbox knows of it. What is done with requests and answers does not belong here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

from fractal_sandbox import server

Wrap = Callable[[str, Any], Any]


def interpose(wrap: Wrap) -> Callable[[], None]:
    """Have every sandbox that is started from now on wrap its clouds; returns what ends it."""
    made = server._Router.__init__

    @wraps(made)
    def with_wraps(self: Any, clouds: Mapping[str, Any], paths: Any, whole: Any, authority: Any) -> None:
        names = {id(cloud): name for name, cloud in clouds.items()}

        def wrapped(some: Mapping[str, Any]) -> dict[str, Any]:
            return {path: wrap(names[id(cloud)], cloud) for path, cloud in some.items()}

        made(self, clouds, wrapped(paths), wrapped(whole), authority)

    router: Any = server._Router
    router.__init__ = with_wraps

    def end() -> None:
        router.__init__ = made

    return end


@contextmanager
def interposed(wrap: Wrap) -> Iterator[None]:
    """The same for as long as the block runs."""
    end = interpose(wrap)
    try:
        yield
    finally:
        end()
