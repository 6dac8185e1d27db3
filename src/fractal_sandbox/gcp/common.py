"""What Google's APIs have in common: refusals, labels and their fingerprints, pages, links, and operations."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.rest import Body, Draft, Kind, Place, Refused, Reply, Request, Route

__all__ = [
    "OPERATION",
    "Service",
    "changed",
    "check_labels",
    "fingerprint",
    "invalid",
    "new_number",
    "not_found",
    "now",
    "precondition_failed",
    "stated",
    "taken",
]

OPERATION = Kind(
    "operation", lambda body: Place(body["name"], ""), unmonitored="the record that Google keeps of a call"
)
MOST_LABELS = 64
_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}\Z")
_VALUE = re.compile(r"[a-z0-9_-]{0,63}\Z")


def stated(status: int, word: str, message: str) -> Refused:
    """A refusal of the newer APIs, which say no more than one word."""
    return Refused(status, word, message)


def invalid(message: str) -> Refused:
    return Refused(400, "invalid", message)


def not_found(what: str) -> Refused:
    return Refused(404, "notFound", f"The resource '{what}' was not found")


def taken(what: str) -> Refused:
    return Refused(409, "alreadyExists", f"The resource '{what}' already exists")


def precondition_failed(message: str) -> Refused:
    return Refused(412, "conditionNotMet", message)


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def new_number() -> str:
    """A number no other resource will ever have."""
    return str(uuid4().int >> 66)


def fingerprint(content: Any) -> str:
    """What changes whenever the content does; in the alphabet for addresses, which is the one gcloud reads back."""
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
    return urlsafe_b64encode(digest[:8]).decode()


def check_labels(labels: Any) -> dict[str, str]:
    """Labels Google takes; refuses all others as it does."""
    if not isinstance(labels, Mapping):
        raise invalid(f"Invalid value for field 'labels': {labels!r}")
    for key, value in labels.items():
        if not _KEY.match(key):
            raise invalid(f"Label key '{key}' violates format constraints: [a-z][a-z0-9_-]{{0,62}}")
        if not isinstance(value, str) or not _VALUE.match(value):
            raise invalid(f"Label value '{value}' violates format constraints: [a-z0-9_-]{{0,63}}")
    if len(labels) > MOST_LABELS:
        raise invalid(f"Too many labels: {len(labels)}, at most {MOST_LABELS}")
    return dict(labels)


def changed(before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch: null takes a field away, objects are merged, everything else is replaced."""
    merged = dict(before)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            inside = merged.get(key)
            merged[key] = changed(inside if isinstance(inside, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


class Service:
    """One of Google's APIs. Subclasses bring their routes."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs

    def routes(self) -> list[Route]:
        raise NotImplementedError

    def body_of(self, request: Request) -> dict[str, Any]:
        try:
            found = request.json()
        except ValueError as error:
            raise invalid(f"Parse Error: {error}") from None
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise invalid("Parse Error: the body is no object")
        return found

    def page(
        self, request: Request, draft: Draft, kind: str, fits: Callable[[Body], bool], size: int
    ) -> tuple[list[tuple[str, Body]], dict[str, str]]:
        """One page of a list by name, and what leads to the next."""
        found = sorted((one for one in draft.all(kind) if fits(one[1])), key=lambda one: one[0])
        given = request.query.get("maxResults") or request.query.get("pageSize")
        size = self.knobs.page_size or min(int(given or size), size)
        number, _, start = (request.query.get("pageToken") or "1.0").partition(".")
        first = int(start or 0)
        shown = found[first : first + size]
        for resource_id, _body in shown:
            draft.shows(kind, resource_id)
        more = {"nextPageToken": f"{int(number) + 1}.{first + size}"} if first + size < len(found) else {}
        return shown, more


def begin(draft: Draft, operation: Mapping[str, Any]) -> Body:
    """Keep an operation, so that it can be asked for."""
    body = dict(operation)
    draft.put("operation", body["name"], body)
    return body


def operation_of(draft: Draft, name: str) -> Body:
    """One operation; refuses where there is none."""
    found = draft.peek("operation", name)
    if found is None:
        raise not_found(name)
    return found


def is_done(draft: Draft, operation: Mapping[str, Any]) -> bool:
    """Whether what an operation is about has come to rest."""
    kind, target = operation["target"]
    draft.find(kind, target)  # asking is a read, so that knobs that count reads go on
    return draft.phase(kind, target) is None


def good(content: Any) -> Reply:
    return Reply(200, content)
