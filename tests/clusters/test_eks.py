"""A workload in an EKS cluster of the same LiveSystem: declared by the cluster's id, and deployed in one go."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox, sandbox_env
from tests.agent_answers import answered_by_agent
from tests.clusters.worlds import WithClusters, eks, network, web, with_clusters
from tests.glass.printed_commands import commands, terminal
from tests.offers.kubernetes.declaring import service
from tests.world import vpc

CLUSTER = [*network(), eks()]
CAN_TYPE = bool(shutil.which("kubectl")) and bool(shutil.which("aws"))


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[WithClusters]:
    with with_clusters(session_sandbox, tmp_path) as made:
        yield made


def make_again(world: WithClusters, name: str = "prod") -> None:
    """Somebody deletes a cluster and makes another one of its name, with the same tags on it."""
    client = world.person.client("eks")
    before = client.describe_cluster(name=name)["cluster"]
    client.delete_cluster(name=name)
    kept = {key: before["resourcesVpcConfig"][key] for key in ("subnetIds", "endpointPublicAccess")}
    client.create_cluster(name=name, roleArn=before["roleArn"], resourcesVpcConfig=kept, tags=before["tags"])


@pytest.mark.rule("L1", "C8", "O10")
def test_a_cluster_and_what_runs_in_it_are_deployed_in_one_go_and_deleted_in_order(world: WithClusters) -> None:
    mutation = world.deploy("ls-a", *CLUSTER, web(), service())
    assert world.message("web") == world.message("front") == "waits for prod"
    world.settle(20)
    assert [world.status("ls-a", name) for name in ("prod", "web", "front")] == ["Active"] * 3
    assert world.deployments() == ["web"]
    assert world.kube.get("deployments", "web") is None, "the current context of the kubeconfig is another cluster"
    assert world.mutation("ls-a", mutation)["status"] == "Completed"
    scopes = [one["key"] for one in world.api.get("/scopes").json()["items"]]
    assert not [key for key in scopes if key.startswith("kubernetes//")], "no agent leases an unknown scope"
    cluster = world.cluster()
    world.delete("ls-a")
    went = []
    for _ in range(40):
        world.cycle()
        went.append((bool(world.deployments(cluster)), bool(world.clusters())))
        if world.api.get("/livesystems/ls-a").status_code == 404:
            break
    assert world.api.get("/livesystems/ls-a").status_code == 404
    assert (True, False) not in went, "the workload goes before the cluster"
    world.assert_safe()


@pytest.mark.rule("C6")
def test_a_plan_lists_the_cluster_and_what_runs_in_it_as_created(world: WithClusters) -> None:
    world.cycle()
    body = {"id": "ls-a", "components": [*CLUSTER, web()]}
    planned = _planned(world, body)
    assert planned["web"]["action"] == "create"
    assert planned["web"]["message"] == "in 'prod', which is created first"


def _planned(world: WithClusters, body: dict[str, Any]) -> dict[str, Any]:
    answer = answered_by_agent(lambda: world.api.post("/livesystems/ls-a/plan", json=body), world.cycle)
    assert answer.status_code == 200, answer.text
    return {one["componentId"]: one for one in answer.json()["components"]}


@pytest.mark.rule("G1", "G7", "G12")
@pytest.mark.skipif(not CAN_TYPE, reason="kubectl and aws are not installed")
def test_the_printed_commands_lead_a_person_into_the_cluster(world: WithClusters, tmp_path: Path) -> None:
    world.deploy("ls-a", *CLUSTER, web())
    world.settle(20)
    home = tmp_path / "home"
    home.mkdir()
    settings = sandbox_env(world.sandbox.url, home)
    del settings["KUBECONFIG"]
    run = terminal(home, settings)
    break_glass, readopt = commands(world, "web")
    assert break_glass[0] == "aws eks update-kubeconfig --region=eu-west-1 --name=prod"
    for command in break_glass:
        run(command)
    world.cycle(2)
    assert world.status("ls-a", "web") == "ManualOverride"
    for command in readopt:
        run(command)
    world.settle()
    assert world.status("ls-a", "web") == "Active"
    world.assert_safe()


@pytest.mark.rule("O3", "O4")
def test_an_imported_cluster_serves_as_well(world: WithClusters) -> None:
    world.deploy("ls-owner", *CLUSTER)
    world.settle(20)
    world.deploy("ls-a", *CLUSTER, web())
    world.deploy("ls-b", *CLUSTER, web("other"))
    world.settle(20)
    assert world.status("ls-a", "prod") == "ExternallyManaged"
    assert world.deployments() == ["other", "web"]
    agents = world.api.get("/agents").json()["items"]
    clusters = [reach["name"] for one in agents for reach in one["reaches"] if reach["name"].startswith("declared:")]
    assert len(clusters) == 1, "it is one cluster, whoever declares it"
    world.delete("ls-a")
    world.until_gone("ls-a")
    assert world.deployments() == ["other"], "its own workload went, though its reference to the cluster was let go"
    world.assert_safe()


@pytest.mark.rule("S0", "S18", "S26")
def test_a_cluster_that_somebody_made_anew_is_another_realm_until_it_is_accepted(world: WithClusters) -> None:
    world.deploy("ls-a", *CLUSTER, web())
    world.settle(20)
    uid = world.output("ls-a", "web", "uid")
    make_again(world)
    world.cycle(6)
    assert world.deployments() == [], "it is not taken for absent because another cluster answers"
    assert world.output("ls-a", "web", "uid") == uid
    assert "kubernetes 'prod' is now" in world.message("web"), world.message("web")
    world.deploy("ls-a", *CLUSTER, service("other", None, cluster="prod"))
    world.cycle(4)
    assert "'prod' is now" in world.message("web"), "its deletion waits"
    assert "'prod' is now" in world.message("other"), "what is new is not made there either"
    body = {"provider": "kubernetes", "name": "prod", "reason": "rebuilt by hand"}
    done = world.api.post("/realms/accept", json=body).json()
    assert (done["components"], done["ended"]) == (1, 1)
    world.cycle(4)
    assert world.status("ls-a", "other") == "Missing"
    world.deploy("ls-a", *CLUSTER, web())
    world.settle(20)
    assert world.deployments() == ["web"], "deployed again, it is made in the new one"
    world.assert_safe()


@pytest.mark.rule("S26")
def test_a_cluster_that_we_made_anew_is_accepted_by_itself_and_what_was_in_it_is_missing(world: WithClusters) -> None:
    world.deploy("ls-a", *CLUSTER, web())
    world.settle(20)
    world.person.client("eks").delete_cluster(name="prod")
    world.cycle(5)
    assert world.status("ls-a", "prod") == "Missing"
    world.deploy("ls-a", *CLUSTER, web())
    for _ in range(20):
        world.cycle()
        if world.status("ls-a", "web") == "Missing":
            break
    assert world.status("ls-a", "prod") == "Active"
    assert world.status("ls-a", "web") == "Missing", world.message("web")
    assert world.deployments() == []
    assert [event["by"] for event in world.events("ls-a") if event["kind"] == "RealmAccepted"] == ["control plane"]
    world.deploy("ls-a", *CLUSTER, web())
    world.settle(20)
    assert world.deployments() == ["web"]
    world.assert_safe()


@pytest.mark.rule("S0", "S26")
def test_another_cluster_at_the_same_address_is_not_read(world: WithClusters) -> None:
    world.deploy("ls-a", *CLUSTER, web())
    world.settle(20)
    clusters = world.sandbox.clusters
    (key,) = clusters.all()
    before = clusters.all()[key]
    clusters.open(key, before._authenticate)
    world.cycle(3)
    assert world.deployments() == []
    assert "nothing counts as gone" in world.message("web")
    assert world.status("ls-a", "web") == "Active", "what is unreadable is neither absent nor present"


@pytest.mark.rule("S0", "O10")
def test_what_was_in_a_cluster_that_is_gone_ends_with_the_live_system(world: WithClusters) -> None:
    world.deploy("ls-a", *CLUSTER, web())
    world.settle(20)
    world.person.client("eks").delete_cluster(name="prod")
    world.cycle(5)
    assert world.status("ls-a", "prod") == "Missing"
    assert world.status("ls-a", "web") == "Active", "nobody has seen that it is absent"
    assert "gone" in world.message("web"), world.message("web")
    world.delete("ls-a")
    world.until_gone("ls-a")
    world.assert_safe()


@pytest.mark.rule("O10")
def test_a_cluster_is_not_deleted_while_something_in_it_is_in_override(world: WithClusters) -> None:
    world.deploy("ls-a", *CLUSTER, web())
    world.settle(20)
    cluster = world.cluster()
    assert world.glass("ls-a", "web", "break", reason="night").status_code == 202
    world.cycle(3)
    assert world.status("ls-a", "web") == "ManualOverride"
    world.delete("ls-a")
    world.until_gone("ls-a")
    assert world.deployments(cluster) == ["web"]
    assert world.clusters() == [cluster], "what it runs on is left as well"


@pytest.mark.rule("S21")
def test_a_cluster_that_lets_nobody_in_is_said_so(world: WithClusters) -> None:
    world.deploy("ls-a", *CLUSTER, web())
    world.agent.run_once()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "SOMEBODYELSE00000000")
        for _ in range(8):
            world.other_agent.run_once()
            world.agent.run_once()
    assert world.status("ls-a", "web") == "Failed"
    assert world.message("web").startswith("'prod' is not reached: ")
    world.restart_agents()
    world.settle(20)
    assert world.status("ls-a", "web") == "Active", world.message("web")


@pytest.mark.rule("S21", "C2")
def test_an_agent_without_any_kubeconfig_serves_declared_clusters(world: WithClusters) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", "/nonexistent")
        world.deploy("ls-a", *CLUSTER, web())
        world.settle(20)
        assert world.deployments() == ["web"]
        world.restart_agents()
        world.cycle(2)
        world.settle(20)
        assert world.status("ls-a", "web") == "Active"


def test_the_id_of_something_else_is_refused(world: WithClusters) -> None:
    body = {"id": "ls-a", "components": [vpc("prod"), web()]}
    answer = world.api.put("/livesystems/ls-a", json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"] == "components[web].parameters.cluster"
    assert error["message"].startswith(
        "is 'prod', a component of type NetworkAndCompute.IaaS.AwsVpc: name a component "
    )
    for name in ("AwsEks", "AzureAks", "GcpGke", "ArubaKaas"):
        assert f"NetworkAndCompute.PaaS.{name}" in error["message"]
    body = {"id": "ls-a", "components": [web("web", cluster="web")]}
    (error,) = world.api.put("/livesystems/ls-a", json=body).json()["errors"]
    assert "the component itself" in error["message"]


def test_a_component_goes_before_a_context_of_the_same_name(world: WithClusters) -> None:
    world.deploy("ls-a", *network(), eks("sandbox"), web(cluster="sandbox"))
    world.settle(20)
    assert world.deployments() == ["web"]
    assert world.kube.get("deployments", "web") is None


def test_an_agent_for_kubernetes_alone_loads_no_vendor() -> None:
    script = (
        "import sys\n"
        "from fractal_cloud.offers.registry import installed\n"
        "installed('kubernetes')\n"
        "import fractal_cloud.offers.kubernetes.cloud\n"
        "print([name for name in ('boto3', 'botocore', 'google.auth', 'azure.identity') if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
