"""Fixes for moto's CloudTrail: it records nothing. What is recorded, and in which form, is in ``trail``."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fractal_sandbox.aws.answer import Answer, AwsError, written
from fractal_sandbox.aws.moto_fixes.registry import FixContext, fix
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.calls import Call

__all__: list[str] = []

_KEYS: Final = frozenset(
    {"EventId", "EventName", "ReadOnly", "Username", "ResourceType", "ResourceName", "EventSource", "AccessKeyId"}
)
_MOST: Final = 50


@fix("cloudtrail", "LookupEvents")
def find_events(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto answers `NotImplementedError`; AWS with the events of the region, by one attribute, the newest first."""
    asked = call.parameters
    attributes = asked.get("LookupAttributes") or []
    if len(attributes) > 1 or any(one.get("AttributeKey") not in _KEYS for one in attributes):
        raise AwsError("InvalidLookupAttributesException", "Specify exactly one valid lookup attribute.")
    most = int(asked.get("MaxResults") or _MOST)
    if not 1 <= most <= _MOST:
        raise AwsError("InvalidMaxResultsException", f"MaxResults must be between 1 and {_MOST}.")
    start, end = _seconds(asked.get("StartTime")), _seconds(asked.get("EndTime"))
    if start is not None and end is not None and start > end:
        raise AwsError("InvalidTimeRangeException", "The start time must not be after the end time.")
    found = context.trail.events(call.region, start, end)
    for one in attributes:
        found = [event for event in found if event.fits(one["AttributeKey"], str(one.get("AttributeValue", "")))]
    first = _position(asked.get("NextToken"), call)
    items = [event.shown() for event in found[first : first + most]]
    more = {"NextToken": _token(first + most, call)} if first + most < len(found) else {}
    return written(request, {"Events": items, **more})


def _seconds(moment: datetime | float | None) -> float | None:
    return moment.timestamp() if isinstance(moment, datetime) else moment


def _token(position: int, call: Call) -> str:
    attributes = call.parameters.get("LookupAttributes")
    return f"{position}.{abs(hash((call.region, str(attributes))))}"


def _position(token: str | None, call: Call) -> int:
    if not token:
        return 0
    position = token.partition(".")[0]
    if not position.isdigit() or token != _token(int(position), call):
        raise AwsError("InvalidNextTokenException", "The token is invalid, or was used with other parameters.")
    return int(position)
