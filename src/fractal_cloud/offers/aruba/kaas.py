"""Kubernetes clusters (KaaS): found by their name in a project and location.

Answers spell some properties otherwise than requests do: ``nodecidr`` and ``podcidr`` are ``nodeCidr`` and ``podCidr``
in requests, the pools come as ``nodesPool`` or ``nodePools``, and what a pool is made of comes as objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Final

from pydantic import Field, field_serializer, model_validator

from fractal_cloud.model.component import Reference, parameter, reference_id
from fractal_cloud.model.errors import Unreadable
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.aruba.calls import Aruba, Item, address
from fractal_cloud.offers.aruba.resources import ArubaComponent, ArubaOffer
from fractal_cloud.offers.aruba.subnet import ArubaSubnet
from fractal_cloud.offers.aruba.tags import entry, glass
from fractal_cloud.offers.aruba.value_types import Block, DataCenter, Part
from fractal_cloud.offers.aruba.vpc import ArubaVpc
from fractal_cloud.offers.cluster_access import Access, Addresses, of_kubeconfig
from fractal_cloud.offers.offer import Wanted

_KEPT: Final = ("storage", "billingPlan", "apiServerAccessProfile")
"""What people set outside of us, and a write resets where it leaves it out."""


class ArubaNodePool(Part):
    """A number of equal nodes."""

    name: str = Field(description="Its name, unique in the cluster.")
    nodes: int = Field(ge=1, description="How many nodes it has.")
    instance: str = Field(description="The flavor of its nodes.", examples=["K2A4"])
    data_center: DataCenter = Field(description="The zone its nodes lie in.")
    autoscaling: bool | None = Field(
        default=None, description="Whether Aruba adds and removes nodes; `nodes` is then only what it starts with."
    )
    min_count: int | None = Field(default=None, ge=1, description="The fewest nodes, with autoscaling.")
    max_count: int | None = Field(default=None, ge=1, description="The most nodes, with autoscaling.")

    @model_validator(mode="after")
    def _has_bounds(self) -> ArubaNodePool:
        given = (self.min_count, self.max_count)
        if self.autoscaling and None in given:
            raise ValueError("autoscaling needs minCount and maxCount")
        if not self.autoscaling and given != (None, None):
            raise ValueError("minCount and maxCount need autoscaling: true")
        return self


class ArubaKaas(ArubaComponent):
    """A Kubernetes cluster with its nodes. What runs in it is gone with it; its elastic addresses stay."""

    type = "NetworkAndCompute.PaaS.ArubaKaas"

    vpc: Reference[ArubaVpc] = parameter(
        immutable=True,
        reference=(ArubaVpc.type, "vpcUri"),
        description="The VPC its nodes lie in; the cluster lies in its location and project.",
    )
    subnet: Reference[ArubaSubnet] = parameter(
        immutable=True, reference=(ArubaSubnet.type, "subnetUri"), description="The subnet its nodes lie in."
    )
    node_cidr: Block = parameter(immutable=True, compare="cidr", description="The block its nodes take addresses of.")
    pod_cidr: Block | None = parameter(
        default=None,
        immutable=True,
        compare="cidr",
        description="The block its pods take addresses of; Aruba's if not given.",
    )
    security_group_name: str = parameter(
        immutable=True, description="Name of the security group that Aruba makes for its nodes."
    )
    kubernetes_version: str = parameter(
        pattern=r"^\d+(\.\d+){1,2}$",
        description="Its version; it can be raised and never lowered.",
        examples=["1.33.2"],
    )
    node_pools: list[ArubaNodePool] = parameter(
        compare="unordered",
        set_by_cloud={"nodes": "autoscaling"},
        min_length=1,
        description="All its node pools. They are written together, in one call.",
    )
    ha: bool | None = parameter(
        default=None, description="Whether its control plane is highly available; it can be switched on and never off."
    )

    @field_serializer("node_pools")
    def _in_one_spelling(self, pools: list[ArubaNodePool]) -> Any:
        return [pool.flat() for pool in pools]


class ArubaKaasOffer(ArubaOffer[ArubaKaas]):
    """How clusters are read and changed."""

    component = ArubaKaas
    title = "KaaS cluster"
    service = "container"
    holds_data = True
    collection = "Aruba.Container/kaas"
    rights = ("Aruba.Container/kaas",)
    cascade: ClassVar[Mapping[str, str]] = {"deleteOnCascade": "false"}
    outputs: ClassVar[Mapping[str, str]] = {
        "kaasUri": "address of the cluster",
        "id": "id of the cluster",
        "location": "region it lies in",
        "projectId": "id of its project",
        "state": "its state in Aruba's words",
        "managementIp": "address of its control plane",
    }
    # Aruba's clusters have no names: their kubeconfig says an address, and the authority of whoever answers there.
    cluster_addresses = Addresses(ports=frozenset({443, 6443}), has_ips=True)
    entry = entry()
    glass = glass(
        ("ha",),
        {
            "kubernetesVersion": "{value: .properties.kubernetesVersion.value}",
            "nodePools": (
                "[(.properties.nodesPool // .properties.nodePools)[] | {name, nodes, "
                "instance: (.instance.name? // .instance), "
                "dataCenter: (.dataCenter.code? // .dataCenter.name? // .dataCenter), "
                "autoscaling: (.autoscaling // false), minCount, maxCount}]"
            ),
        },
    )

    def enter(self, cloud: Aruba, name: str) -> Access | None:
        """By the kubeconfig that Aruba lets download."""
        listed = cloud.list(cloud.collection(self.collection))
        found = [item for item in listed if self._seen(cloud, item) and item["metadata"]["name"] == name]
        if len(found) > 1:
            raise Unreadable(f"{len(found)} clusters are called {name!r}: rename all but one")
        if not found:
            return None
        (item,) = found
        return of_kubeconfig(str(item["metadata"]["id"]), cloud.download(address(item)).get("content", ""))

    def actual(self, item: Item) -> dict[str, Any]:
        """How it was made, and how large it is."""
        properties = item["properties"]
        return {
            "vpc": properties["vpc"]["uri"],
            "subnet": properties["subnet"]["uri"],
            "nodeCidr": _block(properties, "nodecidr", "nodeCidr"),
            "podCidr": _block(properties, "podcidr", "podCidr"),
            "securityGroupName": properties["securityGroup"]["name"],
            "kubernetesVersion": properties["kubernetesVersion"]["value"],
            "nodePools": sorted(_pools(properties), key=str),
            "ha": bool(properties.get("ha")),
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Its address, and where its control plane answers."""
        return {"kaasUri": address(item), "managementIp": item["properties"].get("managementIp")}

    def properties(self, wanted: Wanted[ArubaKaas]) -> Item:
        """All of it travels in the create call."""
        cluster = wanted.component
        return {
            "vpc": {"uri": reference_id(cluster.vpc)},
            "subnet": {"uri": reference_id(cluster.subnet)},
            "nodeCidr": {"address": cluster.node_cidr, "name": f"{cluster.name}-nodes"},
            "podCidr": cluster.pod_cidr,
            "securityGroup": {"name": cluster.security_group_name},
            "kubernetesVersion": {"value": cluster.kubernetes_version},
            "nodePools": [pool.flat() for pool in cluster.node_pools],
            "ha": bool(cluster.ha),
        }

    def said_again(self, item: Item) -> Item:
        """Everything that a write would reset if it left it out, in the spelling of requests."""
        properties = item["properties"]
        return {
            "kubernetesVersion": {"value": properties["kubernetesVersion"]["value"]},
            "nodePools": _pools(properties),
            "ha": bool(properties.get("ha")),
            **{name: properties[name] for name in _KEPT if properties.get(name) is not None},
        }

    def changed(self, wanted: Wanted[ArubaKaas], drift: Collection[str]) -> Item:
        """What can change, in one call."""
        declared = self.properties(wanted)
        return {name: declared[name] for name in ("kubernetesVersion", "nodePools", "ha") if name in drift}

    def merged(self, item: Item, changes: Item) -> Item:
        """Where Aruba scales a pool, it keeps the nodes that it has: what is declared is only what it began with."""
        nodes = {pool["name"]: pool["nodes"] for pool in _pools(item["properties"]) if pool["autoscaling"]}
        if "nodePools" not in changes:
            return super().merged(item, changes)
        pools = [
            {**pool, "nodes": min(max(nodes[pool["name"]], pool["minCount"]), pool["maxCount"])}
            if pool.get("autoscaling") and pool["name"] in nodes
            else pool
            for pool in changes["nodePools"]
        ]
        return super().merged(item, {**changes, "nodePools": pools})

    def impossible(self, sighting: Sighting, wanted: Wanted[ArubaKaas], drift: Collection[str]) -> Mapping[str, str]:
        """A version never goes down, and what is highly available stays so."""
        cluster, here = wanted.component, sighting.actual["kubernetesVersion"]
        found = {}
        if "kubernetesVersion" in drift and _version(cluster.kubernetes_version) < _version(here):
            found["kubernetesVersion"] = (
                f"kubernetesVersion cannot go from {here} down to {cluster.kubernetes_version}: declare at least {here}"
            )
        if "ha" in drift and not cluster.ha:
            found["ha"] = "ha cannot go from true to false: declare true, or a new cluster"
        return found

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What an upgrade does."""
        return ["changing kubernetesVersion restarts the nodes"] if "kubernetesVersion" in drift else []


def _pools(properties: Item) -> list[Item]:
    """The pools of an answer in the spelling of requests: a write repeats all of each."""
    found = properties["nodesPool"] if "nodesPool" in properties else properties["nodePools"]
    return [_pool(one) for one in found]


def _pool(answered: Mapping[str, Any]) -> Item:
    instance, zone = answered["instance"], answered["dataCenter"]
    pool: Item = {
        "name": answered["name"],
        "nodes": answered["nodes"],
        "instance": instance["name"] if isinstance(instance, dict) else instance,
        "dataCenter": (zone.get("code") or zone["name"]) if isinstance(zone, dict) else zone,
        "autoscaling": bool(answered.get("autoscaling")),
    }
    bounds = {name: answered.get(name) for name in ("minCount", "maxCount")}
    return pool | {name: value for name, value in bounds.items() if value is not None}


def _block(properties: Item, *spellings: str) -> str | None:
    """A block of addresses, which answers spell and wrap in more than one way."""
    found = next((properties[name] for name in spellings if properties.get(name) is not None), None)
    return found.get("address") if isinstance(found, dict) else found


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
