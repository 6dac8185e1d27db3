"""A workload in an EKS cluster of the same LiveSystem: declared by the cluster's id, and deployed in one go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.sandbox import Sandbox
from tests.clusters.worlds import WithClusters, eks, network, web, with_clusters


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[WithClusters]:
    with with_clusters(session_sandbox, tmp_path) as made:
        yield made


@pytest.mark.rule("L1", "C8", "O10")
def test_a_cluster_and_what_runs_in_it_are_deployed_in_one_go_and_deleted_in_order(world: WithClusters) -> None:
    mutation = world.deploy("ls-a", *network(), eks(), web())
    assert world.message("web") == "waits for prod"
    world.settle(20)
    assert world.status("ls-a", "prod") == "Active"
    assert world.status("ls-a", "web") == "Active", world.message("web")
    assert world.deployments() == ["web"]
    assert world.kube.get("deployments", "web") is None, "the current context of the kubeconfig is another cluster"
    assert world.mutation("ls-a", mutation)["status"] == "Completed"
    cluster = world.cluster()
    world.delete("ls-a")
    for _ in range(30):
        world.cycle()
        if not world.clusters():
            break
        assert world.deployments() == ["web"] or world.status("ls-a", "prod") == "Deleting"
    assert not world.deployments(cluster), "the workload went before the cluster"
    assert world.api.get("/livesystems/ls-a").status_code == 404
    world.assert_safe()
