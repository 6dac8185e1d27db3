"""What all kinds of resources have in common: lists, labels, names, protection, actions and deletion.

What a kind's own actions do stands in its own module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any, ClassVar, TypeAlias

from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.hetzner.labels import checked, matches
from fractal_sandbox.rest import Body, Draft, Refused, Reply, Request, Route

__all__ = ["ACTION", "Action", "Collection", "Numbers", "field", "invalid", "page", "parsed", "stamp"]

Action: TypeAlias = Callable[[Draft, Body, Mapping[str, Any]], None]
"""Changes a resource's body in place, from what a request says."""

ACTION = "action"
PER_PAGE, MOST_PER_PAGE = 25, 50


class Numbers:
    """Ids: numbers that only grow, for all kinds together."""

    def __init__(self) -> None:
        self._numbers = count(1001)

    def next(self) -> int:
        return next(self._numbers)


def stamp() -> str:
    """This instant, as Hetzner writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def invalid(message: str) -> Refused:
    return Refused(422, "invalid_input", message)


def parsed(request: Request) -> dict[str, Any]:
    """The body of a request; empty where there is none."""
    try:
        body = request.json()
    except ValueError:
        body = ()
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise Refused(400, "json_error", "the body is no JSON object")
    return body


def field(given: Mapping[str, Any], name: str) -> Any:
    """A field that must be there."""
    if given.get(name) is None:
        raise invalid(f"invalid input in field '{name}': missing data for required field")
    return given[name]


def page(items: list[Any], request: Request, knobs: Knobs) -> tuple[list[Any], Body]:
    """The part of a list that is asked for, and what is said about its pages."""
    try:
        number, size = int(request.query.get("page", 1)), int(request.query.get("per_page", PER_PAGE))
    except ValueError:
        number, size = 0, 0
    if number < 1 or not 1 <= size <= MOST_PER_PAGE:
        raise Refused(400, "invalid_input", "invalid input in field 'page' or 'per_page'")
    size = min(size, knobs.page_size or size)
    last = max(1, -(-len(items) // size))
    meta = {
        "page": number,
        "per_page": size,
        "previous_page": number - 1 if number > 1 else None,
        "next_page": number + 1 if number < last else None,
        "last_page": last,
        "total_entries": len(items),
    }
    return items[(number - 1) * size : number * size], {"pagination": meta}


class Collection(ABC):
    """One kind of resource with all its paths. ``kind`` is its singular name, in paths it stands in the plural."""

    kind: ClassVar[str]
    is_unique: ClassVar[bool] = True

    def __init__(self, knobs: Knobs, numbers: Numbers) -> None:
        self._knobs = knobs
        self._numbers = numbers

    # What a kind brings

    @abstractmethod
    def make(self, draft: Draft, given: Mapping[str, Any]) -> tuple[Body, Body]:
        """A new resource beside id, name, labels and creation time; and what its answer holds beside it."""

    @abstractmethod
    def actions(self) -> Mapping[str, Action]:
        """Its own actions beside those that all kinds have."""

    def show(self, draft: Draft, body: Body) -> Body:
        """A resource as an answer shows it, with what other resources say of it."""
        del draft
        return body

    def newborn(self, shown: Body) -> Body:
        """How the answer to its creation shows a resource: what has a state is not ready yet."""
        return shown

    def let_go(self, draft: Draft, body: Body) -> None:  # noqa: B027
        """Do what a deletion does to other resources, or refuse it."""

    def put(self, body: Body, given: Mapping[str, Any]) -> None:  # noqa: B027
        """Take over what can be set beside name and labels."""

    # Its paths

    @property
    def plural(self) -> str:
        return f"{self.kind}s"

    def routes(self) -> list[Route]:
        base, one = f"/v1/{self.plural}", f"/v1/{self.plural}/{{id}}"

        def route(method: str, pattern: str, operation: str, handler: Any) -> Route:
            kind = "" if method == "GET" else self.kind
            word = "id" if "{id}" in pattern else ""
            return Route(method, pattern, self.plural, operation, handler, word, kind=kind)

        return [
            route("GET", base, "list", self.list),
            route("POST", base, "create", self.create),
            route("GET", one, "get", self.get),
            route("PUT", one, "update", self.update),
            route("DELETE", one, "delete", self.delete),
            route("GET", f"{one}/actions", "list_actions", self.list_actions),
            *(
                route("POST", f"{one}/actions/{name}", name, self._acting(name, action))
                for name, action in {**self._common(), **self.actions()}.items()
            ),
        ]

    def list(self, request: Request, draft: Draft) -> Reply:
        found = [(resource_id, body) for resource_id, body in draft.all(self.kind) if _is_meant(body, request)]
        key, _, direction = request.query.get("sort", "id:asc").partition(":")
        if key not in ("id", "name", "created"):
            raise Refused(400, "invalid_input", "invalid input in field 'sort'")
        found.sort(key=lambda one: (one[1][key], one[1]["id"]), reverse=direction == "desc")
        chosen, meta = page(found, request, self._knobs)
        for resource_id, _ in chosen:
            draft.shows(self.kind, resource_id)
        return Reply(200, {self.plural: [self.show(draft, body) for _, body in chosen], "meta": meta})

    def get(self, request: Request, draft: Draft) -> Reply:
        body = draft.find(self.kind, request.words["id"])
        if body is None:
            raise self.absent(request.words["id"])
        return Reply(200, {self.kind: self.show(draft, body)})

    def create(self, request: Request, draft: Draft) -> Reply:
        given = parsed(request)
        number = self._numbers.next()
        name = self._named(draft, field(given, "name"), str(number))
        labels = checked(given.get("labels") or {})
        made, beside = self.make(draft, given)
        body = {"id": number, "name": name, "labels": labels, "created": stamp(), **made}
        shown = self.show(draft, draft.put(self.kind, str(number), body))
        action = self._begin(draft, f"create_{self.kind}", number)
        return Reply(201, {self.kind: self.newborn(shown), "action": action, **beside})

    def update(self, request: Request, draft: Draft) -> Reply:
        given, body = parsed(request), self.need(draft, request.words["id"])
        if given.get("name") is not None:
            body["name"] = self._named(draft, given["name"], request.words["id"])
        if given.get("labels") is not None:
            body["labels"] = checked(given["labels"])
        self.put(body, given)
        return Reply(200, {self.kind: self.show(draft, draft.put(self.kind, request.words["id"], body))})

    def delete(self, request: Request, draft: Draft) -> Reply:
        body = self.need(draft, request.words["id"])
        self._is_free(draft, request.words["id"])
        if (body.get("protection") or {}).get("delete"):
            raise Refused(423, "protected", f"{self.kind} deletion is protected")
        self.let_go(draft, body)
        draft.remove(self.kind, request.words["id"])
        return Reply(200, {"action": self._begin(draft, f"delete_{self.kind}", body["id"])})

    def list_actions(self, request: Request, draft: Draft) -> Reply:
        number = self.need(draft, request.words["id"])["id"]
        about = {"id": number, "type": self.kind}
        found = [body for _, body in draft.all(ACTION) if about in body["resources"]]
        chosen, meta = page(found, request, self._knobs)
        return Reply(200, {"actions": chosen, "meta": meta})

    # For this kind and others

    def need(self, draft: Draft, resource_id: Any, kind: str = "") -> Body:
        """A resource that must be there; past every knob."""
        body = draft.peek(kind or self.kind, str(resource_id))
        if body is None:
            raise self.absent(resource_id, kind)
        return body

    def absent(self, resource_id: Any, kind: str = "") -> Refused:
        return Refused(404, "not_found", f"{(kind or self.kind).replace('_', ' ')} with ID '{resource_id}' not found")

    def _common(self) -> Mapping[str, Action]:
        return {"change_protection": _change_protection}

    def _acting(self, name: str, action: Action) -> Callable[[Request, Draft], Reply]:
        def handler(request: Request, draft: Draft) -> Reply:
            body = self.need(draft, request.words["id"])
            self._is_free(draft, request.words["id"])
            action(draft, body, parsed(request))
            draft.put(self.kind, request.words["id"], body)
            return self.begun(self._begin(draft, name, body["id"]))

        return handler

    def begun(self, action: Body) -> Reply:
        """How the beginning of an action is answered."""
        return Reply(201, {"action": action})

    def _is_free(self, draft: Draft, resource_id: str) -> None:
        if draft.phase(self.kind, resource_id) is not None:
            raise Refused(423, "locked", f"{self.kind} is locked: an action is already running")

    def _named(self, draft: Draft, name: Any, resource_id: str) -> str:
        if not isinstance(name, str) or not name:
            raise invalid("invalid input in field 'name'")
        others = [body["name"] for other, body in draft.everything(self.kind) if other != resource_id]
        if self.is_unique and name in others:
            raise Refused(409, "uniqueness_error", f"{self.kind} name is already used")
        return name

    def _begin(self, draft: Draft, command: str, number: int) -> Body:
        """Keep an action. It shows as running as long as the cloud is at work on its resource."""
        action = {
            "id": self._numbers.next(),
            "command": command,
            "status": "success",
            "progress": 100,
            "started": stamp(),
            "finished": stamp(),
            "resources": [{"id": number, "type": self.kind}],
            "error": None,
        }
        draft.put(ACTION, str(action["id"]), action)
        return {**action, "status": "running", "progress": 0, "finished": None}


def _is_meant(body: Body, request: Request) -> bool:
    name, selector, status = (request.query.get(key) for key in ("name", "label_selector", "status"))
    return (
        (name is None or body["name"] == name)
        and (selector is None or matches(selector, body["labels"]))
        and (status is None or body.get("status") == status)
    )


def _change_protection(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    known = body.get("protection")
    if known is None:
        raise Refused(404, "not_found", "there is no such action")
    changed = {**known, **{name: bool(given[name]) for name in known if given.get(name) is not None}}
    if len(set(changed.values())) > 1:
        raise invalid("'delete' and 'rebuild' must have the same value")
    body["protection"] = changed
