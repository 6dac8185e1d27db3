"""A namespace of a cluster, as offers see it: the few requests there are, and what their refusals mean.

How a request is sent is cloud.py's business; what an object must look like is the offers'.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl

from fractal_cloud.model.errors import CloudError, DependencyMissing, NotFound, Overtaken, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.kubernetes.errors import GONE, Answer, Expired, error_of, is_unknown_kind, made, no_such_kind
from fractal_cloud.offers.kubernetes.kinds import Object, ObjectKind
from fractal_cloud.offers.kubernetes.patching import test_passes
from fractal_cloud.offers.offer import Cloud

PAGE: Final = 500
LIST_ATTEMPTS: Final = 3
JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
HEADS: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""What a list is asked for that shows nothing but metadata."""
Objects = list[Object]


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``seconds``: other time limits than usual, to connect and to answer; ``accept``: another form."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = JSON
    seconds: tuple[float, float] | None = None
    accept: str = JSON

    @property
    def is_read(self) -> bool:
        """Whether it only reads."""
        return self.method == "GET"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Stream(Protocol):
    """An answer that is read line by line, as it comes; raises ``Unreadable`` where it breaks off."""

    def __iter__(self) -> Iterator[str]:
        """The lines."""

    def close(self) -> None:
        """End it, from any thread."""


class Server(Protocol):
    """An API server to which requests are sent."""

    @property
    def context(self) -> str:
        """What people call it."""

    def send(self, call: Call) -> Answer:
        """Send one request."""

    def open(self, call: Call) -> Stream:
        """Send a request whose answer is read line by line."""


class Kubernetes(Cloud):
    """One namespace of one cluster."""

    def __init__(self, server: Server, scope: Scope) -> None:
        self.scope = scope
        self.namespace = scope.place
        self.server = server

    @property
    def context(self) -> str:
        """The name under which the agent reaches the cluster."""
        return self.server.context

    # --- reading

    def list(self, kind: ObjectKind, labels: str = "") -> Objects:
        """Everything of a kind in the namespace (that has these labels), 500 a call. Raises rather than end early."""
        return self._list(kind, kind.path(self.namespace), {"labelSelector": labels} if labels else {})

    def select(self, kind: ObjectKind, labels: str) -> Objects:
        """Everything of a kind that has these labels, in all namespaces. Raises rather than end early."""
        return self._list(kind, replace(kind, is_namespaced=False).path(""), {"labelSelector": labels})

    def heads(self, kind: ObjectKind, namespace: str | None = None) -> Objects:
        """The metadata of everything of a kind in a namespace, and nothing else of it; raises rather than end early."""
        return self._list(kind, kind.path(self.namespace if namespace is None else namespace), {}, HEADS)

    def _list(self, kind: ObjectKind, path: str, query: Mapping[str, str], accept: str = JSON) -> Objects:
        for _ in range(LIST_ATTEMPTS):
            try:
                return [item for page in self._pages(kind, path, query, accept) for item in page]
            except Expired:
                continue
        raise Unreadable(f"{kind.plural} change faster than they can be listed: they are read again")

    def _pages(self, kind: ObjectKind, path: str, query: Mapping[str, str], accept: str) -> Iterator[Sequence[Object]]:
        cursor = ""
        while True:
            here = {**query, "limit": str(PAGE), **({"continue": cursor} if cursor else {})}
            answer = self._send(Call("GET", path, here, accept=accept), kind)
            if answer.status == GONE:
                raise Expired("the list expired")
            body = self._good(answer, kind).body()
            if not isinstance(body.get("items", 0), list | None):
                raise Unreadable(f"the answer to {answer.call} is no list of {kind.plural}: {answer.text[:80]!r}")
            yield body["items"] or []  # some versions say null where there are none
            following = str(body.get("metadata", {}).get("continue") or "")
            if not following:
                return
            if following == cursor:
                raise Unreadable(f"{kind.plural} answer the same page again and again: they cannot be read to the end")
            cursor = following

    def get(self, kind: ObjectKind, name: str, namespace: str | None = None) -> Object:
        """One object; raises ``NotFound`` where there is none."""
        place = self.namespace if namespace is None else namespace
        return self._good(self._send(Call("GET", kind.path(place, name)), kind), kind).body()

    def find(self, kind: ObjectKind, name: str, namespace: str | None = None) -> Object | None:
        """One object, or None where the server says that it is not there."""
        try:
            return self.get(kind, name, namespace)
        except NotFound:
            return None

    def document(self, path: str, accept: str = JSON, seconds: tuple[float, float] | None = None) -> Object | None:
        """What the server says of itself at a path; None where it has nothing there, or not in this form."""
        path, _, query = path.partition("?")
        answer = self.server.send(Call("GET", path, dict(parse_qsl(query)), accept=accept, seconds=seconds))
        if answer.status in (404, 406):
            return None
        if not answer.is_good:
            raise error_of(answer)
        return answer.body()

    # --- writing: each is one request, sent once

    def create(self, kind: ObjectKind, body: Object, manager: str = "", *, is_rehearsal: bool = False) -> Object:
        """Make an object; raises ``Conflict`` where the name is taken. ``manager``: who is to own its fields."""
        query = _by(manager, is_rehearsal=is_rehearsal)
        return self._good(self._send(Call("POST", kind.path(self.namespace), query, body=body), kind), kind).body()

    def apply(self, kind: ObjectKind, name: str, body: Object, manager: str, *, is_rehearsal: bool = False) -> Object:
        """Change an object by server-side apply: what a manager no longer names goes, what it names becomes its own.

        The body must carry the uid and the resourceVersion it rests on: nothing is made anew, nothing is overwritten.
        """
        if not {"uid", "resourceVersion"} <= body["metadata"].keys():
            raise AssertionError("an apply without uid and resourceVersion would change what nobody has seen")
        query = {**_by(manager, is_rehearsal=is_rehearsal), "force": "true"}
        call = Call("PATCH", kind.path(self.namespace, name), query, json.dumps(body), APPLY)
        answer = self._send(call, kind)
        if answer.status == 422 and "metadata.uid" in answer.text:
            raise made(Overtaken, f"{name!r} is another object by now", answer)
        return self._good(answer, kind).body()

    def patch(self, kind: ObjectKind, name: str, operations: Sequence[Object]) -> None:
        """Change an object by a JSON Patch: all of it or nothing, and nothing unless its tests hold.

        A refusal does not say which operation failed. So the object is read again: where a test no longer holds,
        somebody was faster (``Overtaken``); else the server does not take the change itself (``Invalid``).
        """
        call = Call("PATCH", kind.path(self.namespace, name), body=list(operations), content_type=JSON_PATCH)
        answer = self._send(call, kind)
        if answer.status != 422:
            self._good(answer, kind)
            return
        refused = error_of(answer)
        try:
            there = self.get(kind, name)
        except NotFound as gone:
            raise gone from refused
        except CloudError:
            raise Overtaken(f"{refused.message}; what stands there now cannot be read") from refused
        failed = [op["path"] for op in operations if op["op"] == "test" and not test_passes(there, op)]
        if failed:
            raise made(Overtaken, f"{name!r} was changed by somebody else at {', '.join(failed)}", answer) from refused
        raise refused

    def merge(self, kind: ObjectKind, name: str, body: Object) -> None:
        """Change an object by a merge patch, which must carry the resourceVersion it rests on."""
        if "resourceVersion" not in body["metadata"]:
            raise AssertionError("a merge patch without resourceVersion would overwrite what nobody has seen")
        call = Call("PATCH", kind.path(self.namespace, name), body=body, content_type=MERGE_PATCH)
        self._good(self._send(call, kind), kind)

    def delete(self, kind: ObjectKind, name: str, uid: str, revision: str | None) -> None:
        """Delete this very object, as it was read; absent is success."""
        conditions = {"uid": uid, **({"resourceVersion": revision} if revision else {})}
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": conditions,
            "propagationPolicy": "Background",
        }
        answer = self._send(Call("DELETE", kind.path(self.namespace, name), body=body), kind)
        if answer.status != 404 or is_unknown_kind(answer):
            self._good(answer, kind)

    # --- how

    def _send(self, call: Call, kind: ObjectKind) -> Answer:
        answer = self.server.send(call)
        if is_unknown_kind(answer):
            raise no_such_kind(answer, kind.kind, kind.product)
        return answer

    def _good(self, answer: Answer, kind: ObjectKind) -> Answer:
        if answer.is_good:
            return answer
        if answer.status == 404 and answer.call.startswith("POST "):
            raise self._lacks(answer, kind)
        raise error_of(answer)

    def _lacks(self, answer: Answer, kind: ObjectKind) -> CloudError:
        """What a new object needs and what is not there: its namespace, or what it names, as the role of a binding."""
        said = str((answer.said or {}).get("message") or "")
        if kind.is_namespaced and (not said or said.startswith("namespaces ")):
            return made(DependencyMissing, f"there is no namespace {self.namespace!r} for {kind.plural}", answer)
        return made(DependencyMissing, said or "something that it refers to is not there", answer)


def _by(manager: str, *, is_rehearsal: bool) -> dict[str, str]:
    """Who writes, under a name that the server records; whether it only says what would come of it."""
    strict = {"fieldManager": manager, "fieldValidation": "Strict"} if manager else {}
    return {**strict, **({"dryRun": "All"} if is_rehearsal else {})}
