"""No way leads from the rights that are printed for the agent to more of them (A7): each is tried, none is granted.

On a real server its own authorizer answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox
from fractal_sandbox.kubernetes.rbac import Rbac, asked_by
from tests.offers.kubernetes.attempts import ATTEMPTS, CONTAINERS, DEPLOYMENTS, POD_SPECS, AsTheAgent, deployment
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.kubernetes.real import KUBECONFIG
from tests.offers.kubernetes.rights import AGENT, EVERYTHING, printed, printed_rights

Object = dict[str, Any]
WITH_LINKS: Final = PolicyOptions(namespaces=("default",), with_links=True)
no_admission_policies = pytest.mark.skipif(bool(KUBECONFIG), reason="validating admission policies came with 1.30")


@pytest.fixture
def refused(session_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AsTheAgent]:
    """The agent with what links need, for attempts that leave nothing behind: a Secret and a workload are there."""
    session_sandbox.kubernetes.reset()
    person = KubernetesPerson(session_sandbox.url, tmp_path_factory.mktemp("rights"))
    person.create("secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "data": {}})
    person.create("deployments", deployment(name="web"))
    with printed_rights(session_sandbox, WITH_LINKS):
        yield AsTheAgent(session_sandbox)


@pytest.mark.rule("A7")
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_way_to_more_rights_is_granted(refused: AsTheAgent, attempt: str) -> None:
    status, text = refused.ask(*ATTEMPTS[attempt])
    assert status == 403, text
    assert "forbidden" in text
    assert AGENT.name in text


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_each_attempt_would_succeed_with_an_admins_rights(attempt: str) -> None:
    """A path that nobody may go proves nothing about the rights."""
    method, path, _ = ATTEMPTS[attempt]
    path, _, query = path.partition("?")
    asked = asked_by(method, path, dict(pair.split("=") for pair in query.split("&") if pair))
    assert Rbac(EVERYTHING).allows(AGENT, asked)
    assert not Rbac(printed(WITH_LINKS)).allows(AGENT, asked)


@no_admission_policies
@pytest.mark.rule("A7")
@pytest.mark.parametrize("attempt", [*POD_SPECS, *CONTAINERS])
def test_no_pod_of_the_agents_may_run_as_somebody_or_mount_or_reach_what_is_not_its_own(
    refused: AsTheAgent, attempt: str
) -> None:
    status, text = refused.ask("POST", DEPLOYMENTS, deployment(POD_SPECS.get(attempt), CONTAINERS.get(attempt)))
    assert status == 403, text
    assert "fractal-cloud-agent-deployments" in text


@no_admission_policies
@pytest.mark.rule("A7")
@pytest.mark.parametrize("attempt", [*POD_SPECS, *CONTAINERS])
def test_nor_may_the_agent_put_that_into_a_workload_that_is_there(refused: AsTheAgent, attempt: str) -> None:
    spec = {**POD_SPECS.get(attempt, {})}
    if attempt in CONTAINERS:
        spec["containers"] = [{"name": "main", "image": "x", **CONTAINERS[attempt]}]
    status, text = refused.ask("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"template": {"spec": spec}}})
    assert status == 403, text
    assert "fractal-cloud-agent-deployments" in text


NAMED: Final = PolicyOptions(
    namespaces=("default",), secrets=("default/db", "shop/other"), service_accounts=("default/web", "shop/other")
)
GIVEN: Final[dict[str, Object]] = {
    "run as an account": {"serviceAccountName": "web"},
    "mount a secret": {"volumes": [{"name": "v", "secret": {"secretName": "db"}}]},
    "pull with a secret": {"imagePullSecrets": [{"name": "db"}]},
}


@no_admission_policies
@pytest.mark.rule("A7")
@pytest.mark.parametrize("given", GIVEN)
def test_pods_get_the_accounts_and_secrets_that_were_named_for_their_namespace_alone(
    session_sandbox: Sandbox, given: str
) -> None:
    session_sandbox.kubernetes.reset()
    elsewhere = json.loads(json.dumps(GIVEN[given]).replace('"web"', '"other"').replace('"db"', '"other"'))
    with printed_rights(session_sandbox, NAMED):
        agent = AsTheAgent(session_sandbox)
        status, text = agent.ask("POST", DEPLOYMENTS, deployment(elsewhere, name="other"))
        assert status == 403, text
        status, text = agent.ask("POST", DEPLOYMENTS, deployment(GIVEN[given]))
        assert status != 403, text


SECRETS: Final = "/api/v1/namespaces/default/secrets"
MARKED: Final = {"labels": {"fractal.cloud/link": "x"}}


@no_admission_policies
@pytest.mark.rule("A7", "L17")
@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("POST", {"metadata": {"name": "db-2", **MARKED}}),
        ("POST", {"metadata": {"name": "fractal-link-x"}}),
        (
            "POST",
            {
                "metadata": {
                    "name": "fractal-link-x",
                    **MARKED,
                    "annotations": {"kubernetes.io/service-account.name": "admin"},
                },
                "type": "kubernetes.io/service-account-token",
            },
        ),
        ("PATCH", {"data": {"password": "eA=="}}),
        ("PATCH", {"metadata": MARKED}),
        ("DELETE", None),
    ],
    ids=["another-name", "no-mark", "a-token", "change", "claim", "delete"],
)
def test_secrets_that_no_link_made_are_neither_made_nor_changed_nor_deleted(
    refused: AsTheAgent, method: str, body: Object | None
) -> None:
    status, text = refused.ask(method, SECRETS if method == "POST" else f"{SECRETS}/db", body)
    assert status == 403, text
    assert "fractal-cloud-agent-secrets" in text


@no_admission_policies
@pytest.mark.rule("A7")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/api/v1/namespaces/default/services",
            {
                "kind": "Service",
                "metadata": {"name": "x"},
                "spec": {"ports": [{"port": 443}], "externalIPs": ["192.0.2.1"]},
            },
        ),
        (
            "/apis/getambassador.io/v3alpha1/namespaces/default/hosts",
            {
                "apiVersion": "getambassador.io/v3alpha1",
                "kind": "Host",
                "metadata": {"name": "x"},
                "spec": {"hostname": "a.example.com", "tlsSecret": {"name": "cert", "namespace": "kube-system"}},
            },
        ),
        *(
            (
                "/apis/kubevirt.io/v1/namespaces/default/virtualmachines",
                {
                    "apiVersion": "kubevirt.io/v1",
                    "kind": "VirtualMachine",
                    "metadata": {"name": "x"},
                    "spec": {"template": {"spec": {"domain": {"devices": {}}, **spec}}},
                },
            )
            for spec in (
                {"volumes": [{"name": "v", "serviceAccount": {"serviceAccountName": "admin"}}]},
                {"volumes": [{"name": "v", "secret": {"secretName": "db"}}]},
                {"volumes": [{"name": "v", "hostDisk": {"path": "/dev/sda"}}]},
                {"networks": [{"name": "n", "multus": {"networkName": "kube-system/management"}}]},
                {"domain": {"devices": {"hostDevices": [{"name": "d", "deviceName": "x"}]}}},
                {"accessCredentials": [{"sshPublicKey": {"source": {"secret": {"secretName": "db"}}}}]},
            )
        ),
    ],
    ids=[
        *("catch-traffic", "certificate-of-others", "machine-token", "machine-secret", "machine-host-disk"),
        *("machine-network", "machine-device", "machine-credentials"),
    ],
)
def test_services_gateways_and_machines_reach_nothing_that_is_not_theirs(
    refused: AsTheAgent, path: str, body: Object
) -> None:
    status, text = refused.ask("POST", path, body)
    assert status == 403, text
    assert "ValidatingAdmissionPolicy" in text
