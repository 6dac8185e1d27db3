"""A real kube-apiserver in the sandbox's place: the same knobs, the same record of calls, and the same monitor before
it.

Where ``KUBECONFIG_REAL`` names a server, every test over the session's sandbox meets that one at the path of the first
cluster: each call is forwarded as it is and answered by the server itself. What stands before it only delays, fails or
loses calls as the knobs say, and has the agent's writes checked, by what the server says in a dry run that they would
do. The server has no controllers: those of the sandbox come after every write. The second cluster is the sandbox's own.

Where the agent is to have the rights that are printed for it, they are applied to the server, and the agent's calls are
made as its service account (impersonation): the server's own authorizer decides.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, Final

from fractal_cloud.offers.kubernetes.admission import HOME
from fractal_sandbox import Sandbox
from fractal_sandbox.http_server import Environ, Stream
from fractal_sandbox.kubernetes import CLUSTERS
from fractal_sandbox.kubernetes.admission import Admission
from fractal_sandbox.kubernetes.cloud import Answer, KubernetesCloud, Refusal, no_refusal
from fractal_sandbox.kubernetes.controllers import Controllers
from fractal_sandbox.kubernetes.errors import ApiError, gone, not_found
from fractal_sandbox.kubernetes.kinds import CRD, DEFINITIONS, NAMESPACE, Object
from fractal_sandbox.kubernetes.monitoring import Watching
from fractal_sandbox.kubernetes.networking import Addresses
from fractal_sandbox.kubernetes.rbac import User
from fractal_sandbox.kubernetes.reading import Reading
from fractal_sandbox.kubernetes.request import KubeRequest, Target
from fractal_sandbox.kubernetes.writing import Plan, Writing
from fractal_sandbox.monitor import Finding
from tests.offers.kubernetes.server import Reply, ServedKinds, ServedStore, Server, path_of

_OWNED: Final = {"labelSelector": "fractal.cloud/owner"}
RBAC: Final = "rbac.authorization.k8s.io"
KUBECONFIG: Final = os.environ.get("KUBECONFIG_REAL", "")
OF_THE_SERVER: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
# Whose objects are taken away before each test; a Deployment before what it leaves behind.
EMPTIED: Final = (
    *("deployments.apps", "replicasets.apps", "services", "networkpolicies.networking.k8s.io", "pods"),
    *("persistentvolumeclaims", "secrets", "configmaps", *(one["metadata"]["name"] for one in DEFINITIONS)),
)
STANDARD: Final = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard"},
    "provisioner": "example.com/none",
    "allowVolumeExpansion": True,
}


def over_a_real_server(sandbox: Sandbox) -> Sandbox:
    """Put the server of ``KUBECONFIG_REAL`` in the place of the sandbox's first cluster, if there is one."""
    if KUBECONFIG:
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        assert workers == 1, "KUBECONFIG_REAL names one server, and every test empties it: run without -n"
        sandbox.mount("kubernetes", CLUSTERS["sandbox"], RealCluster(Server(KUBECONFIG)))
    return sandbox


class DryRun(Writing):
    """Plans writes by asking the server what they would do."""

    def __init__(self, server: Server, store: ServedStore, controllers: Controllers) -> None:
        super().__init__(store, controllers, Addresses(), Admission())
        self._server = server

    def plan(self, request: KubeRequest) -> Plan:
        target, verb = request.target, request.verb
        before = self._store.get(target.kind, target.namespace, target.name) if target.name else None
        reply = send(self._server, self._rehearsal(request))
        if not reply.is_good:
            raise reply.refusal()
        if verb == "delete":
            return Plan(target.kind, "delete", before, None)
        content: Any = request.content()
        is_guarded = verb != "update" or bool(content["metadata"].get("resourceVersion"))
        return Plan(target.kind, "create" if verb == "create" else "update", before, reply.json(), is_guarded)

    def _rehearsal(self, request: KubeRequest) -> KubeRequest:
        """The options of a deletion stand in its body, where it has one."""
        if request.verb == "delete" and request.body.strip():
            return replace(request, body=json.dumps({**request.content(), "dryRun": ["All"]}).encode())
        return replace(request, query={**request.query, "dryRun": "All"})


class Pages(Reading):
    """Counts the pages of the server's lists, and lets their tokens expire before their time."""

    def reset(self) -> None:
        self._numbers: dict[str, int] = {}
        self._expired: set[str] = set()

    def expire_pages(self) -> None:
        self._expired |= self._numbers.keys()

    def page_number(self, token: str) -> int:
        return self._numbers.get(token, 1)

    def check(self, token: str) -> None:
        """Refuse a token that was made to expire."""
        if token in self._expired:
            raise gone("The provided continue parameter is too old to display a consistent list result.")

    def follows(self, token: str, after: str) -> None:
        """Note a token that leads on from the page that another one led to.

        The server gives the same token for the same state, so one given anew is good again.
        """
        self._expired.discard(token)
        self._numbers[token] = self.page_number(after) + 1


class RealCluster(KubernetesCloud):
    """A real server, with knobs, a monitor and a record of its calls."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._served: ServedKinds | None = None
        self._user: User | None = None
        self._granted: list[Object] = []
        self._made: dict[Target, None] = {}
        self._is_swept = False
        super().__init__()

    @contextmanager
    def restrict_agent(self, user: User, documents: Iterable[Object], refusal: Refusal = no_refusal) -> Iterator[None]:
        """Apply roles and bindings to the server; admission policies in this language came with later versions."""
        del refusal
        before = self._user, self._granted
        self._user, self._granted = user, [one for one in documents if one["apiVersion"].startswith(f"{RBAC}/")]
        self._revoke()
        self._grant()
        try:
            yield
        finally:
            self._user, self._granted = before
            self._revoke()
            self._grant()

    def _revoke(self) -> None:
        """Take away whatever binds the agent to a role, whoever left it there."""
        for kind in ("clusterrolebindings", "rolebindings"):
            for one in self._server.ask("GET", f"/apis/{RBAC}/v1/{kind}").json()["items"]:
                if any(subject["name"] == HOME for subject in one.get("subjects") or ()):
                    place = one["metadata"].get("namespace", "")
                    where = f"namespaces/{place}/{kind}" if place else kind
                    gone = self._server.ask("DELETE", f"/apis/{RBAC}/v1/{where}/{one['metadata']['name']}")
                    assert gone.is_good, gone
        self._await_rights(are_there=False)

    def _grant(self, namespace: str = "") -> None:
        """Have the server know the roles and bindings, those of namespaces that there are (of one, if it is named)."""
        for one in self._granted:
            place = one["metadata"].get("namespace", "")
            if namespace in ("", place) and (not place or self._store.get(NAMESPACE, "", place) is not None):
                where = f"/apis/{RBAC}/v1/" + (f"namespaces/{place}/" if place else "") + f"{one['kind'].lower()}s"
                made = self._server.ask("POST", where, one)
                if made.status == 409:
                    made = self._server.ask("PUT", f"{where}/{one['metadata']['name']}", one)
                assert made.is_good, made
        self._await_rights(are_there=True)

    def _await_rights(self, *, are_there: bool) -> None:
        """A server takes a moment until roles are in force."""
        deadline = time.monotonic() + 20
        probes = [probe for one in self._granted if (probe := self._probe(one))]
        while not all(self._may(probe) is are_there for probe in probes):
            assert time.monotonic() < deadline, f"rights are {'not' if are_there else 'still'} in force"
            time.sleep(0.02)

    def _probe(self, role: Object) -> Object | None:
        """Something that a role grants in a place that there is."""
        place = role["metadata"].get("namespace", "")
        named = [one for one in role.get("rules") or () if one.get("resources")]
        if role["kind"] != "Role" or not named or self._store.get(NAMESPACE, "", place) is None:
            return None
        rule = named[-1]
        names = {"name": rule["resourceNames"][0]} if rule.get("resourceNames") else {}
        found = {"namespace": place, "group": rule["apiGroups"][0], "verb": rule["verbs"][0], **names}
        resource, _, part = str(rule["resources"][0]).partition("/")
        return {**found, "resource": resource, **({"subresource": part} if part else {})}

    def _may(self, probe: Object) -> bool:
        """Whether the server lets the agent do something."""
        assert self._user is not None
        review = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
        asked = {**review, "spec": {"user": self._user.name, "resourceAttributes": probe}}
        said = self._server.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", asked)
        return bool(said.json()["status"]["allowed"])

    def _authorize(self, environ: Environ, path: str) -> None:
        """The server does."""

    def _send(self, request: KubeRequest) -> Reply:
        return send(self._server, request, self._acting(request))

    def _acting(self, request: KubeRequest) -> str:
        return self._user.name if self._user is not None and request.call.actor == "agent" else ""

    def _empty(self) -> None:
        for where, one in [*((path_of(Target(CRD)), one) for one in DEFINITIONS), (_CLASSES, STANDARD)]:
            made = self._server.ask("POST", where, one)
            assert made.is_good or made.status == 409, made
        for definition in DEFINITIONS:
            self._await(definition)
        self._kinds = kinds = self._served = self._served or ServedKinds(self._server)
        self._store = self._served_store = store = ServedStore(self._lock, self._server, kinds)
        self._controllers = Controllers(store, kinds, self.knobs, Addresses())
        self._writing = DryRun(self._server, store, self._controllers)
        self._reading = self._pages = Pages(store, self._controllers)
        self._watching = Watching(self.monitor, self._writing)
        for resource in EMPTIED:
            for item in store.items(kinds.of(resource)):
                if item["metadata"]["name"] != "kubernetes" and not item["metadata"]["namespace"].startswith("kube-"):
                    store.remove(resource, item)
        # Definitions first: their objects go with them, also those that nothing converts any more.
        for target in sorted([*self._made, *self._left_by_others()], key=lambda one: one.kind != CRD):
            left = self._left(target)
            if left is not None:
                store.remove(target.kind.resource, left)
        for item in store.items(NAMESPACE):
            if item["metadata"]["name"] not in OF_THE_SERVER:
                store.remove(NAMESPACE.resource, item)
        self._made = {}

    def _left(self, target: Target) -> Object | None:
        try:
            return self._store.get(target.kind, target.namespace, target.name)
        except ApiError as refused:
            if refused.message.startswith("conversion webhook"):
                return None  # it goes with its definition
            raise

    def _left_by_others(self) -> list[Target]:
        """What bears our owner's label when a run begins, and definitions that are none of a cluster's own."""
        if self._is_swept:
            return []
        self._is_swept = True
        asked = [(kind, self._server.ask("GET", path_of(Target(kind)), query=_OWNED)) for kind in self._kinds]
        found = [
            Target(kind, one["metadata"].get("namespace", ""), one["metadata"]["name"])
            for kind, reply in asked
            if reply.is_good
            for one in reply.json().get("items") or []
        ]
        own = {one["metadata"]["name"] for one in DEFINITIONS}
        names = [item["metadata"]["name"] for item in self._store.items(CRD)]
        return [*found, *(Target(CRD, "", name) for name in names if name not in own)]

    def _await(self, definition: Object) -> None:
        """A definition takes a moment until it is served."""
        spec = definition["spec"]
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        deadline = time.monotonic() + 20
        while not self._server.ask("GET", path).is_good:
            assert time.monotonic() < deadline, f"{path} is not served"
            time.sleep(0.05)

    def _described(self, environ: Environ, path: str) -> Answer:
        query = dict(pair.partition("=")[::2] for pair in environ.get("QUERY_STRING", "").split("&") if pair)
        return answer_of(self._server.ask("GET", path, query=query, Accept=environ.get("HTTP_ACCEPT", "")))

    def _answer(self, request: KubeRequest) -> tuple[Answer, list[Object]]:
        if request.verb == "watch":
            acting = self._acting(request)
            following = self._server.follow(
                path_of(request.target), request.query, Accept=request.accept, Impersonate_User=acting
            )
            if isinstance(following, Reply):
                return answer_of(following), []
            return Answer(200, Stream(self._ticking(following))), []
        if request.verb == "list":
            return self._listed(request)
        reply = self._send(request) if request.verb == "get" else self._written(request)
        content = reply.json()
        item = content if isinstance(content, dict) and "uid" in content.get("metadata", {}) else None
        if item is None or not reply.is_good:
            return answer_of(reply), []
        if request.verb == "get":
            is_hidden = self._controllers.is_hidden(item)
            self._controllers.count_read(item)
            if is_hidden:
                raise not_found(request.target.kind, request.target.name)
        return answer_of(reply), [item]

    def _ticking(self, pieces: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
        """What only time brings about happens also while somebody watches."""
        with closing(pieces):
            for piece in pieces:
                if not piece:
                    with self._lock:
                        self._controllers.settle()
                yield piece

    def _listed(self, request: KubeRequest) -> tuple[Answer, list[Object]]:
        token, limit, cap = request.query.get("continue", ""), request.number("limit"), self.knobs.page_size
        self._pages.check(token)
        if limit and cap:
            request = replace(request, query={**request.query, "limit": str(min(limit, cap))})
        reply = self._send(request)
        page = reply.json()
        if not reply.is_good or page is None:
            return answer_of(reply), []
        if page["metadata"].get("continue"):
            self._pages.follows(page["metadata"]["continue"], token)
        items: list[Object] = [item for item in page.get("items") or [] if "metadata" in item]
        hidden = [item for item in items if self._controllers.is_hidden(item)]
        for item in items:
            self._controllers.count_read(item)
        if not hidden:
            return answer_of(reply), items
        shown = [item for item in items if item not in hidden]
        return replace(answer_of(reply), content=json.dumps({**page, "items": shown}).encode()), shown

    def _written(self, request: KubeRequest) -> Reply:
        """Have a write checked, carry it out, and let the controllers come after it."""
        target, is_write = request.target, request.call.is_write
        before = self._store.get(target.kind, target.namespace, target.name) if target.name else None
        lost_races: list[Finding] = []
        was_refused = ""
        if request.call.actor == "agent" and is_write:
            try:
                lost_races = self._watching.check(request, self._writing.plan(request))
            except ApiError as refused:
                was_refused = refused.message
                self._watching.check_refused(request)
        reply = self._send(request)
        assert not (was_refused and reply.is_good), f"{request.call}: {was_refused} in a dry run, yet carried out"
        if reply.is_good and is_write:
            self.monitor.confirm(lost_races)
            self._come_after(request, before, reply)
        return reply

    def _come_after(self, request: KubeRequest, before: Object | None, reply: Reply) -> None:
        """Do what the controllers of a cluster would do by now."""
        target = request.target
        name = target.name or (reply.json() or request.content())["metadata"]["name"]
        after = self._store.get(target.kind, target.namespace, name)
        if before is None:
            self._made[replace(target, name=name)] = None
        if target.kind == CRD:  # the server itself looks after definitions
            if after is not None:
                self._kinds.define(after)
            return
        if after is not None and after["metadata"].get("deletionTimestamp"):
            self._served_store.let_go(target.kind, after)
            after = self._store.get(target.kind, target.namespace, name)
        if after is None:
            if before is not None:
                self._controllers.removed(target.kind, before)
        elif before is None:
            self._controllers.created(target.kind, after)
            if target.kind == NAMESPACE:
                self._grant(name)
        elif request.verb != "delete":
            self._controllers.modified(target.kind, after, before)


_CLASSES: Final = "/apis/storage.k8s.io/v1/storageclasses"


def send(server: Server, request: KubeRequest, user: str = "") -> Reply:
    """Forward a request as it came, in the name of a user."""
    method = {"get": "GET", "list": "GET", "create": "POST", "update": "PUT"}.get(request.verb) or request.verb.upper()
    return server.ask(
        method,
        path_of(request.target),
        request.body or None,
        request.query,
        Accept=request.accept,
        Content_Type=request.content_type if request.body else "",
        User_Agent=request.call.user_agent,
        Impersonate_User=user,
    )


def answer_of(reply: Reply) -> Answer:
    error = "" if reply.is_good else str((reply.json() or {}).get("reason", "NotFound"))
    return Answer(reply.status, reply.body, error, content_type=reply.content_type)
