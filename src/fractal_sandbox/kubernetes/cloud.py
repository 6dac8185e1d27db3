"""Kubernetes on this machine: one WSGI application through which every call to a cluster of the sandbox goes.

A call is parsed, delayed or failed as the knobs say, planned, checked by the monitor, carried out, and recorded. From
planning to carrying out there is one lock. What each step does is in its own file; the order of the steps is here.
"""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from fractal_sandbox.calls import Actor, Call, CallLog, Origin, RecordedCall
from fractal_sandbox.fault_injection import Interference, Knobs
from fractal_sandbox.http_server import ConnectionCut, Environ, StartResponse, Stream
from fractal_sandbox.kubernetes import AGENT_TOKEN, PERSON_TOKEN
from fractal_sandbox.kubernetes.admission import Admission
from fractal_sandbox.kubernetes.controllers import Controllers
from fractal_sandbox.kubernetes.discovery import AGGREGATED, aggregated, describe, is_about_itself
from fractal_sandbox.kubernetes.errors import ApiError, PageNotFound, forbidden, not_granted, unauthorized
from fractal_sandbox.kubernetes.forms import form_of, shown_list, shown_object
from fractal_sandbox.kubernetes.kinds import CONFIG_MAP, CRD, DEFINITIONS, NAMESPACE, Kinds, Object
from fractal_sandbox.kubernetes.monitoring import Watching, tags_of
from fractal_sandbox.kubernetes.networking import Addresses
from fractal_sandbox.kubernetes.rbac import Rbac, User, asked_by
from fractal_sandbox.kubernetes.reading import Reading
from fractal_sandbox.kubernetes.request import KubeRequest, actor_of, parse, split_actor
from fractal_sandbox.kubernetes.scaling import scale_of
from fractal_sandbox.kubernetes.store import Store
from fractal_sandbox.kubernetes.watching import watch
from fractal_sandbox.kubernetes.writing import Plan, Writing
from fractal_sandbox.monitor import Monitor
from fractal_sandbox.owned_resources import Owned, owned

__all__ = ["Answer", "KubernetesCloud", "Refusal", "no_refusal"]

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
# What a newer server keeps for itself, from its start on.
_OF_THE_SERVER = ("extension-apiserver-authentication", "kube-apiserver-legacy-service-account-token-tracking")
Refusal: TypeAlias = Callable[[Plan], str]
_OPEN_TO_ALL = ("/healthz", "/readyz", "/livez", "/version")


def no_refusal(plan: Plan) -> str:
    """Deny nothing."""
    del plan
    return ""


@dataclass(frozen=True)
class Answer:
    """What the caller gets: JSON, or text, or bytes, or a stream."""

    status: int
    content: Any
    error: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = ""  # derived from the content where it is empty

    @property
    def is_success(self) -> bool:
        return self.status < 300


class KubernetesCloud:
    """The API server of one cluster, with its knobs, its monitor and the record of its calls.

    `without` names custom resource definitions that this cluster does not have, as `mappings.getambassador.io`.
    `authenticate` returns whom a bearer token stands for, where a vendor keeps the cluster: paths then name nobody.
    `beside`: knobs and calls that it shares with others.
    """

    name = "kubernetes"

    def __init__(
        self,
        *,
        without: Iterable[str] = (),
        authenticate: Callable[[str], Actor | None] | None = None,
        beside: tuple[Knobs, CallLog] | None = None,
    ) -> None:
        self.knobs, self.calls = beside or (Knobs(), CallLog())
        self._is_alone = beside is None
        self._authenticate = authenticate
        self.monitor = Monitor()
        self._without = frozenset(without)
        self._lock = threading.RLock()
        self._store = Store(self._lock)
        self.admission = Admission()
        self._rights: tuple[User, Rbac] | None = None
        self._refusal: Refusal = no_refusal
        self.reset()

    def reset(self) -> None:
        """Remove all objects, calls, judgements, knobs and hooks; what a cluster has from the start comes back."""
        with self._lock:
            if self._is_alone:
                self.knobs.reset()
                self.calls.clear()
            self.monitor.reset()
            self.admission.reset()
            self._empty()

    def replace(self) -> Callable[[], None]:
        """Have another cluster answer at this address, as empty as a new one; returns what brings the old one back.

        Calls, knobs and judgements stay.
        """
        parts = ("_store", "_kinds", "_controllers", "_writing", "_reading", "_watching")
        with self._lock:
            before = {name: getattr(self, name) for name in parts}
            self._store = Store(self._lock)
            self._empty()

        def bring_back() -> None:
            with self._lock:
                vars(self).update(before)

        return bring_back

    def _empty(self) -> None:
        kept = {name: self._store.get(NAMESPACE, "", name) for name in _NAMESPACES}
        self._store.reset()
        self._kinds = Kinds()
        addresses = Addresses()
        self._controllers = Controllers(self._store, self._kinds, self.knobs, addresses)
        self._writing = Writing(self._store, self._controllers, addresses, self.admission)
        self._reading = Reading(self._store, self._controllers)
        self._watching = Watching(self.monitor, self._writing)
        self._begin(kept)

    @contextmanager
    def restrict_agent(self, user: User, documents: Iterable[Object], refusal: Refusal = no_refusal) -> Iterator[None]:
        """Know the agent as a user, and let it do what these roles and bindings grant it; outlives a reset.

        Without this, it may do everything, as may people. `refusal` returns why an admission policy denies one of its
        writes, and nothing where none does.
        """
        before = self._rights, self._refusal
        self._rights, self._refusal = (user, Rbac(documents)), refusal
        try:
            yield
        finally:
            self._rights, self._refusal = before

    def remove_crd(self, name: str) -> None:
        """Take a custom resource definition away, with all its objects: its kind is no longer served."""
        with self._lock:
            found = self._store.get(CRD, "", name)
            if found is None:
                raise ValueError(f"no custom resource definition is called {name!r}")
            self._controllers.removed(CRD, self._store.remove(CRD.resource, found))

    def expire_pages(self) -> None:
        """Let every `continue` token given so far be answered with 410."""
        with self._lock:
            self._reading.expire_pages()

    def objects(self, plural: str, namespace: str = "") -> list[Object]:
        """Return the objects of a kind as they are at this instant, for tests in the sandbox's own process."""
        with self._lock:
            kind = next(kind for kind in self._kinds if kind.plural == plural)
            return self._store.items(kind, namespace)

    def owned_resources(self) -> list[Owned]:
        """Every object of every kind that carries the label of an owner at this instant."""
        with self._lock:
            self._controllers.settle()
            return [
                one
                for kind in self._kinds
                for item in self._store.items(kind)
                for one in owned(self.name, kind.resource, _id(item), str(item["metadata"]["name"]), tags_of(item))
            ]

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        named, path = split_actor(environ["PATH_INFO"]) if self._authenticate is None else (None, environ["PATH_INFO"])
        try:
            actor = self._caller(environ) or named
            if actor is None and path not in _OPEN_TO_ALL:
                raise unauthorized()
            if actor == "agent":
                self._authorize(environ, path)
            answer = self._route(environ, path, actor or "person")
        except ApiError as refused:
            answer = _refusal(refused)
        except PageNotFound:
            answer = Answer(404, "404 page not found\n", "NotFound")
        content_type, body = _written(answer.content)
        content_type = answer.content_type or content_type
        start_response(
            f"{answer.status} {HTTPStatus(answer.status).phrase}", [("Content-Type", content_type), *answer.headers]
        )
        return body

    def _authorize(self, environ: Environ, path: str) -> None:
        """Refuse what the agent was not granted, before anybody looks whether it is there."""
        if self._rights is None:
            return
        user, granted = self._rights
        asked = asked_by(environ["REQUEST_METHOD"], path, dict(parse_qsl(environ.get("QUERY_STRING", ""))))
        if not granted.allows(user, asked):
            raise not_granted(user.name, asked)

    def _caller(self, environ: Environ) -> Actor | None:
        if self._authenticate is None:
            return actor_of(environ)
        scheme, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        actor = self._authenticate(token.strip()) if scheme.lower() == "bearer" else None
        if actor is None:
            raise unauthorized()
        return actor

    def _route(self, environ: Environ, path: str, actor: Actor) -> Answer:
        if is_about_itself(path):
            self._watching.report_unknown(environ, path, actor)
            return self._describe(environ, path, actor)
        with self._lock:
            self._controllers.settle()
            try:
                request = parse(environ, path, actor, self._kinds)
            except (ApiError, PageNotFound):
                self._watching.report_unknown(environ, path, actor)
                raise
            token = request.query.get("continue", "")
            if token and request.verb == "list":
                request = replace(request, call=replace(request.call, page=self._reading.page_number(token)))
        self.knobs.wait(request.call)
        self.knobs.run_before_hooks(request.call)
        interference = self.knobs.before(request.call)
        if interference is not None:
            return self._interfere(request.call, interference, effect=False)
        answer, call, interference = self._carry_out(request)
        if interference is not None:
            return self._interfere(call, interference, effect=answer.is_success)
        self._finish(RecordedCall(call, answer.status, answer.error, answer.is_success))
        return self._rewritten(call, answer)

    def _carry_out(self, request: KubeRequest) -> tuple[Answer, Call, Interference | None]:
        """Check a call and carry it out, under one lock.

        Return also the call with the name of what it created, and what is to happen instead of the answer: an answer
        that gets lost has shown the agent nothing.
        """
        with self._lock:
            self._controllers.settle()
            shown: list[Object] = []
            try:
                answer, shown = self._answer(request)
            except ApiError as refused:
                answer = _refusal(refused)
            except Exception as fault:  # noqa: BLE001
                # A fault of ours. The client must see it in a form it can read.
                traceback.print_exc()
                answer = _refusal(ApiError(500, "InternalError", f"the sandbox failed: {fault!r}"))
            call = request.call
            if request.verb == "create" and shown:
                call = replace(call, resource_ids=(_id(shown[0]),))
            interference = self.knobs.after(call)
            if interference is None:
                self._watching.note(call, request.target.kind, shown)
            return answer, call, interference

    def _answer(self, request: KubeRequest) -> tuple[Answer, list[Object]]:
        """Return the answer and the objects it shows."""
        kind, form = request.target.kind, form_of(request.accept, is_list=request.verb == "list")
        if request.verb == "watch":
            lines = watch(request, self._store, lambda: self._controllers)  # a reset makes new ones
            return Answer(200, Stream(lines)), []
        if request.verb == "list":
            page = self._reading.page(request, self.knobs.page_size)
            return Answer(200, shown_list(kind, page, form, request.query)), page.items
        if request.verb == "get":
            status, item = 200, self._reading.one(request)
        else:
            status, item = self._write(request)
        if request.target.subresource == "scale":
            return Answer(status, scale_of(item)), [item]
        return Answer(status, shown_object(kind, item, form, request.query)), [item]

    def _write(self, request: KubeRequest) -> tuple[int, Object]:
        try:
            plan = self._writing.plan(request)
            if request.call.actor == "agent" and (why := self._refusal(plan)):
                raise forbidden(plan.kind, request.target.name, why)
        except ApiError:
            self._watching.check_refused(request)
            raise
        if request.query.get("dryRun"):
            return 201 if plan.verb == "create" else 200, self._writing.rehearsed(plan)
        lost_races = self._watching.check(request, plan)
        status, item = self._writing.carry_out(plan)
        self.monitor.confirm(lost_races)
        return status, item

    def _describe(self, environ: Environ, path: str, actor: Actor) -> Answer:
        user_agent = environ.get("HTTP_USER_AGENT", "")
        call = Call(
            actor=actor,
            access_key=AGENT_TOKEN if actor == "agent" else PERSON_TOKEN,
            service="discovery",
            operation="get",
            region="",
            parameters={},
            is_write=False,
            origin=Origin.from_user_agent(user_agent),
            user_agent=user_agent,
            resource_ids=(path,),
        )
        self.knobs.wait(call)
        interference = self.knobs.before(call)
        if interference is not None:
            return self._interfere(call, interference, effect=False)
        with self._lock:
            answer = self._described(environ, path)
        self._finish(RecordedCall(call, answer.status, answer.error, answer.is_success))
        return answer

    def _described(self, environ: Environ, path: str) -> Answer:
        accept = environ.get("HTTP_ACCEPT", "")
        if (
            path in ("/api", "/apis")
            and "as=APIGroupDiscoveryList" in accept
            and "g=apidiscovery.k8s.io;v=v2;" in accept
        ):
            return Answer(200, aggregated(path, self._kinds), content_type=AGGREGATED)
        return Answer(200, describe(path, self._kinds, f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}", accept))

    def _rewritten(self, call: Call, answer: Answer) -> Answer:
        if isinstance(answer.content, Stream) or not answer.is_success:
            return answer
        content_type, pieces = _written(answer.content)
        body = b"".join(pieces)
        changed = self.knobs.rewritten(call, body)
        if changed == body:
            return answer
        return replace(answer, content=changed, content_type=answer.content_type or content_type)

    def _interfere(self, call: Call, interference: Interference, *, effect: bool) -> Answer:
        if interference.cut:
            self._finish(RecordedCall(call, 0, "", effect))
            self.knobs.hold(interference)
            raise ConnectionCut
        if interference.kind == "answer":
            answer = Answer(interference.status, interference.body, content_type=interference.content_type)
        elif interference.kind == "throttle":
            # Priority and fairness refuses in plain text.
            text = "Too many requests, please try again later.\n"
            answer = Answer(429, text, "TooManyRequests", (("Retry-After", "1"),))
        else:
            answer = _refusal(ApiError(interference.status, interference.code, interference.message))
        self._finish(RecordedCall(call, answer.status, answer.error, effect))
        return answer

    def _finish(self, recorded: RecordedCall) -> None:
        self.calls.append(recorded)
        self.knobs.run_after_hooks(recorded)

    def _begin(self, kept: dict[str, Object | None]) -> None:
        """Make what a cluster has from the start; its uid distinguishes it from others, so it survives a reset."""
        for name, old in kept.items():
            item = self._store.add(NAMESPACE, _namespace(name))
            if old is not None:
                item = {**item, "metadata": {**item["metadata"], "uid": old["metadata"]["uid"]}}
                item = self._store.replace(NAMESPACE.resource, item)
            self._controllers.created(NAMESPACE, item)
        for name in _OF_THE_SERVER:
            self._store.add(CONFIG_MAP, _config_map(name))
        for definition in DEFINITIONS:
            if definition["metadata"]["name"] not in self._without:
                metadata = {**definition["metadata"], "generation": 1}
                self._controllers.created(CRD, self._store.add(CRD, {**definition, "metadata": metadata}))


def _namespace(name: str) -> Object:
    labels = {"kubernetes.io/metadata.name": name}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": {"finalizers": ["kubernetes"]}}


def _config_map(name: str) -> Object:
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


def _id(item: Object) -> str:
    metadata = item["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def _refusal(refused: ApiError) -> Answer:
    return Answer(refused.code, refused.as_status(), refused.reason)


def _written(content: Any) -> tuple[str, Iterable[bytes]]:
    if isinstance(content, Stream):
        return "application/json", content
    if isinstance(content, bytes):
        return "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", [content]
    if isinstance(content, str):
        return "text/plain; charset=utf-8", [content.encode()]
    return "application/json", [json.dumps(content).encode()]
