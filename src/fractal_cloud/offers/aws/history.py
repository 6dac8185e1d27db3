"""Who changed a resource, from CloudTrail's events: which of them set which parameter, and whose they are. Pure.

CloudTrail spells the members of a request as the API does, in camelCase: a parameter is set by an event that names the
resource and has a member of that name. What is spelled otherwise stands in the descriptors (``set_by``). In doubt
nobody is named: the newest event that set a parameter counts, if it is not older than the last read without it, and
shows the value that was seen. How events are asked for belongs in ``aws_offer``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fractal_cloud.model.tags import MANAGED_BY, OURS
from fractal_cloud.offers.aws.descriptors import Resource
from fractal_cloud.offers.history import Asked, Author, Record
from fractal_cloud.rules.setbacks import digest

CLOUDTRAIL: Final = Record("CloudTrail", is_late=True)
SLACK: Final = timedelta(seconds=5)
"""By how much the clocks of the agent and of AWS may differ; CloudTrail knows only whole seconds."""
FARTHEST_BACK: Final = timedelta(days=1)
"""How far back is asked where the last read without the change is not known."""
_USER_AGENT: Final = "fractal-cloud/"
_REMOVES: Final = ("Delete", "Remove", "Untag")


@dataclass(frozen=True, slots=True)
class Event:
    """One event: what was called, when, with what, by whom, and what was answered."""

    name: str
    at: datetime
    request: Mapping[str, Any]
    identity: Mapping[str, Any]
    user_agent: str = ""
    address: str = ""
    response: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> Event | None:
        """An event that changed something, out of an answer of ``LookupEvents``; None of any other."""
        try:
            found = json.loads(item["CloudTrailEvent"])
            at = datetime.fromisoformat(found["eventTime"]).astimezone(UTC)
            request, identity = found.get("requestParameters") or {}, found.get("userIdentity") or {}
        except (KeyError, TypeError, ValueError):
            return None
        if found.get("errorCode") or found.get("readOnly") in (True, "true"):
            return None
        if not (isinstance(request, Mapping) and isinstance(identity, Mapping)):
            return None
        texts = (str(found.get(name) or "") for name in ("eventName", "userAgent", "sourceIPAddress"))
        name, user_agent, address = texts
        response = found.get("responseElements")
        answered = response if isinstance(response, Mapping) else {}
        return cls(name, at, request, identity, user_agent, address, answered)

    def is_of(self, caller: str) -> bool:
        """Whether it is a call of the agent's own: signed as one, or by the same user or role."""
        arn = str(self.identity.get("arn") or "")
        return _USER_AGENT in self.user_agent or (bool(arn) and principal(arn) == principal(caller))

    def author(self, *, is_certain: bool = True) -> Author:
        """Whose event it is."""
        arn = str(self.identity.get("arn") or "")
        return Author(named(self.identity), arn, self.at, self.name, self.address, is_certain=is_certain)


def principal(arn: str) -> str:
    """The user or role of an ARN; sessions of one role are one."""
    account, _, name = arn.partition(":assumed-role/")
    return f"{account}:assumed-role/{name.partition('/')[0]}" if name else arn


def named(identity: Mapping[str, Any]) -> str:
    """What to call somebody: a user's name, a session's name and its role, a service."""
    arn = str(identity.get("arn") or "")
    issuer = (identity.get("sessionContext") or {}).get("sessionIssuer") or {}
    match identity.get("type"):
        case "AssumedRole":
            role = issuer.get("userName") or arn.partition(":assumed-role/")[2].partition("/")[0]
            session = arn.rpartition("/")[2]
            return f"{session} (role {role})" if role and session else session or str(role)
        case "Root":
            return f"the root user of account {identity.get('accountId') or '?'}"
        case "AWSService":
            return str(identity.get("invokedBy") or "a service of AWS")
    name = identity.get("userName") or arn.rpartition("/")[2] or identity.get("principalId") or "somebody"
    account = identity.get("accountId")
    return f"{name} of account {account}" if identity.get("type") == "AWSAccount" and account else str(name)


def authors(
    resource: Resource, names: Collection[str], events: Iterable[Event], caller: str, asked: Iterable[Asked]
) -> dict[str, Author]:
    """Who set each parameter that is asked for, of the events that name the resource, the newest first.

    ``names``: its id, name and ARN. ``caller``: the ARN of the agent, which is never named.
    """
    # A call that sets by its name alone may name something else, as a machine's profile its association.
    by_name = {resource.service.event_names.get(way, way) for ways in resource.set_by.values() for way in ways}
    own = [
        event
        for event in events
        if _names(event.request, names) or (event.name in by_name and _names(event.response, names))
    ]
    found = {one.parameter: _author(resource, own, caller, one) for one in asked}
    return {name: author for name, author in found.items() if author is not None}


def _author(resource: Resource, events: Iterable[Event], caller: str, one: Asked) -> Author | None:
    related: Author | None = None
    changing = _changing(resource, one.parameter)
    begin = (one.after if one.after is not None else one.seen - FARTHEST_BACK) - SLACK
    for event in events:
        is_own = event.is_of(caller)
        if event.at < begin or event.at > one.seen + SLACK or (is_own and event.at >= one.seen - SLACK):
            continue  # before it was last as declared; after it was seen; or the agent's correction
        value = _set_value(resource, event, one.parameter)
        if value is _NOT_SET:
            if not is_own and related is None and event.name in changing:
                related = event.author(is_certain=False)
            continue
        is_proven = value is not _UNKNOWN or one.after is not None
        is_it = not is_own and is_proven and (value is _UNKNOWN or one.value in _digests(value))
        return event.author() if is_it else None  # another value, or the agent's: what made this one is not here yet
    return related


def _changing(resource: Resource, parameter: str) -> set[str]:
    """The events that may have changed a parameter: those of its own calls, where nothing else sets it."""
    renamed = resource.service.event_names
    known = {renamed.get(name, name) for name in (*resource.modifies, *resource.also_modifies)}
    own = {renamed.get(way, way) for way in resource.set_by.get(parameter, ())}
    return own if own and own <= known else known


_NOT_SET: Final = object()
_UNKNOWN: Final = object()
"""Stands for a value that was set and is not shown, or not in a form that can be compared."""


def _set_value(resource: Resource, event: Event, parameter: str) -> Any:
    """The value to which an event set a parameter; ``_NOT_SET`` where it did not, for all that is certain."""
    if parameter == MANAGED_BY:
        return _UNKNOWN if _removes_ours(resource, event) else _NOT_SET
    renamed = resource.service.event_names
    known = {renamed.get(name, name) for name in (*resource.modifies, *resource.also_modifies)}
    if event.name not in known:
        return _NOT_SET
    ways = {renamed.get(way, way) for way in resource.set_by.get(parameter, ())}
    if event.name in ways:
        return _UNKNOWN
    spelled = {parameter.lower(), *(way.lower() for way in ways)}
    if str(event.request.get("attribute", "")).lower() in spelled:
        return _comparable(event.request.get("value"))
    values = [value for name, value in _members(event.request) if name.lower() in spelled]
    return _comparable(values[0]) if values else _NOT_SET


def _removes_ours(resource: Resource, event: Event) -> bool:
    """Whether an event removed ``managed-by``, or gave it another value."""
    if event.name in resource.replaces_tags:
        return dict(_tags(event.request)).get(MANAGED_BY) != OURS
    if "tag" not in event.name.lower():
        return False
    tags = list(_tags(event.request))
    if event.name.startswith(_REMOVES):
        return not tags or any(key == MANAGED_BY for key, _ in tags)
    return any(key == MANAGED_BY and value != OURS for key, value in tags)


def _tags(request: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """The tags in a request, in whatever form the service has them; a key that is removed has no value."""
    for name, value in _members(request):
        match name, value:
            case "tagKeys", list():
                yield from ((str(key), None) for key in value)
            case _, {"key": str() as key} | {"Key": str() as key}:
                yield key, value.get("value", value.get("Value"))
            case "tags", dict():
                yield from ((str(key), str(text)) for key, text in value.items())


def _members(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every member of a request with its name, at whatever depth; items of a list bear the name of the list."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key), inner
            yield from _members(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield name, inner
            yield from _members(inner, name)


def _names(request: Mapping[str, Any], names: Collection[str]) -> bool:
    """Whether a request names the resource, by one of its names or an ARN that ends with one."""
    wanted = {name.lower() for name in names if name}
    texts = (value.lower() for _, value in _members(request) if isinstance(value, str))
    return any(text in wanted or (text.startswith("arn:") and text.rpartition("/")[2] in wanted) for text in texts)


def _comparable(value: Any) -> Any:
    if isinstance(value, Mapping) and set(value) == {"value"}:
        value = value["value"]
    is_hidden = isinstance(value, str) and (value.startswith("<") or set(value) <= {"*"})
    return value if isinstance(value, bool | int | float | str) and not is_hidden else _UNKNOWN


def _digests(value: Any) -> set[str]:
    """The digests of a value in the forms in which a parameter may have it: CloudTrail writes some numbers as text."""
    forms: list[Any] = [value, str(value)]
    if isinstance(value, str):
        forms += [value.lower() == "true"] if value.lower() in ("true", "false") else []
        forms += [int(value)] if value.isdigit() else []
    return {digest(form) for form in forms}
