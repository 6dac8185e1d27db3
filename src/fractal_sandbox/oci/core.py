"""The collections of OCI's core services: list, get, create, update, delete, with etags and retry tokens.

What is peculiar to networks and instances stands in their own files; here is the order in which every call is handled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.oci import common
from fractal_sandbox.rest import Body, Draft, Kind, Refused, Reply, Request, Route

__all__ = ["COMPARTMENT", "TOKEN", "Collection", "existing"]

BASE: Final = "/20160918"
TOKEN: Final = common.unmonitored("retry-token", "what OCI remembers of a call's retry token")
COMPARTMENT: Final = common.unmonitored("compartment", "there from the start: no call here writes one")

Make: TypeAlias = Callable[[Draft, Body], Body]
Change: TypeAlias = Callable[[Draft, Body, Body], Body]
OnDelete: TypeAlias = Callable[[Draft, Body, Mapping[str, str]], None]
_COMMON: Final[tuple[str, ...]] = ("displayName", "freeformTags", "definedTags")


def existing(draft: Draft, kind: str, resource_id: Any, what: str = "resource") -> Body:
    """A resource that a request refers to; raises where there is none."""
    found = draft.peek(kind, resource_id) if isinstance(resource_id, str) else None
    if found is None:
        raise common.not_found(what)
    return found


def _overwritten(draft: Draft, body: Body, given: Body) -> Body:
    del draft
    return {**body, **given}


def _nothing_more(draft: Draft, body: Body, query: Mapping[str, str]) -> None:
    del draft, body, query


def _nothing(draft: Draft, living: set[str]) -> list[Body]:
    del draft, living
    return []


@dataclass(frozen=True)
class Collection:
    """One kind of resource. `word` is what ids call it, `noun` what operations do.

    `make` completes a new resource from what a request says (fields `made`), `change` one that is there (fields
    `changed`), `on_delete` does what goes with a deletion, and raises where something is still in it. `also` adds to a
    list what is no longer there and still shown. `filters`: what a list may be narrowed by.
    """

    kind: Kind
    path: str
    word: str
    noun: str
    made: tuple[str, ...]
    make: Make
    changed: tuple[str, ...] = ()
    change: Change = _overwritten
    on_delete: OnDelete = _nothing_more
    also: Callable[[Draft, set[str]], list[Body]] = _nothing
    filters: tuple[str, ...] = ()

    def routes(self, knobs: Knobs) -> list[Route]:
        """Everything it answers."""
        many, one = f"{BASE}/{self.path}", f"{BASE}/{self.path}/{{id}}"

        def listing(request: Request, draft: Draft) -> Reply:
            return self._list(request, draft, knobs)

        return [
            Route("GET", many, "core", f"list{self.noun}s", listing),
            Route("POST", many, "core", f"create{self.noun}", self._create, kind=self.kind.name),
            Route("GET", one, "core", f"get{self.noun}", self._get, "id"),
            Route("PUT", one, "core", f"update{self.noun}", self._update, "id", kind=self.kind.name),
            Route("DELETE", one, "core", f"delete{self.noun}", self._delete, "id", kind=self.kind.name),
        ]

    def _list(self, request: Request, draft: Draft, knobs: Knobs) -> Reply:
        wanted = {name: request.query[name] for name in (*self.filters, "displayName") if name in request.query}
        wanted["compartmentId"] = request.query.get("compartmentId", "")
        existing(draft, COMPARTMENT.name, wanted["compartmentId"])
        every = [body for _, body in draft.all(self.kind.name)]
        every += self.also(draft, {body["id"] for body in every})
        fitting = [body for body in every if all(body.get(name) == value for name, value in wanted.items())]
        return common.page(
            request,
            knobs,
            [common.shown(body) for body in fitting],
            lambda body: draft.shows(self.kind.name, body["id"]),
        )

    def _get(self, request: Request, draft: Draft) -> Reply:
        resource_id = request.words["id"]
        body = draft.find(self.kind.name, resource_id)
        if body is None:
            body = next((one for one in self.also(draft, set()) if one["id"] == resource_id), None)
        if body is None:
            raise common.not_found()
        return common.answer(body)

    def _create(self, request: Request, draft: Draft) -> Reply:
        given = common.check_fields(request.json(), ("compartmentId", *_COMMON, *self.made))
        token = request.headers.get("opc-retry-token")
        arguments = json.dumps(given, sort_keys=True)
        before = draft.peek(TOKEN.name, token) if token else None
        if token and before is not None:
            return self._again(draft, before, arguments)
        existing(draft, COMPARTMENT.name, given.get("compartmentId"))
        body = {
            "id": common.new_id(self.word),
            "timeCreated": common.now(),
            "lifecycleState": "AVAILABLE",
            "displayName": f"{self.word}{common.now()}",
            "definedTags": {},
            **given,
            "freeformTags": common.tagged(given.get("freeformTags")),
        }
        body = common.bumped(self.make(draft, body))
        if token:
            draft.put(TOKEN.name, token, {"id": body["id"], "arguments": arguments})
        return common.answer(draft.put(self.kind.name, body["id"], body))

    def _again(self, draft: Draft, before: Body, arguments: str) -> Reply:
        """A retry token that was used before makes nothing: the answer is what it made then."""
        found = draft.peek(self.kind.name, before["id"])
        if found is None:
            message = "The retry token was used before, for something that has been changed since."
            raise Refused(409, "InvalidatedRetryToken", message)
        if before["arguments"] != arguments:
            raise common.invalid("The retry token was used before, with other arguments.")
        return common.answer(found)

    def writable(self, request: Request, draft: Draft) -> Body:
        """Return the resource that a write is about; raises while the cloud is at work on it, or for another etag."""
        resource_id = request.words["id"]
        body = existing(draft, self.kind.name, resource_id)
        phase = draft.phase(self.kind.name, resource_id)
        if phase is not None:
            state = self.kind.in_phase(body, phase)["lifecycleState"]
            raise Refused(409, "IncorrectState", f"{resource_id} is {state}: the operation is not allowed now.")
        common.check_etag(request, draft, body)
        return body

    def keep(self, draft: Draft, body: Body) -> Reply:
        """Keep a change."""
        return common.answer(draft.put(self.kind.name, body["id"], common.bumped(body)))

    def _update(self, request: Request, draft: Draft) -> Reply:
        body = self.writable(request, draft)
        given = common.check_fields(request.json(), (*_COMMON, *self.changed))
        if "freeformTags" in given:
            given["freeformTags"] = common.tagged(given["freeformTags"])
        of_every_kind = {name: given.pop(name) for name in _COMMON if name in given}
        return self.keep(draft, {**(self.change(draft, body, given) if given else body), **of_every_kind})

    def _delete(self, request: Request, draft: Draft) -> Reply:
        body = self.writable(request, draft)
        self.on_delete(draft, body, request.query)
        draft.remove(self.kind.name, body["id"])
        return Reply(204)
