"""The real database behind the sandbox's managed ones: a PostgreSQL that somebody started, named by its address."""

from __future__ import annotations

import os
from urllib.parse import SplitResult, urlsplit

__all__ = ["REAL_POSTGRES", "SETTING", "RealServer"]

SETTING = "FRACTAL_SANDBOX_POSTGRES_URL"


class RealServer:
    """Where managed databases lead: set by a test, or by the environment of `fractal sandbox`; None: nowhere."""

    def __init__(self) -> None:
        self._url: str | None = None

    def set(self, url: str | None) -> None:
        """Lead all databases that are created from now on to that server: `postgresql://user:password@host:port`."""
        self._url = url

    def get(self) -> SplitResult | None:
        url = self._url or os.environ.get(SETTING)
        return urlsplit(url) if url else None


REAL_POSTGRES = RealServer()
