"""The session: which clusters are really reached, how calls are signed and sent, and what refusals mean."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    DependencyMissing,
    Invalid,
    NotFound,
    Overtaken,
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.kubernetes import calls
from fractal_cloud.offers.kubernetes.ambassador import HOST
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.cloud import BY_AUTHORITY, Cluster, KubernetesSession, _fingerprint
from fractal_cloud.offers.kubernetes.kinds import SECRET
from fractal_cloud.offers.kubernetes.service import SERVICE
from fractal_cloud.offers.kubernetes.workload import DEPLOYMENT
from fractal_sandbox import Sandbox
from tests.offers.kubernetes.person import KubernetesPerson

NOBODY = "http://127.0.0.1:9"


def service(name: str, **metadata: Any) -> dict[str, Any]:
    spec = {"ports": [{"port": 80}], "selector": {"app": "x"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, **metadata}, "spec": spec}


def edit_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **servers: str) -> None:
    """Have contexts lead to other servers; those that are not there yet are added."""
    path = tmp_path / "kubeconfig-agent"
    config = json.loads(path.read_text())
    for name, server in servers.items():
        config["clusters"] = [one for one in config["clusters"] if one["name"] != name]
        config["clusters"].append({"name": name, "cluster": {"server": server}})
        config["contexts"] = [one for one in config["contexts"] if one["name"] != name]
        config["contexts"].append({"name": name, "context": {"cluster": name, "user": "agent"}})
    path.write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(path))


# --- which clusters


def test_a_realm_is_the_uid_of_kube_system_and_every_context_has_its_own(
    session: KubernetesSession, person: KubernetesPerson, clusters: Sandbox, tmp_path: Path
) -> None:
    other = KubernetesPerson(clusters.url, tmp_path, "sandbox-2")
    uids = [one.get("namespaces", "kube-system") for one in (person, other)]
    first, second = (str(uid["metadata"]["uid"]) for uid in uids if uid)
    assert session.realms() == {"": first, "sandbox": first, "sandbox-2": second}
    assert session.missing() == {}


@pytest.mark.rule("S26")
def test_where_kube_system_may_not_be_read_its_authority_stands_for_the_cluster_and_never_its_address(
    session: KubernetesSession, clusters: Sandbox
) -> None:
    uid = session.realms()["sandbox"]
    clusters.kubernetes.knobs.fail(status=403, code="Forbidden", times=2, actor="agent")
    assert session.realms()["sandbox"] == uid, "a refusal in passing makes no other cluster of it"
    clusters.kubernetes.knobs.fail(status=403, code="Forbidden", times=None, actor="agent")
    assert set(session.realms()) == {"sandbox-2"}
    assert "allow it to get the namespace 'kube-system'" in session.missing()["sandbox"]
    cluster = session._by_realm[uid]
    assert isinstance(cluster, Cluster)
    cluster.authority = f"{BY_AUTHORITY}0123"
    assert cluster.realm() == f"{BY_AUTHORITY}0123"
    assert cluster.realm_now(f"{BY_AUTHORITY}0123") == f"{BY_AUTHORITY}0123"
    with pytest.raises(Denied):
        cluster.realm_now(uid)


@pytest.mark.rule("S26")
def test_the_fingerprint_is_that_of_the_authority_that_answers_are_checked_against(tmp_path: Path) -> None:
    def fingerprint(*der: bytes, host: str = "https://there", verify_ssl: bool = True) -> str:
        path = tmp_path / "authority.crt"
        path.write_text("a comment\n" + "".join(map(ssl.DER_cert_to_PEM_cert, der)))
        return _fingerprint(SimpleNamespace(host=host, verify_ssl=verify_ssl, ssl_ca_cert=str(path)))

    one = fingerprint(b"one")
    assert one.startswith(BY_AUTHORITY)
    assert "/" not in one
    assert one != fingerprint(b"two")
    assert fingerprint(b"one", b"two") == fingerprint(b"two", b"one")
    assert fingerprint() == fingerprint(b"one", host="http://there") == fingerprint(b"one", verify_ssl=False) == ""


def test_a_cluster_that_is_down_is_named_and_the_others_are_served(
    clusters: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit_kubeconfig(tmp_path, monkeypatch, down=NOBODY)
    session = KubernetesSession()
    assert set(session.realms()) == {"", "sandbox", "sandbox-2"}
    assert list(session.missing()) == ["down"]
    edit_kubeconfig(tmp_path, monkeypatch, down=f"{clusters.url}/kubernetes-2/as/agent")
    assert "down" in session.realms(), "it is tried again"
    assert session.missing() == {}


def test_where_no_cluster_answers_it_says_why(
    clusters: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit_kubeconfig(tmp_path, monkeypatch, **{"sandbox": NOBODY, "sandbox-2": NOBODY})
    session = KubernetesSession()
    assert session.realms() == {}
    assert "refused" in session.missing()["sandbox"]


def test_only_chosen_contexts_are_reached(clusters: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRACTAL_KUBERNETES_CONTEXTS", "sandbox-2")
    assert set(KubernetesSession().realms()) == {"", "sandbox-2"}
    monkeypatch.setenv("FRACTAL_KUBERNETES_CONTEXTS", "sandbox-3")
    with pytest.raises(Denied, match="sandbox-3"):
        KubernetesSession().realms()


def test_an_agent_in_a_cluster_reaches_that_one_by_the_name_it_was_given(
    clusters: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def inside(client_configuration: Any) -> None:
        client_configuration.host = f"{clusters.url}/kubernetes/as/agent"

    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    session = KubernetesSession()
    monkeypatch.setattr(session._sdk.config, "load_incluster_config", inside)
    assert list(session.realms()) == [""]
    monkeypatch.setenv("FRACTAL_KUBERNETES_CLUSTER", "north")
    assert list(session.realms()) == ["north"]


def test_without_any_credentials_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    session = KubernetesSession()
    assert session.realms() == {}, "clusters may be declared"
    assert "set KUBECONFIG, or run the agent in a cluster" in session.missing()[""]


def test_declaring_and_importing_offers_needs_no_sdk() -> None:
    code = (
        "import sys; import fractal_cloud.offers.registry as r; r.installed(); "
        "from fractal_cloud import LiveSystem, custom_workloads; "
        "custom_workloads.kubernetes.workload(id='web', image='web:1'); "
        "assert 'kubernetes' not in sys.modules, 'the SDK was imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# --- how calls are made


@pytest.mark.rule("C7")
def test_calls_are_signed_with_who_they_are_for_and_writes_give_their_audit_id(
    cloud: Kubernetes, clusters: Sandbox
) -> None:
    with cloud.calling_as(CallContext("ls-a", "front", "create")) as act:
        cloud.create(SERVICE, service("front"))
        cloud.get(SERVICE, "front")
    [made] = clusters.kubernetes.calls.find(actor="agent", writes_only=True)
    assert (made.origin.live_system, made.origin.component, made.origin.reason) == ("ls-a", "front", "create")
    assert len(act.request_ids) == 1
    assert act.request_ids[0]


def test_lists_go_to_their_end_page_by_page(
    cloud: Kubernetes, person: KubernetesPerson, clusters: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "PAGE", 2)
    for number in range(5):
        person.create("services", service(f"s{number}"))
    names = {item["metadata"]["name"] for item in cloud.list(SERVICE)}
    assert {f"s{number}" for number in range(5)} <= names
    assert len(clusters.kubernetes.calls.find(actor="agent", operation="list")) >= 3


@pytest.mark.rule("S0")
def test_a_list_that_expired_is_begun_anew_and_one_that_ends_early_is_no_list(
    cloud: Kubernetes, person: KubernetesPerson, clusters: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "PAGE", 2)
    for number in range(5):
        person.create("services", service(f"s{number}"))
    counted: list[str] = []

    def expire(call: Any) -> None:
        counted.append(call.operation)
        if len(counted) == 2:
            clusters.kubernetes.expire_pages()

    clusters.kubernetes.knobs.before_call(expire, actor="agent")
    assert len(cloud.list(SERVICE)) >= 5
    assert len(counted) >= 5, "the first page was read twice"
    clusters.kubernetes.knobs.reset()
    clusters.kubernetes.knobs.fail(status=500, nth=2, actor="agent", times=5)
    with pytest.raises(Unreadable):
        cloud.list(SERVICE)


def test_reads_are_tried_three_times_and_writes_once(cloud: Kubernetes, clusters: Sandbox) -> None:
    knobs, sent = clusters.kubernetes.knobs, clusters.kubernetes.calls
    knobs.fail(status=503, times=2, actor="agent")
    assert cloud.list(SERVICE) is not None
    sent.clear()
    knobs.fail(status=503, times=1, actor="agent")
    with pytest.raises(Transient, match="unknown until it is read again"):
        cloud.create(SERVICE, service("once"))
    assert len(sent.find(actor="agent", writes_only=True)) == 1
    assert cloud.find(SERVICE, "once") is None


@pytest.mark.parametrize(
    ("status", "reads", "writes"),
    [
        (401, Denied, Denied),
        (403, Denied, Denied),
        (404, Unreadable, Invalid),  # one that names no object says nothing of any
        (409, Unreadable, Overtaken),
        (400, Unreadable, Invalid),
        (422, Unreadable, Invalid),
        (429, Throttled, Throttled),
        (500, Unreadable, Transient),
    ],
)
def test_every_refusal_is_one_of_the_closed_set(
    cloud: Kubernetes, clusters: Sandbox, status: int, reads: type[CloudError], writes: type[CloudError]
) -> None:
    knobs = clusters.kubernetes.knobs
    knobs.fail(status=status, code="Because", times=9, actor="agent")
    with pytest.raises(CloudError) as read:
        cloud.get(SERVICE, "front")
    assert type(read.value) is reads
    with pytest.raises(CloudError) as write:
        cloud.create(SERVICE, service("front"))
    assert type(write.value) is writes


def test_a_name_that_is_taken_is_a_conflict(cloud: Kubernetes) -> None:
    cloud.create(SERVICE, service("front"))
    with pytest.raises(Conflict, match="AlreadyExists") as taken:
        cloud.create(SERVICE, service("front"))
    assert not isinstance(taken.value, Overtaken)


def test_a_missing_namespace_is_named(session: KubernetesSession) -> None:
    cloud = session.at(Scope("kubernetes", session.realms()[""], "nowhere"))
    assert cloud.list(SERVICE) == []
    with pytest.raises(DependencyMissing, match="there is no namespace 'nowhere'"):
        cloud.create(SERVICE, service("front"))


def test_a_missing_definition_is_no_missing_object(cloud: Kubernetes, clusters: Sandbox) -> None:
    assert cloud.find(HOST, "gate") is None
    clusters.kubernetes.remove_crd("hosts.getambassador.io")
    with pytest.raises(Unreadable, match="the cluster has no Host: install Emissary"):
        cloud.find(HOST, "gate")
    with pytest.raises(Invalid, match="the cluster has no Host: install Emissary"):
        cloud.create(HOST, {"apiVersion": HOST.api_version, "kind": "Host", "metadata": {"name": "gate"}, "spec": {}})
    assert cloud.list(SERVICE) is not None


# --- the guard


@pytest.mark.rule("S16")
def test_a_patch_whose_test_fails_changes_nothing_and_differs_from_one_the_server_rejects(
    cloud: Kubernetes, person: KubernetesPerson
) -> None:
    person.create("services", service("front", labels={"a": "1"}))
    test = {"op": "test", "path": "/metadata/labels/a", "value": "2"}
    change = {"op": "replace", "path": "/spec/ports/0/port", "value": 81}
    with pytest.raises(Overtaken, match="changed by somebody else at /metadata/labels/a"):
        cloud.patch(SERVICE, "front", [test, change])
    with pytest.raises(Invalid):
        cloud.patch(SERVICE, "front", [{**test, "value": "1"}, {**change, "value": 99999999}])
    cloud.patch(SERVICE, "front", [{**test, "value": "1"}, change])
    assert cloud.get(SERVICE, "front")["spec"]["ports"][0]["port"] == 81
    with pytest.raises(NotFound):
        cloud.patch(SERVICE, "nobody", [change])


@pytest.mark.rule("S16")
def test_a_deletion_deletes_only_the_very_object_that_was_read(cloud: Kubernetes, person: KubernetesPerson) -> None:
    made = person.create("services", service("front"))["metadata"]
    person.merge("services", "front", {"metadata": {"labels": {"a": "1"}}})
    with pytest.raises(Overtaken):
        cloud.delete(SERVICE, "front", made["uid"], made["resourceVersion"])
    person.delete("services", "front")
    person.create("services", service("front"))
    again = cloud.get(SERVICE, "front")["metadata"]
    with pytest.raises(Overtaken):
        cloud.delete(SERVICE, "front", made["uid"], None)
    cloud.delete(SERVICE, "front", again["uid"], again["resourceVersion"])
    cloud.delete(SERVICE, "front", again["uid"], again["resourceVersion"])


@pytest.mark.rule("S16")
def test_a_merge_patch_must_say_what_it_rests_on(cloud: Kubernetes, person: KubernetesPerson) -> None:
    made = person.create("services", service("front"))["metadata"]
    person.merge("services", "front", {"metadata": {"labels": {"a": "1"}}})
    with pytest.raises(Overtaken):
        cloud.merge(SERVICE, "front", {"metadata": {"resourceVersion": made["resourceVersion"], "labels": {"a": "2"}}})
    with pytest.raises(AssertionError):
        cloud.merge(SERVICE, "front", {"metadata": {"labels": {"a": "2"}}})


def test_kinds_know_where_they_lie() -> None:
    assert SECRET.path("shop", "db") == "/api/v1/namespaces/shop/secrets/db"
    assert DEPLOYMENT.path("shop") == "/apis/apps/v1/namespaces/shop/deployments"
