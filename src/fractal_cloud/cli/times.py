"""Points in time as people write them: a date, a time, or a span from now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from fractal_cloud.cli.errors import CommandError, Exit

_SPANS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def point_in_time(flag: str, text: str) -> str:
    """A point in time as the API takes it; one without a zone is this machine's."""
    span = re.fullmatch(r"(\d{1,4})([mhdw])", text)
    if span:
        return (datetime.now(UTC) + timedelta(**{_SPANS[span[2]]: int(span[1])})).isoformat(timespec="seconds")
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="seconds")
    except ValueError:
        raise CommandError(
            f"{flag} is {text!r}",
            advice="Give a date (2030-01-31), a time (2030-01-31T18:00) or a span (30m, 4h, 3d, 2w).",
            code=Exit.USAGE,
        ) from None


def moment(text: str) -> str:
    """A point in time of the API as people read it: UTC, to the minute."""
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
