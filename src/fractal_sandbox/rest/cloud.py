"""A cloud that speaks JSON over HTTP: the order in which every call goes through knobs, monitor, effect and record.

A vendor's cloud is a subclass that brings its kinds, its routes, its callers and its words of refusal.
"""

from __future__ import annotations

import json
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Any, ClassVar, TypeAlias

from fractal_sandbox.calls import Actor, Call, CallLog, Origin, RecordedCall
from fractal_sandbox.fault_injection import Interference, Knobs
from fractal_sandbox.http_server import ConnectionCut, Environ, StartResponse
from fractal_sandbox.monitor import Monitor
from fractal_sandbox.owned_resources import Owned, owned
from fractal_sandbox.rest.kinds import Body, Kind
from fractal_sandbox.rest.monitoring import Watching
from fractal_sandbox.rest.routes import READING, Reply, Request, Route, Routes, read_request
from fractal_sandbox.rest.store import Change, Draft, Refused, Store

__all__ = ["Missing", "RestCloud"]

Missing: TypeAlias = Callable[[Request, Route, Draft], str]
"""The right that a call lacks, in the vendor's words; empty where it lacks none."""


def _nothing_missing(request: Request, route: Route, draft: Draft) -> str:
    del request, route, draft
    return ""


class RestCloud(ABC):
    """One vendor's API, with its knobs, its monitor and the record of its calls."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[Kind, ...]]

    def __init__(self) -> None:
        self.knobs = Knobs()
        self.calls = CallLog()
        self.monitor = Monitor()
        self.lock = threading.RLock()
        self._missing: Missing = _nothing_missing
        self._routes = Routes(self.routes())
        self.reset()

    # What a vendor's cloud brings

    @abstractmethod
    def routes(self) -> list[Route]:
        """Everything it answers."""

    @abstractmethod
    def actor_of(self, request: Request) -> Actor:
        """Who calls; raises `Refused` as the vendor refuses callers it does not know."""

    @abstractmethod
    def refusal(self, refused: Refused) -> Reply:
        """A refusal in the vendor's form."""

    def throttled(self) -> Refused:
        """How the vendor asks for fewer calls."""
        return Refused(429, "TooManyRequests", "Too many requests.", headers=(("Retry-After", "1"),))

    def denied(self, missing: str) -> Refused:
        """How the vendor refuses a call for want of a right."""
        return Refused(403, "Forbidden", f"{missing} is not granted")

    def begin(self, draft: Draft) -> None:  # noqa: B027
        """Make what is there from the start (images, a project); most clouds have nothing."""

    def path_of(self, path: str) -> str:
        """A path as the routes spell it, where the vendor is not particular about that."""
        return path

    def page_of(self, request: Request) -> int:
        """Which page of a list is asked for; 1 is the first."""
        del request
        return 1

    def region_of(self, request: Request) -> str:
        """Where names are looked up: what the monitor compares lists and creations by."""
        del request
        return ""

    def headers(self) -> tuple[tuple[str, str], ...]:
        """What every answer carries that does not say otherwise: a request id, say."""
        return ()

    # What tests use

    def reset(self) -> None:
        """Remove all resources, calls, judgements, knobs and hooks; what a cloud has from the start comes back."""
        with self.lock:
            self.knobs.reset()
            self.calls.clear()
            self.monitor.reset()
            self.store = Store(self.kinds, self.knobs)
            self._watching = Watching(self.monitor, self.store)
            draft = self.store.draft()
            self.begin(draft)
            self.store.carry_out(draft.changes())

    @contextmanager
    def restrict_agent(self, missing: Missing) -> Iterator[None]:
        """Have every call of the agent's refused that lacks a right; outlives a reset. Without this, it may do all."""
        before, self._missing = self._missing, missing
        try:
            yield
        finally:
            self._missing = before

    def resources(self, kind: str) -> list[tuple[str, Body]]:
        """Every resource of a kind at this instant, with its id, for tests in the sandbox's own process."""
        with self.lock:
            self.store.settle()
            return list(self.store.items(kind))

    def owned_resources(self) -> list[Owned]:
        """Every resource that carries an owner tag at this instant, hidden ones and dying ones too."""
        with self.lock:
            self.store.settle()
            return [
                one
                for kind in self.kinds
                if kind.tags is not None
                for resource_id, body in self.store.items(kind.name)
                for one in owned(self.name, kind.name, resource_id, kind.place(body).name, kind.tags(body))
            ]

    # How a call goes

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        reply = self._reply(read_request(environ, "person"))
        content_type, body = _written(reply.content)
        own = {name.lower() for name, _ in reply.headers}
        headers = [*reply.headers, *(pair for pair in self.headers() if pair[0].lower() not in own)]
        if not any(name.lower() == "content-type" for name, _ in headers):
            headers.append(("Content-Type", content_type))
        start_response(f"{reply.status} {HTTPStatus(reply.status).phrase}", headers)
        return [body]

    def _reply(self, request: Request) -> Reply:
        try:
            request = replace(request, path=self.path_of(request.path))
            request = replace(request, actor=self.actor_of(request))
            found = self._routes.find(request.method, request.path, request.actor)
            if found is None:
                self._report_unknown(request)
                raise self.unknown(request)
        except Refused as refused:
            return self._refusal(refused)
        route, words = found
        request = replace(request, words=words)
        call = self._call(request, route)
        self.knobs.wait(call)
        self.knobs.run_before_hooks(call)
        interference = self.knobs.before(call)
        if interference is not None:
            return self._interfere(call, interference, effect=False)
        reply, call, interference = self._carry_out(request, route, call)
        if interference is not None:
            return self._interfere(call, interference, effect=reply.status < 400)
        self._finish(RecordedCall(call, reply.status, reply.error, reply.status < 400))
        return self._rewritten(call, reply)

    def unknown(self, request: Request) -> Refused:
        """How the vendor refuses a path or a method it does not have."""
        if self._routes.knows(request.path):
            return Refused(405, "MethodNotAllowed", f"{request.method} is not allowed here")
        return Refused(404, "NotFound", f"the sandbox has no {request.path}")

    def _report_unknown(self, request: Request) -> None:
        """A write of the agent at a path that nobody knows: nobody knows either what the real cloud would do."""
        if request.actor == "agent" and request.method not in READING:
            asked = f"{request.method} {request.path}"
            route = Route("GET", request.path, "unknown", asked, lambda _, __: Reply(404))
            call = replace(self._call(request, route), is_write=True)
            self.monitor.unclassified(call, f"the sandbox has no {asked}")

    def _call(self, request: Request, route: Route) -> Call:
        user_agent = request.headers.get("user-agent", "")
        return Call(
            actor=request.actor,
            access_key=f"{self.name}-{request.actor}",
            service=route.service,
            operation=route.operation,
            region=self.region_of(request),
            parameters={**request.query, **_shown(request)},
            is_write=route.writes,
            origin=Origin.from_user_agent(user_agent),
            user_agent=user_agent,
            resource_ids=(request.words[route.id_word],) if route.id_word else (),
            page=1 if route.writes else self.page_of(request),
        )

    def _carry_out(self, request: Request, route: Route, call: Call) -> tuple[Reply, Call, Interference | None]:
        """Plan a call, check it and carry it out, under one lock; an answer that gets lost has shown nothing."""
        with self.lock:
            self.store.settle()
            draft = self.store.draft()
            try:
                self._authorize(request, route)
                reply = route.handler(request, draft)
                self._watching.check_if_refused(call, draft)
                if draft.refused is not None:
                    raise draft.refused
            except Refused as refused:
                reply = self._refusal(refused)
                draft = self.store.draft()
            except Exception as fault:  # noqa: BLE001
                # A fault of ours. The client must see it in a form it can read.
                traceback.print_exc()
                reply = self._refusal(Refused(500, "InternalError", f"the sandbox failed: {fault!r}"))
                draft = self.store.draft()
            changes = draft.changes()
            made = [change.id for change in changes if change.before is None and _is_own(change)]
            if made and not call.resource_ids:
                call = replace(call, resource_ids=tuple(made))
            lost_races = self._watching.check(call, changes)
            self.store.carry_out(changes)
            self.monitor.confirm(lost_races)
            interference = self.knobs.after(call)
            if interference is None and reply.status < 400:
                self._watching.note(call, draft)
            return reply, call, interference

    def _authorize(self, request: Request, route: Route) -> None:
        missing = self._missing(request, route, self.store.draft()) if request.actor == "agent" else ""
        if missing:
            raise self.denied(missing)

    def _rewritten(self, call: Call, reply: Reply) -> Reply:
        if reply.status >= 400:
            return reply
        content_type, body = _written(reply.content)
        changed = self.knobs.rewritten(call, body)
        if changed == body:
            return reply
        return replace(reply, content=changed, headers=_typed(reply.headers, content_type))

    def _interfere(self, call: Call, interference: Interference, *, effect: bool) -> Reply:
        if interference.cut:
            self._finish(RecordedCall(call, 0, "", effect))
            self.knobs.hold(interference)
            raise ConnectionCut
        if interference.kind == "answer":
            reply = Reply(interference.status, interference.body, (("Content-Type", interference.content_type),))
        elif interference.kind == "throttle":
            reply = self._refusal(self.throttled())
        else:
            reply = self._refusal(Refused(interference.status, interference.code, interference.message))
        self._finish(RecordedCall(call, reply.status, reply.error, effect))
        return reply

    def _refusal(self, refused: Refused) -> Reply:
        reply = self.refusal(refused)
        return replace(reply, error=refused.code, headers=(*reply.headers, *refused.headers))

    def _finish(self, recorded: RecordedCall) -> None:
        self.calls.append(recorded)
        self.knobs.run_after_hooks(recorded)


def _typed(headers: tuple[tuple[str, str], ...], content_type: str) -> tuple[tuple[str, str], ...]:
    if any(name.lower() == "content-type" for name, _ in headers):
        return headers
    return (*headers, ("Content-Type", content_type))


def _is_own(change: Change) -> bool:
    """Whether a change is what a call is about, and not what the cloud does along with it."""
    return not change.kind.unmonitored and change.kind.goes_with is None


def _shown(request: Request) -> dict[str, Any]:
    try:
        body = request.json()
    except ValueError:
        return {}
    return {} if body is None else {"body": body}


def _written(content: Any) -> tuple[str, bytes]:
    if content is None:
        return "application/json", b""
    if isinstance(content, bytes):
        return "application/octet-stream", content
    return "application/json", json.dumps(content).encode()
