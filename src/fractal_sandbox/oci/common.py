"""What all of OCI's resources have in common: ids, etags, free-form tags and their rules, pages, words of refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.monitor_rules import PROTOCOL_KEYS
from fractal_sandbox.oci import REGION
from fractal_sandbox.rest import Body, Draft, Kind, Place, Refused, Reply, Request

__all__ = [
    "VERSION",
    "answer",
    "bumped",
    "check_etag",
    "check_fields",
    "etag_of",
    "invalid",
    "marked",
    "monitored_tags",
    "new_id",
    "not_found",
    "now",
    "page",
    "page_number",
    "plain",
    "shown",
    "tagged",
    "unmonitored",
]

VERSION: Final = "_version"
MOST_TAGS: Final = 10
PAGE: Final = 1000


def plain(name: str, **more: Any) -> Kind:
    """A kind of what no offer is about; ``more`` says who speaks for it."""
    return Kind(name, lambda body: Place(str(body.get("id", "")), ""), **more)


def unmonitored(name: str, why: str) -> Kind:
    """A kind that the cloud alone writes."""
    return plain(name, unmonitored=why)


def marked(name: str) -> Kind:
    """A kind that only links make, with their mark among its tags."""
    return plain(name, mark=lambda body: str((body.get("freeformTags") or {}).get("fractal-cloud-link", "")))


def new_id(kind: str) -> str:
    return f"ocid1.{kind}.oc1.{REGION}.{uuid4().hex}{uuid4().hex[:28]}"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def monitored_tags(body: Body) -> Mapping[str, str]:
    """The free-form tags; keys are the same whatever their case, so the protocol's are in its own spelling."""
    tags: Mapping[str, str] = body.get("freeformTags") or {}
    return {key.lower() if key.lower() in PROTOCOL_KEYS else key: value for key, value in tags.items()}


def bumped(body: Body) -> Body:
    """A resource after one more change: its etag is another one."""
    return {**body, VERSION: body.get(VERSION, 0) + 1}


def etag_of(body: Body) -> str:
    """What stands for a resource as it is, its state of the moment included."""
    text = f"{body.get('id') or body['name']} {body[VERSION]} {body.get('lifecycleState', '')}"
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def shown(body: Body) -> Body:
    """A resource as a client sees it."""
    return {name: value for name, value in body.items() if not name.startswith("_")}


def answer(body: Body, status: int = 200) -> Reply:
    return Reply(status, shown(body), (("etag", etag_of(body)),))


def check_etag(request: Request, draft: Draft, body: Body, code: str = "NoEtagMatch") -> None:
    """State the precondition a write carries, if it does. `body` is as a client would see it now."""
    wanted = request.headers.get("if-match")
    message = "The if-match header does not match the etag of the resource."
    draft.require(wanted in (None, "*", etag_of(body)), Refused(412, code, message))


def tagged(given: Any) -> dict[str, str]:
    """Free-form tags of a request; raises where OCI would refuse them."""
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise invalid("freeformTags must be a map of text")
    if len(given) > MOST_TAGS:
        raise invalid(f"freeformTags has {len(given)} entries, and may have {MOST_TAGS}")
    for key, value in given.items():
        if not 0 < len(key) <= 100 or not key.isascii() or not key.isprintable() or "." in key or " " in key:
            raise invalid(f"freeformTags has the key {key!r}, which is not allowed")
        if len(value) > 256:
            raise invalid(f"freeformTags has a value of {len(value)} characters at {key!r}")
    if len({key.lower() for key in given}) < len(given):
        raise invalid("freeformTags has keys that differ in case only")
    return dict(given)


def check_fields(given: Any, known: Iterable[str]) -> Body:
    """The body of a request; raises where it is no object, or has a field that OCI does not know there."""
    if not isinstance(given, dict):
        raise invalid("Unable to parse the request body")
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise invalid(f"Unrecognised fields: {', '.join(unknown)}")
    return {name: value for name, value in given.items() if value is not None}


def page(request: Request, knobs: Knobs, items: list[Any], show: Callable[[Any], None] | None = None) -> Reply:
    """One page of a list; `show` is called with every item on it."""
    size = min(int(request.query.get("limit") or PAGE), knobs.page_size or PAGE)
    number, _, start = request.query.get("page", "1.0").partition(".")
    begin = int(start or 0)
    here = items[begin : begin + size]
    for item in here:
        if show is not None:
            show(item)
    more = (("opc-next-page", f"{int(number) + 1}.{begin + size}"),) if begin + size < len(items) else ()
    return Reply(200, here, more)


def page_number(request: Request) -> int:
    return int(request.query.get("page", "1.0").partition(".")[0] or 1)


def invalid(message: str) -> Refused:
    return Refused(400, "InvalidParameter", message)


def not_found(what: str = "resource") -> Refused:
    return Refused(404, "NotAuthorizedOrNotFound", f"Authorization failed or requested {what} not found.")
