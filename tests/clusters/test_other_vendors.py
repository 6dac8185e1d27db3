"""Workloads in clusters of Azure, Google and Aruba that are declared beside them: entered in the vendors' own ways."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.errors import Denied, Unreadable
from fractal_cloud.model.wire import Host
from fractal_cloud.offers.aws.eks import AwsEks
from fractal_cloud.offers.aws_login import EksTokens
from fractal_cloud.offers.cluster_access import Access, of_kubeconfig
from fractal_cloud.offers.kubernetes import declared
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_sandbox import Sandbox, sandbox_env
from fractal_sandbox.aws import AGENT_ACCESS_KEY, SECRET_KEY
from fractal_sandbox.aws.eks_tokens import caller
from tests.clusters.worlds import ROLE, OnAruba, OnAzure, OnGoogle, web, with_clusters
from tests.glass.printed_commands import commands, terminal
from tests.offers.aruba.examples import POOL, SUBNET, VPC
from tests.offers.azure.person import AzurePerson
from tests.world import Declaration


def _cluster(kind: str, provider: str, **parameters: Any) -> Declaration:
    return {"id": "prod", "type": f"NetworkAndCompute.PaaS.{kind}", "provider": provider, "parameters": parameters}


AKS = _cluster("AzureAks", "azure", resourceGroup="sandbox", location="westeurope", vmSize="Standard_D4s_v5")
GKE = _cluster("GcpGke", "gcp", location="europe-west1", nodeCount=1)
KAAS = _cluster(
    "ArubaKaas",
    "aruba",
    vpc="main-net",
    subnet="part",
    nodeCidr="10.100.0.0/16",
    securityGroupName="nodes",
    kubernetesVersion="1.32.3",
    nodePools=[POOL],
)
EACH = {
    "AKS": (OnAzure, [AKS], "prod"),
    "GKE": (OnGoogle, [GKE], "gke_fractal-sandbox_europe-west1_prod"),
    "KaaS": (OnAruba, [VPC, SUBNET, KAAS], ""),
}


@pytest.mark.rule("L1", "O10", "C8", "G12")
@pytest.mark.parametrize("vendor", EACH)
def test_a_cluster_and_what_runs_in_it_come_and_go_in_order(
    session_sandbox: Sandbox, tmp_path: Path, vendor: str
) -> None:
    kind, components, context = EACH[vendor]
    with with_clusters(session_sandbox, tmp_path, kind) as world:
        mutation = world.deploy("ls-a", *components, web())
        assert world.message("web") == "waits for prod"
        world.settle(25)
        assert world.status("ls-a", "web") == "Active", world.message("web")
        assert world.deployments() == ["web"]
        assert world.mutation("ls-a", mutation)["status"] == "Completed"
        cluster = world.cluster()
        break_glass, _ = commands(world, "web")
        assert len(break_glass) > 1, "first what lets a person in"
        assert f"--context={context or world.output('ls-a', 'prod', 'id')} " in break_glass[-1]
        world.delete("ls-a")
        world.until_gone("ls-a")
        assert not world.deployments(cluster)
        assert not world.clusters()
        assert not cluster.monitor.violations


@pytest.mark.rule("G1", "G12")
@pytest.mark.skipif(not (shutil.which("kubectl") and shutil.which("jq")), reason="kubectl and jq are not installed")
def test_the_printed_commands_lead_into_a_kaas_cluster(session_sandbox: Sandbox, tmp_path: Path) -> None:
    with with_clusters(session_sandbox, tmp_path, OnAruba) as world:
        world.deploy("ls-a", VPC, SUBNET, KAAS, web())
        world.settle(25)
        settings = sandbox_env(world.sandbox.url, tmp_path / "home")
        break_glass, _ = commands(world, "web")
        terminal(tmp_path, settings)(f"cd {tmp_path} && " + " && ".join(break_glass))
        world.cycle(2)
        assert world.status("ls-a", "web") == "ManualOverride"


@pytest.mark.rule("S5", "O12")
def test_an_aks_cluster_that_knows_entra_is_entered_by_a_token_for_it(session_sandbox: Sandbox, tmp_path: Path) -> None:
    with with_clusters(session_sandbox, tmp_path, OnAzure) as world:
        person = AzurePerson(world.sandbox.url)
        pools = [{"name": "nodes", "mode": "System", "count": 1, "vmSize": "Standard_D4s_v5"}]
        properties = {"dnsPrefix": "prod", "agentPoolProfiles": pools, "aadProfile": {"managed": True}}
        path = person.path("Microsoft.ContainerService/managedClusters", "prod")
        person.call("PUT", path, {"location": "westeurope", "properties": properties})
        world.deploy("ls-a", {**AKS, "importOnly": True}, web())
        world.settle(25)
        assert world.status("ls-a", "prod") == "ExternallyManaged"
        assert world.status("ls-a", "web") == "Active", world.message("web")
        assert world.deployments() == ["web"]


# --- tokens and kubeconfigs


def test_a_token_is_good_for_the_cluster_whose_name_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", AGENT_ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    token = EksTokens("eu-west-1", "prod").token()
    assert token.startswith("k8s-aws-v1.")
    url = base64.urlsafe_b64decode(token.removeprefix("k8s-aws-v1.") + "==").decode()
    assert url.startswith("https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity")
    assert "X-Amz-Expires=60" in url
    assert "x-k8s-aws-id" in url
    assert caller(token, "prod") == "agent"
    assert caller(token, "other") is None
    assert caller(token[:-8], "prod") is None
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    assert caller(EksTokens("eu-west-1", "prod").token(), "prod") is None


def _kubeconfig(user: dict[str, Any]) -> str:
    text = f"""
current-context: it
contexts: [{{name: it, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "https://there", certificate-authority-data: QQ==}}}}]
users: [{{name: u, user: {user}}}]
"""
    return base64.b64encode(text.encode()).decode()


def test_nothing_is_executed_because_a_downloaded_kubeconfig_says_so() -> None:
    def of(content: str, token: Callable[[], str] | None = None) -> Access:
        return of_kubeconfig("prod", content, token)

    with pytest.raises(Denied, match="neither a token nor a certificate"):
        of(_kubeconfig({"exec": {"command": "/bin/touch"}}))
    found = of(_kubeconfig({"exec": {"command": "kubelogin"}}), lambda: "by-entra")
    assert found.token is not None
    assert found.token() == "by-entra"
    assert "exec" not in str(found.kubeconfig())
    with_key = of(_kubeconfig({"client-certificate-data": "Qg==", "client-key-data": "Qw=="}))
    assert (with_key.token, with_key.certificate, with_key.key) == (None, "Qg==", "Qw==")
    for broken in ("", "%%%", base64.b64encode(b"no: kubeconfig").decode()):
        with pytest.raises(Unreadable, match="cannot be read"):
            of(broken)


def test_what_is_missing_to_enter_a_cluster_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ACLOUD_CLIENT_ID", "ACLOUD_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    where = {"vendor": "aruba", "realm": "p", "place": "ITBG-Bergamo", "resource": "prod"}
    host = Host(provider="kubernetes", name="declared:1", type=declared.KAAS, **where)
    needed = "the agent that enters the cluster 'prod' needs read access to it in aruba 'p': .*ACLOUD_CLIENT_ID"
    with pytest.raises(Denied, match=needed):
        declared.Vendors().access(host)


def test_in_python_the_cluster_itself_is_named() -> None:
    cluster = AwsEks(id="prod", role_arn=ROLE, subnets=["left", "right"])
    assert KubernetesWorkload(id="web", image="web:1", cluster=cluster).parameters()["cluster"] == "prod"
