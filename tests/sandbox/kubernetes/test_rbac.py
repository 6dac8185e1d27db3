"""The sandbox's role-based access control, by the examples of Kubernetes' own documentation («Using RBAC
Authorization», kubernetes.io/docs/reference/access-authn-authz/rbac), and against a real server's authorizer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from fractal_sandbox.kubernetes.rbac import Asked, Rbac, User, asked_by, service_account
from tests.offers.kubernetes.server import Server

Object = dict[str, Any]
API = "rbac.authorization.k8s.io/v1"
JANE, DAVE, BOB = User("jane"), User("dave"), User("bob", ("manager", "system:authenticated"))
ROBOT = service_account("ci", "robot")


def role(name: str, *rules: Object, namespace: str = "") -> Object:
    kind = "Role" if namespace else "ClusterRole"
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **place}, "rules": list(rules)}


def rule(groups: list[str], resources: list[str], verbs: list[str], **more: Any) -> Object:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs, **more}


def binding(bound: Object, *subjects: Object, namespace: str = "") -> Object:
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    name = bound["metadata"]["name"]
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": f"{name}-bound", **({"namespace": namespace} if namespace else {})},
        "subjects": list(subjects),
        "roleRef": {"kind": bound["kind"], "name": name, "apiGroup": API.partition("/")[0]},
    }


def user(name: str) -> Object:
    return {"kind": "User", "name": name, "apiGroup": API.partition("/")[0]}


POD_READER = role("pod-reader", rule([""], ["pods"], ["get", "watch", "list"]), namespace="default")
SECRET_READER = role("secret-reader", rule([""], ["secrets"], ["get", "watch", "list"]))
LOG_READER = role("log-reader", rule([""], ["pods", "pods/log"], ["get", "list"]), namespace="default")
UPDATER = role(
    "updater", rule([""], ["configmaps"], ["update", "get"], resourceNames=["my-configmap"]), namespace="default"
)
EDITOR = role("editor", rule(["apps"], ["deployments"], ["get", "list", "watch", "create", "update"]))
PARTS = role("parts", rule([""], ["*/scale"], ["get"]), rule(["example.com"], ["*"], ["*"]))
PATHS = role("paths", {"nonResourceURLs": ["/logs", "/logs/*"], "verbs": ["get", "post"]})
DOCUMENTS = (
    *(POD_READER, SECRET_READER, LOG_READER, UPDATER, EDITOR, PARTS, PATHS),
    binding(POD_READER, user("jane"), namespace="default"),
    # A ClusterRole that is bound in a namespace counts in that one alone.
    binding(SECRET_READER, user("dave"), namespace="development"),
    binding(SECRET_READER, {"kind": "Group", "name": "manager", "apiGroup": API.partition("/")[0]}),
    binding(LOG_READER, {"kind": "ServiceAccount", "name": "robot", "namespace": "ci"}, namespace="default"),
    binding(UPDATER, user("dave"), namespace="default"),
    binding(EDITOR, {"kind": "ServiceAccount", "name": "robot", "namespace": "ci"}),
    binding(PARTS, user("jane")),
    binding(PATHS, user("jane")),
)
# Who, what, and whether it is granted.
QUESTIONS: list[tuple[User, Asked, bool]] = [
    (JANE, Asked("get", "", "pods", namespace="default", name="web"), True),
    (JANE, Asked("list", "", "pods", namespace="default"), True),
    (JANE, Asked("list", "", "pods"), False),
    (JANE, Asked("list", "", "pods", namespace="development"), False),
    (JANE, Asked("delete", "", "pods", namespace="default", name="web"), False),
    (JANE, Asked("get", "", "pods", "log", "default", "web"), False),
    (JANE, Asked("get", "metrics.k8s.io", "pods", namespace="default", name="web"), False),
    (DAVE, Asked("get", "", "secrets", namespace="development", name="db"), True),
    (DAVE, Asked("get", "", "secrets", namespace="default", name="db"), False),
    (DAVE, Asked("list", "", "secrets"), False),
    (BOB, Asked("list", "", "secrets"), True),
    (BOB, Asked("get", "", "secrets", namespace="kube-system", name="db"), True),
    (BOB, Asked("create", "", "secrets", namespace="default"), False),
    (ROBOT, Asked("get", "", "pods", "log", "default", "web"), True),
    (ROBOT, Asked("create", "", "pods", "exec", "default", "web"), False),
    (service_account("other", "robot"), Asked("get", "", "pods", "log", "default", "web"), False),
    (DAVE, Asked("update", "", "configmaps", namespace="default", name="my-configmap"), True),
    (DAVE, Asked("update", "", "configmaps", namespace="default", name="another"), False),
    # A list names no object, so names do not grant it.
    (DAVE, Asked("get", "", "configmaps", namespace="default"), False),
    (DAVE, Asked("list", "", "configmaps", namespace="default"), False),
    (ROBOT, Asked("update", "apps", "deployments", namespace="anywhere", name="web"), True),
    (ROBOT, Asked("update", "extensions", "deployments", namespace="anywhere", name="web"), False),
    (ROBOT, Asked("update", "apps", "deployments", "scale", "anywhere", "web"), False),
    (ROBOT, Asked("patch", "apps", "deployments", namespace="anywhere", name="web"), False),
    (JANE, Asked("get", "", "replicationcontrollers", "scale", "default", "web"), True),
    (JANE, Asked("get", "apps", "deployments", "scale", "default", "web"), False),
    (JANE, Asked("impersonate", "example.com", "anything", "whatever", "default", "x"), True),
    (JANE, Asked("get", path="/logs"), True),
    (JANE, Asked("get", path="/logs/kubelet"), True),
    (JANE, Asked("post", path="/logs/kubelet"), True),
    (JANE, Asked("get", path="/logsx"), False),
    (JANE, Asked("get", path="/metrics"), False),
    (JANE, Asked("get", path="/version"), True),
    (JANE, Asked("get", path="/apis/apps/v1"), True),
    (User("nobody", ()), Asked("get", path="/apis/apps/v1"), False),
    (JANE, Asked("create", "authorization.k8s.io", "selfsubjectaccessreviews"), True),
    (JANE, Asked("create", "authorization.k8s.io", "subjectaccessreviews"), False),
]


@pytest.mark.parametrize(("who", "what", "expected"), QUESTIONS, ids=lambda value: str(value).replace(" ", "_"))
def test_roles_grant_what_the_documentation_says_and_nothing_else(who: User, what: Asked, expected: bool) -> None:
    assert Rbac(DOCUMENTS).allows(who, what) is expected


def test_documents_of_other_kinds_grant_nothing() -> None:
    foreign = yaml.safe_load("{apiVersion: v1, kind: ClusterRole, metadata: {name: x}, rules: []}")
    assert not Rbac([foreign]).allows(JANE, Asked("get", "", "pods", namespace="default"))


def test_a_binding_to_a_role_that_is_not_there_grants_nothing() -> None:
    documents = [one for one in DOCUMENTS if one is not POD_READER]
    assert not Rbac(documents).allows(JANE, Asked("list", "", "pods", namespace="default"))


IN_SHOP = "/apis/apps/v1/namespaces/shop/deployments"
READ_AS: list[tuple[str, str, dict[str, str], Asked]] = [
    ("GET", "/api/v1/namespaces/shop/pods/web", {}, Asked("get", "", "pods", "", "shop", "web")),
    ("GET", "/api/v1/namespaces/shop/pods", {}, Asked("list", "", "pods", "", "shop")),
    ("GET", "/api/v1/namespaces/shop/pods", {"watch": "true"}, Asked("watch", "", "pods", "", "shop")),
    ("GET", "/api/v1/watch/namespaces/shop/pods", {}, Asked("watch", "", "pods", "", "shop")),
    ("POST", "/api/v1/namespaces/shop/pods/web/exec", {}, Asked("create", "", "pods", "exec", "shop", "web")),
    ("DELETE", IN_SHOP, {}, Asked("deletecollection", "apps", "deployments", "", "shop")),
    ("PATCH", f"{IN_SHOP}/web", {}, Asked("patch", "apps", "deployments", "", "shop", "web")),
    ("GET", "/api/v1/namespaces/kube-system", {}, Asked("get", "", "namespaces", "", "kube-system", "kube-system")),
    ("PUT", "/api/v1/namespaces/shop/finalize", {}, Asked("update", "", "namespaces", "finalize", "shop", "shop")),
    ("GET", "/api/v1/secrets", {}, Asked("list", "", "secrets")),
    ("GET", "/api/v1/nodes/one/proxy/run", {}, Asked("get", "", "nodes", "proxy", "", "one")),
    ("GET", "/apis/apps/v1", {}, Asked("get", path="/apis/apps/v1")),
    ("GET", "/healthz", {}, Asked("get", path="/healthz")),
]


@pytest.mark.parametrize(("method", "path", "query", "expected"), READ_AS)
def test_a_request_is_read_as_a_server_reads_it(method: str, path: str, query: dict[str, str], expected: Asked) -> None:
    assert asked_by(method, path, query) == expected


@pytest.fixture
def server() -> Iterator[Server]:
    """A real server that has the roles of the documentation, for the time of a test."""
    real = Server(os.environ["KUBECONFIG_REAL"])
    made: list[str] = []
    for name in ("development",):
        real.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for one in DOCUMENTS:
        place = one["metadata"].get("namespace")
        where = f"/apis/{API}/" + (f"namespaces/{place}/" if place else "") + f"{one['kind'].lower()}s"
        answer = real.ask("POST", where, one)
        assert answer.is_good, answer
        made.append(f"{where}/{one['metadata']['name']}")
    yield real
    for path in reversed(made):
        real.ask("DELETE", path)


@pytest.mark.real_cluster
def test_a_real_authorizer_answers_every_question_the_same(server: Server) -> None:
    answers: dict[tuple[str, str], bool] = {}
    for who, what, _ in QUESTIONS:
        resource = {
            "verb": what.verb,
            "group": what.group,
            "resource": what.resource,
            "subresource": what.subresource,
            "namespace": what.namespace,
            "name": what.name,
        }
        attributes = (
            {"nonResourceAttributes": {"path": what.path, "verb": what.verb}}
            if what.path
            else {"resourceAttributes": resource}
        )
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": who.name, "groups": list(who.groups), **attributes},
        }
        answer = server.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        assert answer.is_good, answer
        answers[who.name, str(what) + what.name] = answer.json()["status"]["allowed"]
    assert answers == {(who.name, str(what) + what.name): expected for who, what, expected in QUESTIONS}
