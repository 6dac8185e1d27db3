"""What all of Aruba's resources have in common: ids, tags and their rules, pages, problem documents."""

from __future__ import annotations

import hashlib
import re
from base64 import b32encode
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from fractal_sandbox.calls import Origin
from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.rest import Body, Kind, Phase, Place, Refused, Reply, Request

__all__ = [
    "LOCATION",
    "OWNERS",
    "STRICT",
    "checked_name",
    "checked_tags",
    "in_use",
    "invalid",
    "kind",
    "known_owners",
    "monitored_tags",
    "new_id",
    "not_found",
    "page",
    "page_number",
    "plain",
]

PAGE: Final = 100
LOCATION: Final = "ITBG-Bergamo"
STRICT: Final = "66f0aaaaaaaaaaaaaaaaaa02"
"""The project whose tags follow the vendor's newer rule."""
OWNERS: Final = "_owners"
_STRICT_TAG: Final = re.compile(r"[A-Za-z0-9-]{4,30}\Z")
_NAME: Final = re.compile(r"(?=.*[a-z])[A-Za-z0-9][A-Za-z0-9-]{2,48}[A-Za-z0-9]\Z")
# The protocol's tags as the agent spells them where colons are not allowed; the owner is a hash, to be short enough.
_STRICT_SPELLING: Final = {
    "managed-by-fractal-cloud": ("managed-by", "fractal-cloud"),
    "fractal-cloud-reconcile": ("fractal-cloud", "reconcile"),
}
_HASHED_OWNER: Final = "fc-owner-"
_AT_WORK: Final[Mapping[Phase, str]] = {"creating": "InCreation", "updating": "Updating", "deleting": "Deleting"}


def _in_phase(body: Body, phase: Phase) -> Body:
    return {**body, "state": _AT_WORK[phase]}


def kind(name: str) -> Kind:
    """A kind of resource; every write of it says all its tags."""
    return Kind(
        name,
        lambda body: Place(body["name"], body["scope"]),
        monitored_tags,
        _in_phase,
        passing=frozenset({"state", OWNERS}),
        replaces_tags=True,
    )


def plain(name: str, **more: Any) -> Kind:
    """A kind of what no offer is about; ``more`` says who speaks for it."""
    return Kind(name, lambda body: Place(str(body["name"]), str(body["scope"])), in_phase=_in_phase, **more)


def new_id() -> str:
    return uuid4().hex[:24]


def monitored_tags(body: Body) -> Mapping[str, str]:
    """The tags as the monitor knows them: the protocol's under its own names, whatever their spelling."""
    found: dict[str, str] = {}
    for tag in body["tags"]:
        if tag.startswith(_HASHED_OWNER):
            found["fractal-cloud-owner"] = body[OWNERS].get(tag, tag)
        else:
            key, _, value = tag.partition(":")
            found.update([_STRICT_SPELLING.get(tag, (key, value))])
    return found


def known_owners(request: Request, tags: list[str], before: Mapping[str, str]) -> dict[str, str]:
    """Return who is behind a hashed owner, as far as the user agents of calls name them."""
    live_system = Origin.from_user_agent(request.headers.get("user-agent", "")).live_system
    digest = hashlib.sha256((live_system or "").encode()).digest()
    named = {f"{_HASHED_OWNER}{b32encode(digest).decode().lower()[:20]}": live_system or ""}
    return {tag: owner for tag, owner in {**named, **before}.items() if tag in tags}


def checked_name(given: Any) -> str:
    if not isinstance(given, str) or not _NAME.match(given):
        raise invalid("Name", "must have 4 to 50 letters, digits and inner hyphens")
    return given


def checked_tags(project: str, given: Any) -> list[str]:
    """The tags of a request; raises where Aruba would refuse them."""
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(tag, str) for tag in given):
        raise invalid("Tag", "must be a list of text")
    for tag in given:
        if len(tag) < 4:
            raise invalid("Tag", "length must be at least 4")
        if project == STRICT and not _STRICT_TAG.match(tag):
            raise invalid("Tag", f"{tag!r} must have 4 to 30 letters, digits and hyphens")
    return list(dict.fromkeys(given))


def _size(request: Request, knobs: Knobs) -> int:
    return min(int(request.query.get("limit") or PAGE), knobs.page_size or PAGE)


def page(
    request: Request, knobs: Knobs, items: list[Any], form: Callable[[Any], Any], show: Callable[[Any], None]
) -> Reply:
    """One page of a list in the vendor's envelope; `show` is called with every item on it."""
    size, begin = _size(request, knobs), int(request.query.get("offset") or 0)
    here = items[begin : begin + size]
    for item in here:
        show(item)
    address = f"{request.base}{request.path}"

    def link(offset: int) -> str:
        return f"{address}?offset={offset}&limit={size}"

    envelope = {
        "total": len(items),
        "self": link(begin),
        "prev": link(max(begin - size, 0)) if begin else "",
        "next": link(begin + size) if begin + size < len(items) else "",
        "first": link(0),
        "last": link(max(len(items) - 1, 0) // size * size),
        "values": [form(item) for item in here],
    }
    return Reply(200, envelope)


def page_number(request: Request, knobs: Knobs) -> int:
    begin, size = int(request.query.get("offset") or 0), _size(request, knobs)
    return 1 + -(-begin // size)


def invalid(field: str, message: str) -> Refused:
    """A 400 that names a field: it will never be accepted."""
    return Refused(400, "BadRequest", "One or more validation errors occurred.", errors=[(field, message)])


def in_use(message: str) -> Refused:
    """A 400 that names no field: not now."""
    return Refused(400, "BadRequest", message)


def not_found(what: str = "resource") -> Refused:
    return Refused(404, "NotFound", f"The {what} was not found.")
