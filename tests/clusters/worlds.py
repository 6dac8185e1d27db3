"""The whole product over a vendor's cloud and the clusters it keeps: an agent for the vendor, and one for Kubernetes.

The second one has a kubeconfig with other clusters in it, and the vendor's credentials in its environment; each has a
token that opens nothing of the other's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fractal_sandbox import Sandbox
from fractal_sandbox.kubernetes.cloud import KubernetesCloud
from tests.housekeeping_interval import OFTEN, housekeeping_every
from tests.linking.two_clouds import TwoClouds, two_clouds
from tests.offers.kubernetes.declaring import workload
from tests.world import REGION, Declaration, subnet, vpc

ROLE = "arn:aws:iam::123456789012:role/eks"


class WithClusters(TwoClouds):
    """AWS, and clusters in it."""

    def cluster(self) -> KubernetesCloud:
        """The one cluster that a vendor keeps."""
        (found,) = self.clusters()
        return found

    def clusters(self) -> list[KubernetesCloud]:
        """All that there are now."""
        return list(self.sandbox.clusters.all().values())

    def deployments(self, cluster: KubernetesCloud | None = None) -> list[str]:
        """What runs in a cluster."""
        found = (cluster or self.cluster()).objects("deployments", "default")
        return sorted(one["metadata"]["name"] for one in found)

    def message(self, component: str, live_system: str = "ls-a") -> str:
        """What is said of a component."""
        return str(self.component(live_system, component)["message"])

    def until_gone(self, path: str, at_most: int = 40) -> None:
        """Cycles until there is no such LiveSystem, or component, any more."""
        for _ in range(at_most):
            if self.api.get(f"/livesystems/{path}").status_code == 404:
                return
            self.cycle()
        raise AssertionError(f"{path} is still there: {self.api.get(f'/livesystems/{path}').text}")

    def assert_safe(self) -> None:
        """SAFETY in the clusters, too."""
        super().assert_safe()
        for cluster in self.clusters():
            assert not cluster.monitor.violations, "\n".join(map(str, cluster.monitor.violations))
            assert not cluster.monitor.lost_races, "\n".join(map(str, cluster.monitor.lost_races))


class OnAzure(WithClusters):
    """Azure, and clusters in it."""

    sides = ("azure", "kubernetes")


class OnGoogle(WithClusters):
    """Google Cloud, and clusters in it."""

    sides = ("gcp", "kubernetes")


class OnAruba(WithClusters):
    """Aruba Cloud, and clusters in it."""

    sides = ("aruba", "kubernetes")


@contextmanager
def with_clusters(
    sandbox: Sandbox, folder: Path, made_of: type[WithClusters] = WithClusters, **settings: Any
) -> Iterator[WithClusters]:
    """A world of such agents over a sandbox in which there is nothing."""
    sandbox.reset()
    # Housekeeping is what marks components of a deleted cluster, so it has to run often.
    with housekeeping_every(OFTEN), two_clouds(sandbox, folder, made_of, **settings) as made:
        yield made


def eks(component_id: str = "prod", **parameters: Any) -> Declaration:
    """An EKS cluster as people declare it; ``network`` is what it needs."""
    values = {"roleArn": ROLE, "subnets": ["left", "right"], **parameters}
    return {"id": component_id, "type": "NetworkAndCompute.PaaS.AwsEks", "provider": "aws", "parameters": values}


def network() -> list[Declaration]:
    """A VPC and two subnets in different zones."""
    zones = [("left", "10.0.1.0/24", "a"), ("right", "10.0.2.0/24", "b")]
    subnets = [subnet(name, cidrBlock=block, availabilityZone=f"{REGION}{zone}") for name, block, zone in zones]
    return [vpc(), *subnets]


def web(component_id: str = "web", cluster: str = "prod", **parameters: Any) -> Declaration:
    """A workload in a declared cluster."""
    return workload(component_id, cluster=cluster, **parameters)
