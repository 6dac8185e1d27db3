"""Compute Engine machines: found by their name, unique in project and zone.

What Google calls TERMINATED is a stopped machine, and none that is dead: a deleted one is simply not there. The nodes
of a GKE cluster bear copies of its labels, ours among them, and are never taken for machines that somebody declared.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal
from uuid import NAMESPACE_URL, uuid5

from pydantic import field_validator

from fractal_cloud.model.component import Reference, parameter, reference_id
from fractal_cloud.model.errors import Protected
from fractal_cloud.model.referable import SensitiveText, text_of
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.gcp.resources import GcpOffer, Raw
from fractal_cloud.offers.gcp.subnet import GcpSubnet
from fractal_cloud.offers.gcp.tags import check_unchanged, glass, interned, labels_of, relabelled
from fractal_cloud.offers.gcp.value_types import GcpComponent, Zone, path_of, resource_name
from fractal_cloud.offers.gcp.vm_changes import CHANGED_WHEN_STOPPED, ORDER, attempt, change
from fractal_cloud.offers.gcp.vm_facts import STARTUP_SCRIPT, access_config, actual, boot_disk, first_interface
from fractal_cloud.offers.link_types import WorkloadSource
from fractal_cloud.offers.offer import Wanted

_AT = "{instanceName} --project={project} --zone={zone}"
NODE_LABEL = "goog-gke-node"
# Google's status: our run state, and whether Google is at work.
_STATES: Mapping[str, tuple[str, Condition]] = {
    "PENDING": ("running", Condition.CREATING),
    "PROVISIONING": ("running", Condition.CREATING),
    "STAGING": ("running", Condition.CHANGING),
    "RUNNING": ("running", Condition.SETTLED),
    "REPAIRING": ("running", Condition.CHANGING),
    "PENDING_STOP": ("stopped", Condition.CHANGING),
    "STOPPING": ("stopped", Condition.CHANGING),
    "DEPROVISIONING": ("stopped", Condition.CHANGING),
    "STOPPED": ("stopped", Condition.SETTLED),
    "SUSPENDING": ("stopped", Condition.CHANGING),
    "SUSPENDED": ("suspended", Condition.SETTLED),
    "TERMINATED": ("stopped", Condition.SETTLED),
}


class GcpVm(GcpComponent, WorkloadSource):
    """A virtual machine."""

    type = "NetworkAndCompute.IaaS.GcpVm"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in project and zone; the component's id if not given.",
    )
    zone: Zone = parameter(immutable=True, description="Zone it runs in.")
    machine_type: str = parameter(
        description="Its size. Changing it stops the machine and starts it again.",
        pattern=r"^[a-z0-9-]+$",
        examples=["e2-medium"],
    )
    image: str = parameter(
        immutable=True,
        swept=True,
        pattern=r"^projects/[^/]+/global/images/[^/]+$",
        examples=["projects/debian-cloud/global/images/debian-12-bookworm-v20250610"],
        description="The image its boot disk is made of; no family, because that would be another image every month.",
    )
    disk_size_gb: int | None = parameter(
        default=None,
        immutable=True,
        ge=10,
        le=65_536,
        description="Size of its boot disk in GB; that of the image if not given.",
    )
    subnetwork: Reference[GcpSubnet] | None = parameter(
        default=None,
        immutable=True,
        reference=(GcpSubnet.type, "subnetworkPath"),
        description="The subnet it is in; without one, the network `default`.",
    )
    external_ip: bool | None = parameter(
        default=None,
        declared_as="externalIP",
        description="Whether it has a public address, a passing one; we start with false.",
    )
    network_tags: list[str] | None = parameter(
        default=None,
        compare="unordered",
        description="Network tags, by which firewall rules find it. They are no labels.",
    )
    startup_script: SensitiveText | None = parameter(
        default=None, lines=True, sensitive=True, max_length=262_144, description="Script that runs at every start."
    )
    service_account: str | None = parameter(
        default=None,
        pattern=r"^[^@\s]+@[^@\s]+$",
        description="Email of the service account it acts as. Changing it stops the machine and starts it again.",
    )
    provisioning_model: Literal["STANDARD", "SPOT"] | None = parameter(
        default=None,
        immutable=True,
        description="Whether Google may take it away for a lower price; Google starts with STANDARD.",
    )
    deletion_protection: bool | None = parameter(
        default=None, description="Whether Google refuses to delete it, also to us; Google starts with false."
    )
    state: Literal["running", "stopped"] = parameter(
        default="running",
        enforced=True,
        description="Whether it runs. Listed in ignoreDrift, it is never stopped: what needs that waits until you do.",
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return resource_name(name)


class GcpVmOffer(GcpOffer[GcpVm]):
    """How machines are read and changed."""

    component = GcpVm
    title = "Compute Engine instance"
    service = "compute"
    rights = (
        *(f"compute.instances.{verb}" for verb in ("create", "delete", "get", "list", "resume", "start", "stop")),
        *(f"compute.instances.set{what}" for what in ("DeletionProtection", "Labels", "MachineType", "Metadata")),
        *(f"compute.instances.set{what}" for what in ("ServiceAccount", "Tags")),
        "compute.instances.addAccessConfig",
        "compute.instances.deleteAccessConfig",
        "compute.disks.create",
        "compute.disks.get",
        "compute.images.useReadOnly",
        "compute.subnetworks.use",
        "compute.subnetworks.useExternalIp",
    )
    place = ("zone",)
    rename_changes_id = True  # `gcloud compute instances set-name`
    outputs: ClassVar[Mapping[str, str]] = {
        "instanceName": "name of the machine",
        "instanceId": "number that no other machine will ever have",
        "selfLink": "its address in Google's API",
        "project": "project it is in",
        "zone": "zone it runs in",
        "status": "Google's status: PROVISIONING, STAGING, RUNNING, STOPPING, TERMINATED (stopped), …",
        "privateIp": "its private address",
        "networkIP": "its private address, under the vendor's name",
        "natIP": "its public address, while it has one",
        "networkPath": "its network as `projects/…`",
        "cpuPlatform": "processor it runs on",
        "lastStartTimestamp": "when it was last started",
        "lastStopTimestamp": "when it was last stopped",
    }
    glass = glass(
        f"gcloud compute instances remove-labels {_AT} --labels", f"gcloud compute instances add-labels {_AT} --labels"
    )
    guard = (
        "labels are written with their fingerprint; other writes have no precondition: the window is the one call "
        "after a fresh read"
    )

    def collection(self, cloud: Gcp) -> str:
        """All machines of the zone."""
        return f"/projects/{cloud.project}/zones/{cloud.place}/instances"

    def listed(self, cloud: Gcp) -> Iterator[Raw]:
        """All machines of the zone, 500 a call."""
        for page in cloud.pages(self.service, self.collection(cloud), "items", maxResults="500"):
            yield from page

    def sweep(self, cloud: Gcp, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """The image, which only the boot disk remembers."""
        return {name: self._image(cloud, self.raw_or_gone(cloud, sighting.name)) for name in names}

    def sweep_calls(self, names: Collection[str]) -> int:
        """The machine, for the name of its boot disk, and that disk."""
        return 2 * len(names)

    def read(self, cloud: Gcp, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One machine by its name."""
        raw = self.raw(cloud, resource_id)
        if raw is None:
            return None
        # Whatever its labels say by now: a label that somebody adds makes no machine vanish.
        found = self._shown(cloud, raw, labels_of(raw.get("labels")))
        if not sweep:
            return found
        return replace(found, actual={**found.actual, **{name: self._image(cloud, raw) for name in sweep}})

    def _image(self, cloud: Gcp, raw: Raw) -> str | None:
        source = path_of(boot_disk(raw).get("source"))
        disk = cloud.find(self.service, f"/{source}") if source else None
        return path_of((disk or {}).get("sourceImage"))

    def sighting(self, cloud: Gcp, raw: Raw) -> Sighting | None:
        """What a machine shows; None where it is a node of a cluster, whose labels are a copy of the cluster's."""
        labels = labels_of(raw.get("labels"))
        return None if NODE_LABEL in labels else self._shown(cloud, raw, labels)

    def _shown(self, cloud: Gcp, raw: Raw, labels: Mapping[str, str]) -> Sighting:
        name, status = raw["name"], interned(raw["status"])
        run_state, condition = _STATES.get(status, (None, Condition.CHANGING))
        interface = first_interface(raw)
        optional = {
            "privateIp": interface.get("networkIP"),
            "networkIP": interface.get("networkIP"),
            "natIP": access_config(raw).get("natIP"),
            "networkPath": path_of(interface.get("network")),
            "cpuPlatform": raw.get("cpuPlatform"),
            "lastStartTimestamp": raw.get("lastStartTimestamp"),
            "lastStopTimestamp": raw.get("lastStopTimestamp"),
        }
        zone = interned(cloud.place)
        return Sighting(
            type=GcpVm.type,
            name=name,
            resource_id=name,
            incarnation=str(raw.get("id", "")),
            protocol=ProtocolTags.from_mapping(labels),
            tags=labels,
            actual={"zone": zone, **({"state": run_state} if run_state else {}), **actual(raw)},
            outputs={
                "instanceName": name,
                "instanceId": str(raw.get("id", "")),
                "selfLink": raw.get("selfLink", ""),
                "project": interned(cloud.project),
                "zone": zone,
                "status": status,
                **{key: value for key, value in optional.items() if value},
            },
            condition=condition,
            detail="" if condition is Condition.SETTLED else status,
        )

    def create(self, cloud: Gcp, wanted: Wanted[GcpVm], tags: ProtocolTags) -> Sighting:
        """Begin to make it. The same token never makes a second one, and returns what became of the first try."""
        body = _body(wanted.component, cloud, tags)
        request = {"requestId": str(uuid5(NAMESPACE_URL, wanted.token))} if wanted.token else {}
        begun = cloud.write(self.service, "POST", self.collection(cloud), body, request)
        made = {**body, "id": begun.get("targetId", ""), "status": "PROVISIONING"}
        return self._shown(cloud, made, tags.to_mapping())

    def update(self, cloud: Gcp, sighting: Sighting, wanted: Wanted[GcpVm], drift: Collection[str]) -> None:
        """Make the next call needed: stop, change, start are three, each found to be next by what was seen."""
        name = next((one for one in ORDER if one in drift), None)
        if name is None:
            return
        here = self.path(cloud, sighting.name)
        is_up = sighting.actual["state"] == "running"
        if name in CHANGED_WHEN_STOPPED and is_up:
            wanted.may_stop_for(name, sighting.name)
            cloud.write(self.service, "POST", f"{here}/stop")
        elif name == "state":
            wakes = "resume" if sighting.actual["state"] == "suspended" else "start"
            verb = wakes if wanted.component.state == "running" else "stop"
            cloud.write(
                self.service, "POST", f"{here}/{verb}", query={"requestId": attempt(sighting, verb, time.time())}
            )
        else:
            raw = self.raw_or_gone(cloud, sighting.name)  # for the fingerprint of what is changed
            check_unchanged(sighting, raw.get("labels") or {})
            verb, query, body = change(name, wanted.component.model_dump(mode="json", by_alias=True), raw, cloud.place)
            cloud.write(self.service, "POST", f"{here}/{verb}", body, query)

    def delete(self, cloud: Gcp, sighting: Sighting) -> None:
        """Delete it, and the boot disk with it; deletion protection is respected."""
        if sighting.actual["deletionProtection"]:
            raise Protected(
                f"machine {sighting.name!r} has deletionProtection: switch it off, and it is tried again",
                code="DeletionProtection",
            )
        cloud.remove(self.service, self.path(cloud, sighting.name))

    def tag(self, cloud: Gcp, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Write the whole map, made of the labels that were just read, with their fingerprint (T10)."""
        raw = self.raw_or_gone(cloud, sighting.name)
        labels = raw.get("labels") or {}
        check_unchanged(sighting, labels)
        body = {"labels": relabelled(labels, add, remove), "labelFingerprint": raw["labelFingerprint"]}
        cloud.write(self.service, "POST", f"{self.path(cloud, sighting.name)}/setLabels", body)

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What stops the machine."""
        return [
            f"changing {name} stops the machine and starts it again" for name in CHANGED_WHEN_STOPPED if name in drift
        ]


def _body(machine: GcpVm, cloud: Gcp, tags: ProtocolTags) -> dict[str, Any]:
    interface: dict[str, Any] = {"network": f"projects/{cloud.project}/global/networks/default"}
    if machine.subnetwork:
        interface = {"subnetwork": reference_id(machine.subnetwork)}
    if machine.external_ip:
        interface["accessConfigs"] = [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}]
    made_of: dict[str, Any] = {"sourceImage": machine.image}
    if machine.disk_size_gb is not None:
        made_of["diskSizeGb"] = str(machine.disk_size_gb)
    body: dict[str, Any] = {
        "name": machine.name,
        "machineType": f"zones/{cloud.place}/machineTypes/{machine.machine_type}",
        "labels": tags.to_mapping(),
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": made_of}],
        "networkInterfaces": [interface],
    }
    if machine.network_tags is not None:
        body["tags"] = {"items": machine.network_tags}
    if machine.startup_script is not None:
        body["metadata"] = {"items": [{"key": STARTUP_SCRIPT, "value": text_of(machine.startup_script)}]}
    if machine.service_account is not None:
        scopes = ["https://www.googleapis.com/auth/cloud-platform"]
        body["serviceAccounts"] = [{"email": machine.service_account, "scopes": scopes}]
    if machine.provisioning_model is not None:
        body["scheduling"] = {"provisioningModel": machine.provisioning_model}
    if machine.deletion_protection is not None:
        body["deletionProtection"] = machine.deletion_protection
    return body
