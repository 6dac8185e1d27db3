"""How agents and control planes log: plain lines to standard error, never local variables (one may be a token)."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from fractal_cloud.offers.known_secrets import KNOWN


def without_secrets(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A line in which no value of a secret stands that this process has had (A8)."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = KNOWN.redact(value)
        elif not isinstance(value, int | float | None):
            event[key] = KNOWN.redact(str(value))
    return event


class _Formatter(logging.Formatter):
    """Lines of other people's libraries, in which no value of a secret stands either."""

    def format(self, record: logging.LogRecord) -> str:
        return KNOWN.redact(super().format(record))


def set_up(level: int = logging.INFO) -> None:
    """Log from that level on, as plain lines of key and value."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            without_secrets,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], drop_missing=True),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Looked up at every line: whoever redirects standard error later, and closes it, does not silence a thread.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("timestamp=%(asctime)s level=%(levelname)s event=%(message)r logger=%(name)s"))
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler])
