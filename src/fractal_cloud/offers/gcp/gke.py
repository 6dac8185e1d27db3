"""GKE clusters: found by their name, unique in project and location (a region or a zone).

Google takes one change at a time and works on it for minutes; each carries the cluster's etag. The labels of a cluster
are copied to its machines and disks, which are nobody's components: nothing is ever concluded from a label alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.catalog import Entry, GlassCommands
from fractal_cloud.model.commands import output, run, word, words
from fractal_cloud.model.component import Reference, parameter, reference_id
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.tags import MANAGED_BY, ProtocolTags
from fractal_cloud.offers.cluster_access import Access, Addresses
from fractal_cloud.offers.cluster_versions import next_version, version_warnings
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.gcp.network import GcpVpc
from fractal_cloud.offers.gcp.resources import GcpOffer, Raw
from fractal_cloud.offers.gcp.subnet import GcpSubnet
from fractal_cloud.offers.gcp.tags import BOTH, check_unchanged, interned, labels_of, relabelled
from fractal_cloud.offers.gcp.value_types import GcpComponent, Location, Network, resource_name
from fractal_cloud.offers.google_login import GoogleTokens
from fractal_cloud.offers.offer import Wanted

LogComponent = Literal["SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER", "SCHEDULER", "CONTROLLER_MANAGER"]
_AT: Final = "{clusterName} --project={project} --location={location}"
_UPDATE: Final = f"gcloud container clusters update {_AT}"
# What gcloud calls an update of labels replaces them all: so those that are there go along. Where they cannot be read,
# the comma that is left over makes gcloud refuse.
_LABELS: Final = output(
    [*words(f"gcloud container clusters describe {_AT}"), '--format=value(resourceLabels.list(separator=","))']
)
_POOL: Final = "default-pool"
_CONDITIONS: Final[Mapping[str, Condition]] = {
    "RUNNING": Condition.SETTLED,
    "PROVISIONING": Condition.CREATING,
    "RECONCILING": Condition.CHANGING,
    "STOPPING": Condition.DYING,
    "ERROR": Condition.BROKEN,
    "DEGRADED": Condition.BROKEN,
}
# One change a call. The version comes last: it takes longest, and keeps everything else waiting.
_ORDER: Final = ("masterAuthorizedNetworks", "releaseChannel", "logging", "version")


class GcpGke(GcpComponent):
    """A Kubernetes cluster kept by Google. Deleting it leaves its volumes' disks and its load balancers behind."""

    type = "NetworkAndCompute.PaaS.GcpGke"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in project and location; the component's id if not given.",
    )
    location: Location = parameter(immutable=True, description="Region or zone it runs in.")
    version: str | None = parameter(
        default=None,
        pattern=r"^1\.\d+$",
        description="Kubernetes version of the control plane, such as 1.33; raised one minor version at a time.",
    )
    release_channel: Literal["RAPID", "REGULAR", "STABLE", "EXTENDED", "UNSPECIFIED"] | None = parameter(
        default=None, description="Channel from which Google raises versions by itself; Google starts with REGULAR."
    )
    autopilot: bool = parameter(default=False, immutable=True, description="Whether Google keeps the nodes, too.")
    node_count: int | None = parameter(
        default=None, immutable=True, ge=1, description="Nodes per zone it starts with; not for Autopilot."
    )
    node_machine_type: str | None = parameter(
        default=None,
        immutable=True,
        description="Size of the nodes it starts with; not for Autopilot.",
        examples=["e2-medium"],
    )
    service_account: str | None = parameter(
        default=None,
        immutable=True,
        pattern=r"^[^@\s]+@[^@\s]+$",
        description="Email of the service account its nodes act as; the project's default one if not given.",
    )
    network: Reference[GcpVpc] | None = parameter(
        default=None,
        immutable=True,
        reference=(GcpVpc.type, "networkPath"),
        description="The network it is in; without one, the network `default`.",
    )
    subnetwork: Reference[GcpSubnet] | None = parameter(
        default=None,
        immutable=True,
        reference=(GcpSubnet.type, "subnetworkPath"),
        description="The subnet its nodes are in.",
    )
    private_nodes: bool | None = parameter(
        default=None,
        immutable=True,
        description="Whether its nodes have no public addresses; Google starts with false.",
    )
    master_authorized_networks: list[Network] | None = parameter(
        default=None,
        compare="cidrs",
        description="Networks from which its API is reached; without any, all are let in.",
    )
    logging: list[LogComponent] | None = parameter(
        default=None,
        compare="unordered",
        description="Whose logs are kept; Google starts with SYSTEM_COMPONENTS, WORKLOADS.",
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return resource_name(name)


class GcpGkeOffer(GcpOffer[GcpGke]):
    """How clusters are read and changed."""

    component = GcpGke
    title = "GKE cluster"
    service = "container"
    rights = tuple(f"container.clusters.{verb}" for verb in ("create", "delete", "get", "list", "update"))
    place = ("location",)
    holds_data = True
    # cloud.google.com/kubernetes-engine/docs/concepts/network-isolation: an address, or a name below gke.goog.
    cluster_addresses = Addresses((r"([a-z0-9-]+\.)+gke\.goog",), has_ips=True)
    outputs: ClassVar[Mapping[str, str]] = {
        "clusterName": "name of the cluster",
        "clusterId": "id that no other cluster will ever have",
        "selfLink": "its address in Google's API",
        "project": "project it is in",
        "location": "region or zone it runs in",
        "status": "PROVISIONING, RUNNING, RECONCILING, STOPPING, ERROR or DEGRADED",
        "endpoint": "address of its API, once it has one",
        "certificateAuthorityData": "certificate of its API's authority, in base64",
        "currentMasterVersion": "version its control plane runs",
    }
    glass = GlassCommands(
        break_glass=[f"{_UPDATE} --remove-labels={MANAGED_BY}"],
        readopt=[[run([*words(_UPDATE), word("--update-labels=", _LABELS, f",{BOTH}")])]],
        caveat=(
            "`--update-labels` alone would take everybody else's labels off; "
            "of a cluster without any label, leave the part in $( ) and its comma out"
        ),
    )
    entry = Entry(
        commands=["gcloud container clusters get-credentials {clusterName} --location={location} --project={project}"],
        context="gke_{project}_{location}_{clusterName}",
    )
    guard = (
        "the cluster's etag on every change and the fingerprint on labels; a deletion has no precondition: "
        "its window is the one call after a fresh read"
    )

    def collection(self, cloud: Gcp) -> str:
        """All clusters of the location."""
        return f"/v1/projects/{cloud.project}/locations/{cloud.place}/clusters"

    def listed(self, cloud: Gcp) -> Iterator[Raw]:
        """All clusters of the location, in one answer: Google knows no pages here."""
        for page in cloud.pages(self.service, self.collection(cloud), "clusters"):
            yield from page

    def enter(self, cloud: Gcp, name: str) -> Access | None:
        """By a token of the credentials that Google's own tools find."""
        found = cloud.find(self.service, f"{self.collection(cloud)}/{name}")
        if found is None:
            return None
        authority = (found.get("masterAuth") or {}).get("clusterCaCertificate")
        context = f"gke_{cloud.project}_{cloud.place}_{name}"
        return Access(context, f"https://{found.get('endpoint')}", str(authority or ""), GoogleTokens().token)

    def sighting(self, cloud: Gcp, raw: Raw) -> Sighting:
        """What a cluster shows."""
        name, status = raw["name"], interned(raw["status"])
        labels = labels_of(raw.get("resourceLabels"))
        condition = _CONDITIONS.get(status, Condition.CHANGING)
        location = interned(cloud.place)
        optional = {
            "endpoint": raw.get("endpoint"),
            "certificateAuthorityData": (raw.get("masterAuth") or {}).get("clusterCaCertificate"),
            "currentMasterVersion": raw.get("currentMasterVersion"),
        }
        said = "; ".join(one["message"] for one in raw.get("conditions") or () if one.get("message"))
        return Sighting(
            type=GcpGke.type,
            name=name,
            resource_id=name,
            incarnation=raw.get("id", ""),
            protocol=ProtocolTags.from_mapping(labels),
            tags=labels,
            actual={"location": location, **_actual(cloud, raw)},
            outputs={
                "clusterName": name,
                "clusterId": raw.get("id", ""),
                "selfLink": raw.get("selfLink", ""),
                "project": interned(cloud.project),
                "location": location,
                "status": status,
                **{key: value for key, value in optional.items() if value},
            },
            condition=condition,
            detail="" if condition is Condition.SETTLED else said or status,
        )

    def create(self, cloud: Gcp, wanted: Wanted[GcpGke], tags: ProtocolTags) -> Sighting:
        """Begin to make it, with everything."""
        body = _body(wanted.component, tags)
        cloud.write(self.service, "POST", self.collection(cloud), {"cluster": body})
        return self.sighting(cloud, {**body, "status": "PROVISIONING"})

    def update(self, cloud: Gcp, sighting: Sighting, wanted: Wanted[GcpGke], drift: Collection[str]) -> None:
        """Begin the next change, on the cluster as it is now."""
        name = next((one for one in _ORDER if one in drift), None)
        if name is None:
            return
        raw = self.raw_or_gone(cloud, sighting.name)
        check_unchanged(sighting, raw.get("resourceLabels") or {})
        desired = _desired(name, wanted.component, str(sighting.actual["version"]))
        body = {"update": {**desired, "etag": raw["etag"]}}
        cloud.write(self.service, "PUT", self.path(cloud, sighting.name), body)

    def delete(self, cloud: Gcp, sighting: Sighting) -> None:
        """Delete it; what it made outside itself (disks, load balancers) stays."""
        cloud.remove(self.service, self.path(cloud, sighting.name))

    def tag(self, cloud: Gcp, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Write the whole map, made of the labels that were just read, with their fingerprint (T10)."""
        raw = self.raw_or_gone(cloud, sighting.name)
        labels = raw.get("resourceLabels") or {}
        check_unchanged(sighting, labels)
        body = {"resourceLabels": relabelled(labels, add, remove), "labelFingerprint": raw["labelFingerprint"]}
        cloud.write(self.service, "POST", f"{self.path(cloud, sighting.name)}:setResourceLabels", body)

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What a change of the version means."""
        return version_warnings(drift)


def _authorized(networks: Collection[str]) -> dict[str, Any]:
    return {"enabled": bool(networks), "cidrBlocks": [{"cidrBlock": one} for one in networks]}


def _logging(components: Collection[str]) -> dict[str, Any]:
    return {"componentConfig": {"enableComponents": sorted(components)}}


def _desired(name: str, cluster: GcpGke, actual_version: str) -> dict[str, Any]:
    match name:
        case "masterAuthorizedNetworks":
            return {"desiredMasterAuthorizedNetworksConfig": _authorized(cluster.master_authorized_networks or [])}
        case "releaseChannel":
            return {"desiredReleaseChannel": {"channel": cluster.release_channel}}
        case "logging":
            return {"desiredLoggingConfig": _logging(cluster.logging or [])}
        case _:
            return {"desiredMasterVersion": next_version(actual_version, cluster.version or "")}


def _body(cluster: GcpGke, tags: ProtocolTags) -> dict[str, Any]:
    account = {"serviceAccount": cluster.service_account} if cluster.service_account is not None else {}
    config = {
        **({"machineType": cluster.node_machine_type} if cluster.node_machine_type is not None else {}),
        **account,
    }
    pool: dict[str, Any] = {"name": _POOL, "initialNodeCount": cluster.node_count or 1}
    if config:
        pool["config"] = config
    networks, logging = cluster.master_authorized_networks, cluster.logging
    optional: dict[str, Any] = {
        "initialClusterVersion": cluster.version,
        "releaseChannel": cluster.release_channel and {"channel": cluster.release_channel},
        "network": cluster.network and reference_id(cluster.network),
        "subnetwork": cluster.subnetwork and reference_id(cluster.subnetwork),
        "privateClusterConfig": cluster.private_nodes is not None and {"enablePrivateNodes": cluster.private_nodes},
        "masterAuthorizedNetworksConfig": networks is not None and _authorized(networks),
        "loggingConfig": logging is not None and _logging(logging),
        # Of the nodes that Google keeps itself, no pool says it.
        "autoscaling": cluster.autopilot and account and {"autoprovisioningNodeDefaults": account},
    }
    return {
        "name": cluster.name,
        "resourceLabels": tags.to_mapping(),
        **({"autopilot": {"enabled": True}} if cluster.autopilot else {"nodePools": [pool]}),
        **{key: value for key, value in optional.items() if value},
    }


def _actual(cloud: Gcp, raw: Raw) -> dict[str, Any]:
    pools = raw.get("nodePools") or ()
    pool: Raw = next((one for one in pools if one["name"] == _POOL), {})
    authorized = raw.get("masterAuthorizedNetworksConfig") or {}
    components = ((raw.get("loggingConfig") or {}).get("componentConfig") or {}).get("enableComponents")
    network = raw.get("networkConfig") or {}
    defaults = (raw.get("autoscaling") or {}).get("autoprovisioningNodeDefaults") or {}
    version = str(raw.get("currentMasterVersion") or raw.get("initialClusterVersion") or "")
    return {
        "version": ".".join(version.split(".")[:2]) or None,
        "releaseChannel": (raw.get("releaseChannel") or {}).get("channel") or "UNSPECIFIED",
        "autopilot": bool((raw.get("autopilot") or {}).get("enabled")),
        "nodeCount": pool.get("initialNodeCount"),
        "nodeMachineType": (pool.get("config") or {}).get("machineType"),
        "serviceAccount": (pool.get("config") or defaults).get("serviceAccount"),
        "network": network.get("network") or _whole(cloud, "global/networks", raw.get("network")),
        "subnetwork": network.get("subnetwork"),
        "privateNodes": bool((raw.get("privateClusterConfig") or {}).get("enablePrivateNodes")),
        "masterAuthorizedNetworks": sorted(one["cidrBlock"] for one in authorized.get("cidrBlocks") or ()),
        "logging": sorted(components or ()),
    }


def _whole(cloud: Gcp, where: str, name: Any) -> str | None:
    """Return a network that is given by its bare name as a path."""
    if not name:
        return None
    return str(name) if "/" in str(name) else f"projects/{cloud.project}/{where}/{name}"
