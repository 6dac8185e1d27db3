"""What the agent may do in a cluster, as `fractal agent policy --provider kubernetes` prints it (A7).

All other tests of this provider run under the printed rights too: see ``rights.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
import yaml
from typer.testing import CliRunner

from fractal_cloud.cli.app import app
from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.kubernetes.policy import policy
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox
from fractal_sandbox.kubernetes.rbac import Asked, Rbac
from tests.offers.kubernetes.attempts import DEPLOYMENTS, POD_SPECS, AsTheAgent, deployment
from tests.offers.kubernetes.declaring import gateway, service, workload
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.kubernetes.real import KUBECONFIG
from tests.offers.kubernetes.rights import AGENT, printed, printed_rights
from tests.offers.kubernetes.worlds import KubernetesWorld

PLAIN: Final = PolicyOptions(namespaces=("default",))
WITH_LINKS: Final = PolicyOptions(namespaces=("default",), with_links=True)


# Verbs that no path names: whoever has them gives himself rights, or is somebody else.
VERBS: Final = (
    "*",
    "escalate",
    "bind",
    "impersonate",
    "approve",
    "sign",
    "attest",
    "use",
    "update",
    "deletecollection",
)


@pytest.fixture
def agent(clusters: Sandbox) -> AsTheAgent:
    """The agent at the first cluster, with its credentials alone."""
    return AsTheAgent(clusters)


@pytest.fixture
def granted(clusters: Sandbox) -> Iterator[None]:
    """Without links."""
    with printed_rights(clusters, PLAIN):
        yield


@pytest.fixture
def with_links(clusters: Sandbox) -> Iterator[None]:
    """With what links need."""
    with printed_rights(clusters, WITH_LINKS):
        yield


# --- what is printed


@pytest.mark.rule("A7")
def test_the_rights_are_documents_for_kubectl_and_name_no_namespace_but_those_asked_for() -> None:
    asked = ["agent", "policy", "--provider", "kubernetes", "--namespace", "shop", "--namespace", "web"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    found = list(yaml.safe_load_all(result.output))
    kinds = [(one["kind"], one["metadata"].get("namespace")) for one in found if "rbac" in one["apiVersion"]]
    assert kinds == [
        *(("ClusterRole", None), ("ClusterRoleBinding", None)),
        *(("Role", "shop"), ("RoleBinding", "shop")),
        *(("Role", "web"), ("RoleBinding", "web")),
    ]


@pytest.mark.rule("A7")
@pytest.mark.parametrize("options", [PLAIN, WITH_LINKS], ids=["plain", "with-links"])
def test_no_rule_holds_a_verb_that_gives_rights_away_or_more_than_single_objects(options: PolicyOptions) -> None:
    rules = [rule for one in printed(options) if one["kind"].endswith("Role") for rule in one["rules"]]
    assert rules
    for rule in rules:
        assert not set(rule["verbs"]) & set(VERBS)
        assert "*" not in (*rule["apiGroups"], *rule["resources"])
        assert not any("/" in resource for resource in rule["resources"])
        assert not set(rule["apiGroups"]) & {"rbac.authorization.k8s.io", "admissionregistration.k8s.io"}


@pytest.mark.rule("A7")
def test_across_namespaces_nothing_is_granted_but_reading_what_holds_no_secret() -> None:
    (role,) = [one for one in printed(WITH_LINKS) if one["kind"] == "ClusterRole"]
    granted = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert granted == {
        ("namespaces", "get"),
        ("services", "list"),
        ("persistentvolumes", "get"),
        ("storageclasses", "list"),
    }


@pytest.mark.rule("A7")
def test_secrets_and_what_else_links_make_are_printed_on_request_only() -> None:
    of_links = {"secrets", "mappings"}
    for options, expected in ((PLAIN, set()), (WITH_LINKS, of_links)):
        rules = [rule for one in printed(options) if one["kind"] == "Role" for rule in one["rules"]]
        assert {name for rule in rules for name in rule["resources"]} & of_links == expected


@pytest.mark.rule("A7")
@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "openshift-config", "fractal-cloud-agent"])
def test_a_namespace_of_the_cluster_or_of_the_agent_itself_is_refused(namespace: str) -> None:
    with pytest.raises(PolicyOptionError, match="holds credentials of more"):
        policy(PolicyOptions(namespaces=("shop", namespace)))


@pytest.mark.rule("A7")
@pytest.mark.parametrize("namespace", ["", "*", "a b", "a\nkind: ClusterRole", "-x", "Shop", "a" * 64])
def test_what_is_no_name_of_a_namespace_is_refused(namespace: str) -> None:
    with pytest.raises(PolicyOptionError, match="is no name of a namespace"):
        policy(PolicyOptions(namespaces=(namespace,)))


@pytest.mark.rule("A7", "A8")
def test_a_secret_that_declarations_refer_to_is_granted_by_its_name_alone() -> None:
    found = printed(PolicyOptions(namespaces=("default",), secrets=("platform/shop-tls", "platform/db")))
    (rule,) = [one for doc in found if doc["metadata"].get("namespace") == "platform" for one in doc.get("rules", ())]
    assert rule == {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["shop-tls", "db"], "verbs": ["get"]}
    granted = Rbac(found)
    assert granted.allows(AGENT, Asked("get", "", "secrets", "", "platform", "shop-tls"))
    for verb, name in (("get", "other"), ("get", ""), ("list", ""), ("patch", "db"), ("delete", "db"), ("create", "")):
        assert not granted.allows(AGENT, Asked(verb, "", "secrets", "", "platform", name))
    for wrong in ("db", "kube-system/db", "platform/*", "a/b/c"):
        with pytest.raises(PolicyOptionError):
            policy(PolicyOptions(secrets=(wrong,)))


# --- what is enough


def test_the_rights_are_those_that_are_used(world: KubernetesWorld) -> None:
    """Everything that the agent asks of a cluster in the life of a LiveSystem is allowed to it."""
    world.deploy("ls-a", workload(), service(), gateway())
    world.settle()
    world.delete("ls-a")
    world.settle()
    calls = list(world.cloud.calls.find(actor="agent"))
    assert {one.operation for one in calls} >= {"list", "get", "create", "delete"}
    world.assert_safe()


@pytest.mark.rule("A7", "S21")
def test_a_namespace_that_was_not_granted_is_denied_and_nothing_else_suffers(world: KubernetesWorld) -> None:
    kind = {"apiVersion": "v1", "kind": "Namespace"}
    world.kube.create("namespaces", {**kind, "metadata": {"name": "elsewhere"}})
    world.deploy("ls-a", workload(), workload("other", namespace="elsewhere"))
    world.cycle(3)
    assert world.status("ls-a", "web") == "Active"
    assert "forbidden" in world.component("ls-a", "other")["message"]
    assert world.kube.get("deployments", "other", "elsewhere") is None


# --- what is tried


@pytest.mark.rule("A7")
@pytest.mark.parametrize("verb", ["GET", "POST", "PATCH", "DELETE"])
def test_without_links_no_secret_is_within_reach(granted: None, agent: AsTheAgent, verb: str) -> None:
    name = "" if verb == "POST" else "/db"
    status, text = agent.ask(verb, f"/api/v1/namespaces/default/secrets{name}", {"metadata": {"name": "db"}})
    assert status == 403, text


@pytest.mark.rule("A7")
def test_with_links_the_secrets_of_the_named_namespaces_are_within_reach_and_no_others(
    with_links: None, agent: AsTheAgent, person: KubernetesPerson
) -> None:
    person.create("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "data": {}})
    assert agent.ask("GET", "/api/v1/namespaces/default/secrets/db")[0] == 200
    assert agent.ask("GET", "/api/v1/namespaces/kube-public/secrets/db")[0] == 403
    assert agent.ask("GET", "/api/v1/secrets")[0] == 403


# --- what the admission policies deny

no_admission_policies = pytest.mark.skipif(bool(KUBECONFIG), reason="validating admission policies came with 1.30")


@no_admission_policies
@pytest.mark.rule("A7", "T1")
def test_what_somebody_else_put_into_a_workload_stays_and_keeps_nothing_from_being_changed(
    with_links: None, agent: AsTheAgent, person: KubernetesPerson
) -> None:
    volumes = [{"name": "v", "secret": {"secretName": "db"}}]
    mounts = [{"name": "v", "mountPath": "/v"}]
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]
    body = deployment({"volumes": volumes, "serviceAccountName": "web"}, {"volumeMounts": mounts, "env": env}, "web")
    person.create("deployments", body)
    container = {**body["spec"]["template"]["spec"]["containers"][0], "image": "x:2"}
    changed = {"spec": {"template": {"spec": {"containers": [container]}}}}
    status, text = agent.ask("PATCH", f"{DEPLOYMENTS}/web", changed)
    assert status == 200, text
    taken = {"spec": {"template": {"spec": {"containers": [{**container, "name": "another"}]}}}}
    assert agent.ask("PATCH", f"{DEPLOYMENTS}/web", taken)[0] == 403, "it is that container's alone"


@no_admission_policies
@pytest.mark.rule("A7")
def test_without_links_no_variable_comes_from_any_secret(granted: None, agent: AsTheAgent) -> None:
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "fractal-link-a", "key": "password"}}}]
    assert agent.ask("POST", DEPLOYMENTS, deployment(container={"env": env}))[0] == 403
    assert agent.ask("POST", DEPLOYMENTS, deployment())[0] == 201


@pytest.mark.rule("A7")
def test_roles_alone_do_not_see_what_a_workload_mounts(granted: None, agent: AsTheAgent, clusters: Sandbox) -> None:
    """Why there are admission policies, and what a cluster before 1.30 leaves open inside the named namespaces."""
    with clusters.kubernetes.restrict_agent(AGENT, printed(PLAIN)):
        assert agent.ask("POST", DEPLOYMENTS, deployment(POD_SPECS["mount the node's files"]))[0] == 201
