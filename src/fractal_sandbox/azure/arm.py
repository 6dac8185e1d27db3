"""What Resource Manager does with every resource alike: list, get, put, patch, delete, its etags, pages and operations.

What one service does with its own kinds stands in that service's file.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from fractal_sandbox.azure.kinds import ArmKind, etag_name, group_of, name_of
from fractal_sandbox.azure.locks import refuse_if_locked
from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.rest import Body, Draft, Refused, Reply, Request

__all__ = ["Arm", "merged", "operation_id", "page", "resource_id", "show", "tags_of"]

PAGE = 100
MOST_TAGS = 50


def resource_id(request: Request, kind: ArmKind, name: str) -> str:
    """The id of the resource that a path names."""
    subscription, group = request.words["subscription"], request.words["group"]
    return f"/subscriptions/{subscription}/resourceGroups/{group}/providers/{kind.type}/{name}"


def show(kind: ArmKind, draft: Draft, body: Body) -> Body:
    """A resource as a client sees it: fields of our own stay away."""
    seen = kind.rules.shown(draft, deepcopy(body))
    return {key: value for key, value in seen.items() if not key.startswith("_")}


def merged(old: Any, new: Any) -> Any:
    """A patch: maps are merged, everything else is replaced, null removes."""
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    result = dict(old)
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def tags_of(tags: Any) -> dict[str, str]:
    """Tags as they are stored; refuses those that Azure refuses."""
    found: dict[str, str] = {}
    for key, value in (tags or {}).items():
        if not key or len(key) > 512 or any(letter in key for letter in "<>%&\\?/"):
            raise Refused(400, "InvalidTagNameCharacters", f"The tag name '{key}' is not allowed.")
        if len(str(value)) > 256:
            raise Refused(400, "InvalidTagValueLength", f"The value of tag '{key}' has more than 256 characters.")
        if key.lower() in {other.lower() for other in found}:
            raise Refused(400, "DuplicateTagName", f"The tag name '{key}' differs from another only by case.")
        found[key] = str(value)
    if len(found) > MOST_TAGS:
        raise Refused(400, "TooManyTags", f"A resource can have at most {MOST_TAGS} tags.")
    return found


def page(request: Request, items: list[Any], size: int) -> tuple[list[Any], str | None]:
    """The part of a list that was asked for, and the address of what follows it."""
    offset = int(request.query.get("$skiptoken") or 0)
    part = items[offset : offset + size]
    if offset + size >= len(items):
        return part, None
    query = {**request.query, "$skiptoken": str(offset + size)}
    return part, f"{request.base}{request.path}?{urlencode(query)}"


def operation_id(kind: ArmKind, identity: str) -> str:
    """What names the work on one resource."""
    return base64.urlsafe_b64encode(f"{kind.plural} {identity}".encode()).decode().rstrip("=")


class Arm:
    """The handlers of one kind."""

    def __init__(self, kind: ArmKind, knobs: Knobs) -> None:
        self.kind = kind
        self._knobs = knobs

    def list(self, request: Request, draft: Draft) -> Reply:
        if "instanceView" in request.query.get("$expand", "") and "$filter" not in request.query:
            words = "Expand Instance View is only supported when Virtual Machine Scale Set resource filter is applied."
            raise Refused(400, "BadRequest", words)
        group = request.words.get("group", "").lower()
        if group:
            _group(request, draft)
        found = [(one, body) for one, body in draft.all(self.kind.plural) if not group or group_of(body["id"]) == group]
        part, following = page(request, found, self._knobs.page_size or PAGE)
        for one, _ in part:
            draft.shows(self.kind.plural, one)
        value = [self._seen(request, draft, body) for _, body in part]
        return Reply(200, {"value": value, **({"nextLink": following} if following else {})})

    def get(self, request: Request, draft: Draft) -> Reply:
        identity = resource_id(request, self.kind, request.words["name"])
        body = draft.find(self.kind.plural, identity.lower())
        if body is None:
            raise _missing(request, draft, identity)
        return Reply(200, self._seen(request, draft, body))

    def put(self, request: Request, draft: Draft) -> Reply:
        """Write the whole of it: what is left out of the body is gone, tags too."""
        kind = self.kind
        group = _group(request, draft)
        identity = resource_id(request, kind, request.words["name"])
        before = draft.peek(kind.plural, identity.lower())
        given = request.json() or {}
        self._check_name(draft, identity)
        if before is not None:
            refuse_if_locked(draft, identity, deletes=False)
            self._refuse_if_busy(draft, identity)
            if given.get("location") and _place(given["location"]) != before["location"]:
                raise Refused(409, "InvalidResourceLocation", f"The resource '{name_of(identity)}' is elsewhere.")
        location = _place(given.get("location") or (before or {}).get("location") or group["location"])
        body = {
            "id": (before or {"id": identity})["id"],
            "name": name_of((before or {"id": identity})["id"]),
            "type": kind.type,
            **{key: value for key, value in given.items() if key not in ("id", "name", "type")},
            "location": location,
            "tags": tags_of(given.get("tags")),
            "properties": dict(given.get("properties") or {}),
            **{key: value for key, value in (before or {}).items() if key.startswith("_")},
            "_version": request.query.get("api-version", ""),
        }
        self._require(request, draft, before)
        seen = self._write(draft, identity, body, before)
        return self._answer(request, identity, show(kind, draft, seen), is_new=before is None)

    def patch(self, request: Request, draft: Draft) -> Reply:
        identity, before = self._existing(request, draft)
        refuse_if_locked(draft, identity, deletes=False)
        self._refuse_if_busy(draft, identity)
        given = request.json() or {}
        body = merged(before, {key: value for key, value in given.items() if key in ("properties", "sku", "identity")})
        if "tags" in given:
            body["tags"] = tags_of(given["tags"])  # the whole set, as everywhere but at the tags' own address
        self._require(request, draft, before)
        seen = self._write(draft, identity, body, before)
        return self._answer(request, identity, show(self.kind, draft, seen), is_new=False)

    def delete(self, request: Request, draft: Draft) -> Reply:
        identity = resource_id(request, self.kind, request.words["name"])
        before = draft.peek(self.kind.plural, identity.lower())
        if before is None:
            return Reply(204)
        refuse_if_locked(draft, identity, deletes=True)
        if self.kind.deletes_guarded:
            self._require(request, draft, before)
        self.kind.rules.leave(draft, before)
        draft.remove(self.kind.plural, identity.lower())
        return Reply(202 if self.kind.is_async else 200, None, self.work(request, identity))

    # --- what they share

    def write(self, draft: Draft, identity: str, body: Body, before: Body | None) -> Body:
        """Keep a resource as it is to be, with a new etag."""
        return self._write(draft, identity, body, before)

    def _write(self, draft: Draft, identity: str, body: Body, before: Body | None) -> Body:
        complete = self.kind.rules.complete(draft, body, before)
        complete["properties"].setdefault(self.kind.state, self.kind.states.get("ready", "Succeeded"))
        if self.kind.etag:
            complete[self.kind.etag] = f'W/"{uuid4()}"'
        return draft.put(self.kind.plural, identity.lower(), complete)

    def _existing(self, request: Request, draft: Draft) -> tuple[str, Body]:
        identity = resource_id(request, self.kind, request.words["name"])
        body = draft.peek(self.kind.plural, identity.lower())
        if body is None:
            raise _missing(request, draft, identity)
        return identity, body

    def _require(self, request: Request, draft: Draft, before: Body | None) -> None:
        if not self.kind.etag:
            return
        stale = Refused(412, "PreconditionFailed", "The etag of the resource is another one, or it is there already.")
        if request.headers.get("if-none-match") == "*":
            draft.require(before is None, stale)
        wanted = request.headers.get("if-match")
        if wanted and wanted != "*":
            draft.require(before is not None and etag_name(before) == wanted, stale)

    def _refuse_if_busy(self, draft: Draft, identity: str) -> None:
        if draft.phase(self.kind.plural, identity.lower()) is not None:
            raise Refused(409, "AnotherOperationInProgress", f"Another operation on '{identity}' is in progress.")

    def _check_name(self, draft: Draft, identity: str) -> None:
        if not self.kind.is_global:
            return
        for other, _ in draft.everything(self.kind.plural):
            if name_of(other) == name_of(identity).lower() and other != identity.lower():
                code = "StorageAccountAlreadyTaken" if self.kind.service == "storage" else "ServerNameAlreadyExists"
                raise Refused(409, code, f"The name '{name_of(identity)}' is already taken.")

    def _seen(self, request: Request, draft: Draft, body: Body) -> Body:
        seen = show(self.kind, draft, body)
        if request.query.get("statusOnly") == "true":
            summary = {key: seen[key] for key in ("id", "name", "type", "location")}
            return {**summary, "properties": {"instanceView": body.get("_instanceView")}}
        for name in (request.query.get("$expand") or "").split(","):
            if f"_{name}" in body:
                seen["properties"] = {**seen["properties"], name: body[f"_{name}"]}
        return seen

    def _answer(self, request: Request, identity: str, seen: Body, *, is_new: bool) -> Reply:
        """What a write is answered with: the resource, or only where the vendor's clients find it later."""
        if self.kind.answers == "operation":
            operation = {
                "operation": "UpsertServerManagementOperationV2",
                "startTime": f"{datetime.now(UTC):%FT%T.%fZ}",
            }
            headers = (*self.work(request, identity), ("Location", self._place_of_work(request, identity, "results")))
            return Reply(202, operation, headers)
        if self.kind.answers == "nothing" and is_new:
            return Reply(202, None, (("Location", self._place_of_work(request, identity, "results")),))
        return Reply(self.kind.created if is_new else 200, seen, self.work(request, identity))

    def work(self, request: Request, identity: str) -> tuple[tuple[str, str], ...]:
        """Where the vendor's own clients read how far it is."""
        if not self.kind.is_async:
            return ()
        return (("Azure-AsyncOperation", self._place_of_work(request, identity, "operations")), ("Retry-After", "0"))

    def _place_of_work(self, request: Request, identity: str, collection: str) -> str:
        within = f"{request.base}/subscriptions/{request.words['subscription']}/providers/{self.kind.namespace}"
        path = f"{within}/locations/westeurope/{collection}/{operation_id(self.kind, identity.lower())}"
        return f"{path}?{urlencode({'api-version': request.query.get('api-version', '')})}"


def _place(location: str) -> str:
    return location.replace(" ", "").lower()


def _group(request: Request, draft: Draft) -> Body:
    name = request.words["group"]
    group = draft.peek("resourceGroups", name.lower())
    if group is None:
        raise Refused(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
    return group


def _missing(request: Request, draft: Draft, identity: str) -> Refused:
    group = _group(request, draft)
    kind_and_name = "/".join(identity.split("/")[6:])
    words = f"The Resource '{kind_and_name}' under resource group '{group['name']}' was not found."
    return Refused(404, "ResourceNotFound", words)
