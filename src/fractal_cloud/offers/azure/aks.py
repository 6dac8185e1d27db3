"""AKS clusters: found by their name in a resource group.

Azure copies a cluster's tags to the machines it makes for it; those are no components of anybody, and nothing is ever
deleted because of a tag alone. Deleting a cluster takes its node group with all disks along: one whose pods have kept
data on such a disk is left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.catalog import Entry
from fractal_cloud.model.component import Reference, parameter, reference_id
from fractal_cloud.model.errors import Conflict, Unreadable
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers import azure_login
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.kinds import DISK, Block, Item, ResourceGroup, ResourceKind, canonical_id, cluster_name
from fractal_cloud.offers.azure.resources import OUTPUTS, AzureResource, ResourceOffer
from fractal_cloud.offers.azure.subnet import AzureSubnet
from fractal_cloud.offers.cluster_access import Access, Addresses, of_kubeconfig
from fractal_cloud.offers.cluster_versions import next_version, version_warnings
from fractal_cloud.offers.offer import Wanted

AKS: Final = ResourceKind("Microsoft.ContainerService", "managedClusters", "2025-03-01")

# The application that stands for the API server of every AKS cluster that knows Entra.
AKS_SERVER: Final = "6dae42f8-4368-4678-94ff-3fdab4bd0d2e"
_POOL: Final = "nodepool1"
_CLAIM: Final = "kubernetes.io-created-for-pvc-name"
_FORWARD: Final = "kubernetesVersion"
# What one write of the cluster carries together; a version is a write of its own, which Azure asks for.
_IN_ONE_WRITE: Final = ("nodeCount", "skuTier", "authorizedIPRanges", "upgradeChannel")


_AT = "--resource-group={resourceGroup} --name={name} --subscription={realm}"


class AzureAks(AzureResource):
    """A managed Kubernetes cluster with one pool of nodes."""

    type = "NetworkAndCompute.PaaS.AzureAks"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in the resource group; the component's id if not given.",
    )
    resource_group: ResourceGroup | None = parameter(
        default=None, immutable=True, description="Resource group it lies in; that of its subnet where none is given."
    )
    kubernetes_version: str | None = parameter(
        default=None,
        pattern=r"^1\.\d+(\.\d+)?$",
        description="Kubernetes version, such as 1.33; raised one minor version at a time, never lowered.",
    )
    dns_prefix: str | None = parameter(
        default=None,
        immutable=True,
        pattern=r"^[a-z0-9]([a-z0-9-]{0,52}[a-z0-9])?$",
        description="Beginning of its API's host name; its name where none is given.",
    )
    node_resource_group: ResourceGroup | None = parameter(
        default=None,
        immutable=True,
        description="Resource group Azure makes for its nodes; one named by Azure if not given.",
    )
    vm_size: str = parameter(immutable=True, description="Size of its nodes.", examples=["Standard_D4s_v5"])
    node_count: int = parameter(default=1, ge=1, le=1000, description="How many nodes it has.")
    subnet: Reference[AzureSubnet] | None = parameter(
        default=None,
        immutable=True,
        reference=(AzureSubnet.type, "id"),
        description="The subnet its nodes are in; without one, a network that Azure makes.",
    )
    network_plugin: Literal["azure", "kubenet", "none"] = parameter(
        default="azure", immutable=True, description="What gives its pods addresses."
    )
    sku_tier: Literal["Free", "Standard", "Premium"] | None = parameter(
        default=None, description="What is promised for its control plane; Azure starts with Free."
    )
    authorized_ip_ranges: list[Block] | None = parameter(
        default=None,
        declared_as="authorizedIPRanges",
        compare="cidrs",
        description="Networks from which its API is reached; Azure starts with all, which is an empty list.",
    )
    upgrade_channel: Literal["none", "patch", "stable", "rapid", "node-image"] | None = parameter(
        default=None, description="Which new versions Azure takes by itself; Azure starts with none."
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return cluster_name(name)


class AzureAksOffer(ResourceOffer[AzureAks]):
    """How AKS clusters are read and changed."""

    component = AzureAks
    title = "AKS cluster"
    service = "containerservice"
    kind = AKS
    rights = (f"{DISK.type}/read",)
    holds_data = True
    deletes_guarded = True
    unguarded = frozenset({"tag"})
    guard = (
        "updates and deletions carry the cluster's etag (If-Match); tag changes have no precondition: "
        "their window is the one call after a fresh read"
    )
    # learn.microsoft.com/azure/aks/outbound-rules-control-egress, of the three clouds.
    cluster_addresses = Addresses(
        (
            r"([a-z0-9-]+\.)+azmk8s\.io",
            r"([a-z0-9-]+\.)+cx\.aks\.containerservice\.azure\.us",
            r"([a-z0-9-]+\.)+cx\.prod\.service\.azk8s\.cn",
        )
    )
    entry = Entry(commands=[f"az aks get-credentials {_AT} --overwrite-existing"], context="{name}")
    outputs: ClassVar[Mapping[str, str]] = {
        **OUTPUTS,
        "fqdn": "host name of its API, once it has one",
        "currentKubernetesVersion": "version it runs, to the patch",
        "nodeResourceGroup": "resource group of its nodes",
        "powerState": "Running or Stopped",
        "oidcIssuer": "issuer of its service accounts' identities, where it is switched on",
        "principalId": "object id of the cluster's own identity",
    }

    def enter(self, cloud: Azure, name: str) -> Access | None:
        """By the kubeconfig that every user of the cluster may have.

        Its certificate counts where the cluster has accounts of its own; where it knows Entra instead, a token does.
        The kubeconfig of its administrators would pass by whatever Entra allows the agent, and leave no name in its
        logs.
        """
        found = cloud.ask(f"{cloud.id_of(self.kind, name)}/listClusterUserCredential", self.kind.version)
        configs = found.get("kubeconfigs") or []
        if not configs:
            raise Unreadable(f"Azure returned no kubeconfig for {name!r}: it is asked again")
        credential = azure_login.credential()
        return of_kubeconfig(name, configs[0].get("value", ""), lambda: azure_login.token(credential, AKS_SERVER))

    def actual(self, item: Item) -> dict[str, Any]:
        """What the cluster and its first pool show."""
        properties = item.get("properties") or {}
        pool = _pool_of(properties)
        access = properties.get("apiServerAccessProfile") or {}
        return {
            "kubernetesVersion": properties.get("kubernetesVersion"),
            "dnsPrefix": properties.get("dnsPrefix"),
            "nodeResourceGroup": str(properties.get("nodeResourceGroup") or "").lower(),
            "vmSize": pool.get("vmSize"),
            "nodeCount": pool.get("count"),
            "subnet": canonical_id(pool["vnetSubnetID"]) if pool.get("vnetSubnetID") else None,
            "networkPlugin": (properties.get("networkProfile") or {}).get("networkPlugin"),
            "skuTier": (item.get("sku") or {}).get("tier"),
            "authorizedIPRanges": access.get("authorizedIPRanges") or [],
            "upgradeChannel": (properties.get("autoUpgradeProfile") or {}).get("upgradeChannel") or "none",
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Where it is reached, and what it is made of."""
        properties = item.get("properties") or {}
        return {
            "fqdn": properties.get("fqdn"),
            "currentKubernetesVersion": properties.get("currentKubernetesVersion"),
            "nodeResourceGroup": properties.get("nodeResourceGroup"),
            "powerState": (properties.get("powerState") or {}).get("code"),
            "oidcIssuer": (properties.get("oidcIssuerProfile") or {}).get("issuerURL"),
            "principalId": (item.get("identity") or {}).get("principalId"),
        }

    def incarnation_of(self, item: Item) -> str:
        """Return the id by which Azure distinguishes clusters that had the same name one after the other."""
        return str((item.get("properties") or {}).get("resourceUID") or "") or super().incarnation_of(item)

    def etag_of(self, item: Item) -> str | None:
        """Spelled in a way of its own."""
        return item.get("eTag")

    def body(self, wanted: Wanted[AzureAks]) -> Item:
        """The cluster with its pool, and an identity of its own."""
        cluster = wanted.component
        pool: Item = {
            "name": _POOL,
            "mode": "System",
            "osType": "Linux",
            "type": "VirtualMachineScaleSets",
            "vmSize": cluster.vm_size,
            "count": cluster.node_count,
        }
        if cluster.subnet is not None:
            pool["vnetSubnetID"] = reference_id(cluster.subnet)
        optional = {
            "kubernetesVersion": cluster.kubernetes_version,
            "nodeResourceGroup": cluster.node_resource_group,
        }
        item: Item = {
            "identity": {"type": "SystemAssigned"},
            "sku": {"name": "Base", "tier": cluster.sku_tier or "Free"},
            "properties": {
                "dnsPrefix": cluster.dns_prefix or cluster.name,
                "agentPoolProfiles": [pool],
                "networkProfile": {"networkPlugin": cluster.network_plugin},
                **{name: value for name, value in optional.items() if value is not None},
            },
        }
        _apply(item, cluster, [name for name in _IN_ONE_WRITE if cluster.parameters().get(name) is not None])
        return item

    def update(self, cloud: Azure, sighting: Sighting, wanted: Wanted[AzureAks], drift: Collection[str]) -> None:
        """Write the cluster back with what is declared; a new version comes last, one minor version at a time."""
        item = self.still(cloud, sighting)
        changed = deepcopy(item)
        changes = [name for name in _IN_ONE_WRITE if name in drift]
        if changes:
            _apply(changed, wanted.component, changes)
        elif _FORWARD in drift:
            version = next_version(str(sighting.actual[_FORWARD]), wanted.component.kubernetes_version or "", _FORWARD)
            changed["properties"]["kubernetesVersion"] = version
            _pool_of(changed["properties"])["orchestratorVersion"] = version
        cloud.put(sighting.resource_id, AKS.version, changed, self.etag_of(item))

    def check_deletion(self, cloud: Azure, sighting: Sighting) -> None:
        """Data is not thrown away (O15): disks of pods lie in the node group, which goes with the cluster."""
        group = str(sighting.outputs.get("nodeResourceGroup") or "")
        disks = cloud.list(DISK, group) if group else ()
        claims = sorted(tags[_CLAIM] for disk in disks if _CLAIM in (tags := disk.get("tags") or {}))
        if claims:
            raise Conflict(
                f"cluster {sighting.name!r} still holds the data of {', '.join(f'claim {name!r}' for name in claims)}: "
                f"delete the claims or move their disks out of {group!r}, and it is tried again"
            )

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What a change of the version means."""
        return version_warnings(drift, _FORWARD)


def _pool_of(properties: Item) -> Item:
    """Our pool, by its name: other people's may stand first. Of a cluster made otherwise, its first system pool."""
    pools: list[Item] = properties.get("agentPoolProfiles") or []
    ours = [pool for pool in pools if pool.get("name") == _POOL]
    system = [pool for pool in pools if pool.get("mode") == "System"]
    return next(iter([*ours, *system, *pools]), {})


def _apply(item: Item, cluster: AzureAks, names: Collection[str]) -> None:
    properties = item["properties"]
    if "nodeCount" in names:
        _pool_of(properties)["count"] = cluster.node_count
    if "skuTier" in names:
        item["sku"] = {**(item.get("sku") or {}), "tier": cluster.sku_tier}
    if "authorizedIPRanges" in names:
        access = properties.get("apiServerAccessProfile") or {}
        properties["apiServerAccessProfile"] = {**access, "authorizedIPRanges": cluster.authorized_ip_ranges}
    if "upgradeChannel" in names:
        profile = properties.get("autoUpgradeProfile") or {}
        properties["autoUpgradeProfile"] = {**profile, "upgradeChannel": cluster.upgrade_channel}
