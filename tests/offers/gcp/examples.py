"""A complete valid declaration of every type of Google Cloud with its parents, other values for its
parameters, and how a person would edit each of them.

Plain data for suites that run over the whole registry; nothing here asserts anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.gcp.bucket import GcpGcsBucket
from fractal_cloud.offers.gcp.cloud_run import GcpCloudRun
from fractal_cloud.offers.gcp.firewall import GcpFirewall
from fractal_cloud.offers.gcp.gke import GcpGke
from fractal_cloud.offers.gcp.network import GcpVpc
from fractal_cloud.offers.gcp.postgres import GcpPostgresDbms
from fractal_cloud.offers.gcp.subnet import GcpSubnet
from fractal_cloud.offers.gcp.vm import GcpVm
from tests.offers.gcp.person import REGION, ZONE, GcpPerson

Edit = Callable[[GcpPerson, str, str, Any], None]
"""Edit one parameter of the resource of a name."""


@dataclass(frozen=True)
class Example:
    """``components``: declarations in dependency order, the last one is under test."""

    components: list[dict[str, Any]]
    changes: dict[str, Any]
    edit: Edit
    immutable_changes: Mapping[str, Any]


def _component(kind: type[Component], component_id: str, **parameters: Any) -> dict[str, Any]:
    return {"id": component_id, "type": kind.type, "provider": kind.provider, "parameters": parameters}


# --- a person's edits


def _edit_machine(person: GcpPerson, name: str, parameter: str, value: Any) -> None:
    here = person.instance(name)
    raw = person.call("GET", here)
    match parameter:
        case "deletionProtection":
            person.call("POST", f"{here}/setDeletionProtection", deletionProtection=str(value).lower())
        case "networkTags":
            person.call("POST", f"{here}/setTags", {"items": value, "fingerprint": raw["tags"]["fingerprint"]})
        case "startupScript":
            metadata = {
                "fingerprint": raw["metadata"]["fingerprint"],
                "items": [{"key": "startup-script", "value": value}],
            }
            person.call("POST", f"{here}/setMetadata", metadata)
        case "externalIP":
            person.call("POST", f"{here}/addAccessConfig", {"name": "mine"}, networkInterface="nic0")
        case "state":
            person.call("POST", f"{here}/stop")
        case _:
            person.call("POST", f"{here}/stop")
            if parameter == "machineType":
                person.call("POST", f"{here}/setMachineType", {"machineType": f"zones/{ZONE}/machineTypes/{value}"})
            else:
                person.call("POST", f"{here}/setServiceAccount", {"email": value, "scopes": []})
            person.call("POST", f"{here}/start")


def _edit_bucket(person: GcpPerson, name: str, parameter: str, value: Any) -> None:
    bodies: dict[str, Any] = {
        "storageClass": {"storageClass": value},
        "versioning": {"versioning": {"enabled": value}},
        "uniformBucketLevelAccess": {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": value}}},
        "publicAccessPrevention": {"iamConfiguration": {"publicAccessPrevention": value}},
        "softDeleteSeconds": {"softDeletePolicy": {"retentionDurationSeconds": str(value)}},
    }
    person.call("PATCH", person.bucket(name), bodies[parameter])


def _edit_service(person: GcpPerson, name: str, parameter: str, value: Any) -> None:
    here = person.service(name)
    raw = person.call("GET", here)
    template = raw["template"]
    container = template["containers"][0]
    match parameter:
        case "containerPort":
            container["ports"] = [{"containerPort": value}]
        case "env":
            container["env"] = [{"name": key, "value": text} for key, text in value.items()]
        case "cpu" | "memory":
            container["resources"]["limits"][parameter] = value
        case "minInstances":
            template["scaling"]["minInstanceCount"] = value
        case "maxInstances":
            template["scaling"]["maxInstanceCount"] = value
        case "concurrency":
            template["maxInstanceRequestConcurrency"] = value
        case "timeoutSeconds":
            template["timeout"] = f"{value}s"
        case "serviceAccount":
            template["serviceAccount"] = value
        case "ingress":
            raw["ingress"] = value
        case _:
            container[parameter] = value
    person.call("PATCH", here, raw, updateMask="template,ingress")


def _edit_cluster(person: GcpPerson, name: str, parameter: str, value: Any) -> None:
    updates: dict[str, Any] = {
        "version": lambda: {"desiredMasterVersion": value},
        "releaseChannel": lambda: {"desiredReleaseChannel": {"channel": value}},
        "logging": lambda: {"desiredLoggingConfig": {"componentConfig": {"enableComponents": value}}},
        "masterAuthorizedNetworks": lambda: {
            "desiredMasterAuthorizedNetworksConfig": {"enabled": True, "cidrBlocks": [{"cidrBlock": o} for o in value]}
        },
    }
    person.call("PUT", person.cluster(name), {"update": updates[parameter]()})


def _edit_database(person: GcpPerson, name: str, parameter: str, value: Any) -> None:
    settings: dict[str, Any] = {
        "tier": lambda: {"tier": value},
        "edition": lambda: {"edition": value},
        "diskSizeGb": lambda: {"dataDiskSizeGb": str(value)},
        "storageAutoResize": lambda: {"storageAutoResize": value},
        "storageAutoResizeLimit": lambda: {"storageAutoResizeLimit": str(value)},
        "availabilityType": lambda: {"availabilityType": value},
        "backupEnabled": lambda: {"backupConfiguration": {"enabled": value}},
        "publicIP": lambda: {"ipConfiguration": {"ipv4Enabled": value}},
        "databaseFlags": lambda: {"databaseFlags": [{"name": key, "value": text} for key, text in value.items()]},
        "deletionProtection": lambda: {"deletionProtectionEnabled": value},
    }
    person.call("PATCH", person.database(name), {"settings": settings[parameter]()})


def _edit_network(person: GcpPerson, name: str, parameter: str, value: Any) -> None:
    body = {"routingConfig": {"routingMode": value}} if parameter == "routingMode" else {parameter: value}
    person.call("PATCH", person.network(name), body)


def _edit_subnet(person: GcpPerson, name: str, parameter: str, value: Any) -> None:
    person.call("PATCH", person.subnet(name), {parameter: value})


def _edit_firewall(person: GcpPerson, name: str, parameter: str, value: Any) -> None:
    person.call("PATCH", person.firewall(name), {"name": name, parameter: value})


# --- declarations

VPC = _component(GcpVpc, "net", name="default")
INNER_VPC = _component(GcpVpc, "inner-net", name="inner")
SUBNET = _component(GcpSubnet, "subnet", name="default", region=REGION, network="net")
INNER_SUBNET = _component(GcpSubnet, "inner-subnet", name="inner", region=REGION, network="inner-net")
PLACES = [VPC, INNER_VPC, SUBNET, INNER_SUBNET]
IMAGES = "projects/debian-cloud/global/images"
ACCOUNT = "runner@fractal-sandbox.iam.gserviceaccount.com"
OTHER_ACCOUNT = "another@fractal-sandbox.iam.gserviceaccount.com"

EXAMPLES: dict[type[Component], Example] = {
    GcpVpc: Example(
        components=[
            _component(GcpVpc, "net", name="default", autoCreateSubnetworks=True, routingMode="REGIONAL", mtu=1460)
        ],
        changes={"routingMode": "GLOBAL", "mtu": 1500},
        edit=_edit_network,
        immutable_changes={"autoCreateSubnetworks": False},
    ),
    GcpSubnet: Example(
        components=[
            VPC,
            _component(
                GcpSubnet,
                "subnet",
                name="default",
                region=REGION,
                network="net",
                ipCidrRange="10.128.0.0/20",
                privateIpGoogleAccess=False,
            ),
        ],
        changes={"privateIpGoogleAccess": True},
        edit=_edit_subnet,
        immutable_changes={},
    ),
    GcpFirewall: Example(
        components=[
            VPC,
            _component(
                GcpFirewall,
                "let-in",
                network="net",
                direction="INGRESS",
                priority=1000,
                sourceRanges=["192.0.2.0/24"],
                targetTags=["web"],
                allowed=["tcp:443", "icmp"],
                denied=[],
                disabled=False,
            ),
        ],
        changes={"priority": 900, "sourceRanges": ["0.0.0.0/0"], "targetTags": ["db"], "disabled": True},
        edit=_edit_firewall,
        immutable_changes={},
    ),
    GcpVm: Example(
        components=[
            *PLACES,
            _component(
                GcpVm,
                "box",
                zone=ZONE,
                machineType="e2-medium",
                image=f"{IMAGES}/debian-12-bookworm-v20250610",
                diskSizeGb=20,
                subnetwork="subnet",
                externalIP=False,
                networkTags=["web", "db"],
                startupScript="#!/bin/sh\necho hello",
                serviceAccount=ACCOUNT,
                provisioningModel="STANDARD",
                deletionProtection=False,
                state="running",
            ),
        ],
        changes={
            "machineType": "e2-standard-2",
            "networkTags": ["web"],
            "startupScript": "#!/bin/sh\necho goodbye",
            "externalIP": True,
            "serviceAccount": OTHER_ACCOUNT,
            "state": "stopped",
            "deletionProtection": True,
        },
        edit=_edit_machine,
        immutable_changes={
            "image": f"{IMAGES}/debian-13-trixie-v20250801",
            "diskSizeGb": 30,
            "subnetwork": "inner-subnet",
            "provisioningModel": "SPOT",
        },
    ),
    GcpCloudRun: Example(
        components=[
            _component(
                GcpCloudRun,
                "shop",
                region=REGION,
                image="europe-docker.pkg.dev/shop/images/shop:1.4",
                containerPort=8080,
                env={"MODE": "live", "REGION": "north"},
                cpu="1",
                memory="512Mi",
                command=["shop", "--serve"],
                minInstances=0,
                maxInstances=5,
                concurrency=80,
                timeoutSeconds=60,
                serviceAccount=ACCOUNT,
                ingress="INGRESS_TRAFFIC_ALL",
            )
        ],
        changes={
            "image": "europe-docker.pkg.dev/shop/images/shop:1.5",
            "containerPort": 9090,
            "env": {"MODE": "test", "EXTRA": ""},
            "cpu": "2",
            "memory": "1Gi",
            "command": ["shop"],
            "minInstances": 1,
            "maxInstances": 7,
            "concurrency": 10,
            "timeoutSeconds": 120,
            "serviceAccount": OTHER_ACCOUNT,
            "ingress": "INGRESS_TRAFFIC_INTERNAL_ONLY",
        },
        edit=_edit_service,
        immutable_changes={},
    ),
    GcpGcsBucket: Example(
        components=[
            _component(
                GcpGcsBucket,
                "photos",
                location="EU",
                storageClass="STANDARD",
                versioning=True,
                uniformBucketLevelAccess=True,
                publicAccessPrevention="enforced",
                softDeleteSeconds=604_800,
            )
        ],
        changes={
            "storageClass": "NEARLINE",
            "versioning": False,
            "uniformBucketLevelAccess": False,
            "publicAccessPrevention": "inherited",
            "softDeleteSeconds": 0,
        },
        edit=_edit_bucket,
        immutable_changes={"location": "US"},
    ),
    GcpGke: Example(
        components=[
            *PLACES,
            _component(
                GcpGke,
                "kube",
                location=REGION,
                version="1.31",
                releaseChannel="REGULAR",
                autopilot=False,
                nodeCount=2,
                nodeMachineType="e2-standard-2",
                serviceAccount=ACCOUNT,
                network="net",
                subnetwork="subnet",
                privateNodes=True,
                masterAuthorizedNetworks=["192.0.2.0/24"],
                logging=["SYSTEM_COMPONENTS"],
            ),
        ],
        changes={
            "releaseChannel": "STABLE",
            "masterAuthorizedNetworks": ["192.0.2.0/24", "198.51.100.0/24"],
            "logging": ["SYSTEM_COMPONENTS", "WORKLOADS"],
            "version": "1.32",
        },
        edit=_edit_cluster,
        immutable_changes={
            "autopilot": True,
            "nodeCount": 3,
            "serviceAccount": OTHER_ACCOUNT,
            "nodeMachineType": "e2-standard-4",
            "network": "inner-net",
            "subnetwork": "inner-subnet",
            "privateNodes": False,
        },
    ),
    GcpPostgresDbms: Example(
        components=[
            _component(
                GcpPostgresDbms,
                "orders",
                region=REGION,
                databaseVersion="POSTGRES_16",
                tier="db-custom-2-7680",
                edition="ENTERPRISE",
                diskSizeGb=20,
                storageAutoResize=False,
                storageAutoResizeLimit=100,
                availabilityType="ZONAL",
                backupEnabled=True,
                publicIP=False,
                databaseFlags={"max_connections": "200"},
                deletionProtection=False,
            )
        ],
        changes={
            "tier": "db-custom-4-15360",
            "edition": "ENTERPRISE_PLUS",
            "diskSizeGb": 40,
            "storageAutoResize": True,
            "storageAutoResizeLimit": 200,
            "availabilityType": "REGIONAL",
            "backupEnabled": False,
            "publicIP": True,
            "databaseFlags": {"max_connections": "100", "log_connections": "on"},
            "deletionProtection": True,
        },
        edit=_edit_database,
        immutable_changes={"region": "europe-west3", "databaseVersion": "POSTGRES_17"},
    ),
}
