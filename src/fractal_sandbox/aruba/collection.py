"""The collections of Aruba's API: list, get, create, write again as a whole, delete.

What is peculiar to a kind stands beside it; here is the order in which every call is handled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fractal_sandbox.aruba import common
from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.rest import Body, Draft, Kind, Reply, Request, Route

__all__ = ["PROJECT", "Collection", "existing", "find_by_uri"]

PROJECT: Final = common.plain("project", unmonitored="there from the start: no call here writes one")
Make: TypeAlias = Callable[[Draft, Body], Body]
Linked: TypeAlias = Callable[[Draft, Body], list[str]]
Change: TypeAlias = Callable[[Body, Body], None]
OnDelete: TypeAlias = Callable[[Draft, Body, Mapping[str, str]], None]
Spelled: TypeAlias = Callable[[Body], Body]


def existing(draft: Draft, kind: str, resource_id: str, what: str = "resource") -> Body:
    """A resource that a request refers to; raises where there is none."""
    found = draft.peek(kind, resource_id)
    if found is None:
        raise common.not_found(what)
    return found


def find_by_uri(draft: Draft, kind: Kind, given: Any, named: str) -> Body:
    """A resource that a request names by its address (`{"uri": ...}`); raises where there is none."""
    uri = given.get("uri") if isinstance(given, dict) else None
    found = draft.peek(kind.name, str(uri).rpartition("/")[2])
    if found is None or found["uri"] != uri:
        raise common.invalid(named, f"{uri!r} was not found")
    return found


def _nothing_linked(draft: Draft, body: Body) -> list[str]:
    del draft, body
    return []


def _as_wished(before: Body, after: Body) -> None:
    del before, after


def _nothing_more(draft: Draft, body: Body, query: Mapping[str, str]) -> None:
    del draft, body, query


@dataclass(frozen=True)
class Collection:
    """One kind of resource. `path`: where it is below a project's providers. `parent`: the kind it lies in.

    `make` completes the properties of a new one, and raises where they are wrong. `changed`: the properties a write may
    change, checked by `change`. `accepted`: the properties of a request as they are stored; raises where they are
    wrong. `answered`: the stored properties in the spelling of answers. `linked`: the addresses of what needs it.
    `on_delete`: what goes with a deletion. `settled_state`: its state while nothing happens to it.
    """

    kind: Kind
    path: str
    service: str
    noun: str
    make: Make
    parent: Kind | None = None
    changed: tuple[str, ...] = ()
    change: Change = _as_wished
    accepted: Spelled = dict
    answered: Spelled = dict
    linked: Linked = _nothing_linked
    on_delete: OnDelete = _nothing_more
    settled_state: str = "Active"
    put_status: int = 200
    shows_deleted: bool = False

    def routes(self, knobs: Knobs) -> list[Route]:
        """Everything it answers."""
        many = f"/projects/{{project}}/providers/{self.path}"
        one = f"{many}/{{id}}"

        def listing(request: Request, draft: Draft) -> Reply:
            return self._list(request, draft, knobs)

        return [
            Route("GET", many, self.service, f"list{self.noun}s", listing),
            Route("POST", many, self.service, f"create{self.noun}", self._create, kind=self.kind.name),
            Route("GET", one, self.service, f"get{self.noun}", self._get, "id"),
            Route("PUT", one, self.service, f"update{self.noun}", self._update, "id", kind=self.kind.name),
            Route("DELETE", one, self.service, f"delete{self.noun}", self._delete, "id", kind=self.kind.name),
        ]

    def shown(self, draft: Draft, body: Body) -> Body:
        """A resource as a client sees it."""
        links = [{"uri": uri, "strictCorrelation": True} for uri in self.linked(draft, body)]
        provider, _, typology = self.path.partition("/")
        return {
            "metadata": {
                "id": body["id"],
                "uri": body["uri"],
                "name": body["name"],
                "location": {"value": body["location"]},
                "project": {"id": body["project"]},
                "tags": body["tags"],
                "category": {"provider": provider, "typology": {"id": typology.rpartition("/")[2]}},
            },
            "status": {"state": body["state"]},
            "properties": {**self.answered(body["properties"]), "linkedResources": links},
        }

    def _inside(self, request: Request, draft: Draft) -> str:
        """The address of the collection; raises where its project or its parent is not there."""
        existing(draft, PROJECT.name, request.words["project"], "project")
        if self.parent is not None:
            parent = existing(draft, self.parent.name, request.words["parent"], self.parent.name)
            if not request.path.startswith(f"{parent['uri']}/"):
                raise common.not_found()
        return request.path if "id" not in request.words else request.path.rpartition("/")[0]

    def _list(self, request: Request, draft: Draft, knobs: Knobs) -> Reply:
        below = f"{self._inside(request, draft)}/"
        found = [body for _, body in draft.all(self.kind.name) if body["uri"].startswith(below)]
        return common.page(
            request,
            knobs,
            found,
            lambda body: self.shown(draft, body),
            lambda body: draft.shows(self.kind.name, body["id"]),
        )

    def _get(self, request: Request, draft: Draft) -> Reply:
        self._inside(request, draft)
        body = draft.find(self.kind.name, request.words["id"])
        if body is None or body["uri"] != request.path:
            raise common.not_found()
        return Reply(200, self.shown(draft, body))

    def _create(self, request: Request, draft: Draft) -> Reply:
        below = self._inside(request, draft)
        given, metadata = _read(request)
        project, resource_id = request.words["project"], common.new_id()
        parent = request.words.get("parent", "")
        if parent and self.parent is not None and draft.phase(self.parent.name, parent) is not None:
            raise common.in_use(f"The {self.parent.name} is not ready.")
        tags = common.checked_tags(project, metadata.get("tags"))
        location = _location(metadata)
        body = {
            "id": resource_id,
            "uri": f"{below}/{resource_id}",
            "name": common.checked_name(metadata.get("name")),
            "scope": parent or f"{project}/{location}",
            "location": location,
            "project": project,
            "tags": tags,
            common.OWNERS: common.known_owners(request, tags, {}),
            "state": self.settled_state,
            "properties": self.accepted(given.get("properties") or {}),
        }
        body["properties"] = self.make(draft, body)
        return Reply(201, self.shown(draft, draft.put(self.kind.name, resource_id, body)))

    def writable(self, request: Request, draft: Draft) -> Body:
        """Return the resource that a write is about; raises while the cloud is at work on it."""
        self._inside(request, draft)
        body = existing(draft, self.kind.name, request.words["id"])
        phase = draft.phase(self.kind.name, body["id"])
        if phase is not None:
            raise common.in_use(f"The resource is {self.kind.in_phase(body, phase)['state']}.")
        return body

    def _update(self, request: Request, draft: Draft) -> Reply:
        body = self.writable(request, draft)
        given, metadata = _read(request)
        if _location(metadata) != body["location"]:
            raise common.invalid("Location", "cannot be changed")
        tags = common.checked_tags(body["project"], metadata.get("tags"))
        after = {
            **body,
            "name": common.checked_name(metadata.get("name")),
            "tags": tags,
            common.OWNERS: common.known_owners(request, tags, body[common.OWNERS]),
            "properties": self._changed(body["properties"], given.get("properties") or {}),
        }
        return Reply(self.put_status, self.shown(draft, draft.put(self.kind.name, body["id"], after)))

    def _changed(self, before: Body, given: Body) -> Body:
        after = dict(before)
        for name, value in self.accepted(given).items():
            if name == "linkedResources" or before.get(name) == value:
                continue
            if name not in self.changed:
                raise common.invalid(name, "cannot be changed")
            after[name] = value
        self.change(before, after)
        return after

    def _delete(self, request: Request, draft: Draft) -> Reply:
        body = self.writable(request, draft)
        if self.linked(draft, body):
            raise common.in_use(f"The {self.kind.name} is in use by linked resources.")
        shown = self.shown(draft, body) if self.shows_deleted else None
        self.on_delete(draft, body, request.query)
        draft.remove(self.kind.name, body["id"])
        return Reply(202, shown)


def _read(request: Request) -> tuple[Body, Body]:
    given = request.json()
    if not isinstance(given, dict) or not isinstance(given.get("metadata"), dict):
        raise common.invalid("Metadata", "is required")
    return given, given["metadata"]


def _location(metadata: Body) -> str:
    found = metadata.get("location")
    if not isinstance(found, dict) or not found.get("value"):
        raise common.invalid("Location", "is required")
    return str(found["value"])
