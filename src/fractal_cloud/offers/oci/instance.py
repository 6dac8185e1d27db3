"""Instances: found by their display name in a compartment, of which there may be several equal ones.

A terminated instance stays listed for half a day, tags and all; it counts as absent.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from fractal_cloud.model.component import Reference, parameter, reference_id
from fractal_cloud.model.errors import NotFound
from fractal_cloud.model.referable import SensitiveText, text_of, texts_of
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.offers.oci import vnics
from fractal_cloud.offers.oci.calls import CORE, Item, Oci
from fractal_cloud.offers.oci.core import CoreOffer, OciComponent
from fractal_cloud.offers.oci.subnet import OciSubnet
from fractal_cloud.offers.oci.tags import WARNING, glass
from fractal_cloud.offers.offer import Query, Wanted

KEYS, SCRIPT = "ssh_authorized_keys", "user_data"
# The vendor's state: our run state, and whether OCI is at work.
_RUN_STATES: Mapping[str, str] = {
    "PROVISIONING": "running",
    "RUNNING": "running",
    "STARTING": "running",
    "STOPPING": "stopped",
    "STOPPED": "stopped",
    "TERMINATING": "stopped",
}
_STATES: Mapping[str, Condition] = {
    "PROVISIONING": Condition.CREATING,
    "RUNNING": Condition.SETTLED,
    "STARTING": Condition.CHANGING,
    "STOPPING": Condition.CHANGING,
    "STOPPED": Condition.SETTLED,
    "MOVING": Condition.CHANGING,
    "CREATING_IMAGE": Condition.CHANGING,
    "TERMINATING": Condition.DYING,
}
_REBOOTS = ("shape", "ocpus", "memoryInGBs", "faultDomain")
# In these steps; the run state comes last, once everything else is done.
_STEPS: tuple[frozenset[str], ...] = (frozenset({"metadata"}), frozenset(_REBOOTS), frozenset({"state"}))


class OciInstance(OciComponent):
    """A virtual machine. Its boot volume is kept when it is deleted."""

    type = "NetworkAndCompute.IaaS.OciInstance"

    subnet: Reference[OciSubnet] = parameter(
        immutable=True,
        reference=(OciSubnet.type, "subnetId"),
        description="The subnet of its first network interface; the machine lies in its region, and in its compartment "
        "unless another one is given.",
    )
    availability_domain: str = parameter(
        immutable=True, description="Availability domain it runs in.", examples=["Uocm:EU-FRANKFURT-1-AD-1"]
    )
    fault_domain: str | None = parameter(
        default=None,
        description="Fault domain it runs in. Changing it reboots the machine.",
        examples=["FAULT-DOMAIN-1"],
    )
    image_id: str = parameter(
        immutable=True, description="OCID of the image it starts from.", pattern=r"^ocid1\.image\."
    )
    boot_volume_size_in_gbs: int | None = parameter(
        default=None,
        declared_as="bootVolumeSizeInGBs",
        immutable=True,
        ge=50,
        description="Size of its boot volume, in GB.",
    )
    shape: str = parameter(
        description="Its shape. Changing it reboots the machine.", examples=["VM.Standard.E5.Flex"], min_length=1
    )
    ocpus: float | None = parameter(
        default=None, gt=0, description="Its OCPUs, where the shape is flexible. Changing them reboots the machine."
    )
    memory_in_gbs: float | None = parameter(
        default=None,
        declared_as="memoryInGBs",
        gt=0,
        description="Its memory in GB, where the shape is flexible. Changing it reboots the machine.",
    )
    assign_public_ip: bool | None = parameter(
        default=None,
        immutable=True,
        swept=True,
        description="Whether its first network interface has a public address.",
    )
    ssh_authorized_keys: str | None = parameter(
        default=None, immutable=True, lines=True, description="Public keys of its first user, one a line."
    )
    user_data: SensitiveText | None = parameter(
        default=None,
        immutable=True,
        lines=True,
        sensitive=True,
        max_length=16_384,
        description="Text handed to its first start.",
    )
    metadata: Mapping[str, SensitiveText] | None = parameter(
        default=None,
        sensitive=True,
        description="What the machine can ask its metadata service for, beside keys and user data.",
    )
    state: Literal["running", "stopped"] = parameter(
        default="running",
        enforced=True,
        description="Whether it runs. It is stopped by asking its operating system first.",
    )


class OciInstanceOffer(CoreOffer[OciInstance]):
    """How instances are read and changed."""

    component = OciInstance
    title = "Compute instance"
    collection = "instances"
    rights = (
        "manage instances",
        "read instance-images",
        "use vnics",
        "read vnic-attachments",
        "use volume-family",
    )
    states = _STATES
    outputs: ClassVar[Mapping[str, str]] = {
        "instanceId": "OCID of the instance",
        "region": "region it runs in",
        "compartmentId": "OCID of its compartment",
        "lifecycleState": "PROVISIONING, RUNNING, STOPPING, STOPPED, …",
        "availabilityDomain": "availability domain it runs in",
        "faultDomain": "fault domain it runs in",
        "timeCreated": "when it was made",
        "vnicId": "OCID of its first network interface, once it has one",
        "subnetId": "OCID of the subnet it is in",
        "privateIp": "its private address there",
        "warning": WARNING,
    }
    glass = glass("compute instance", "--instance-id")

    def sightings(self, cloud: Oci, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All living instances of the compartment, a thousand a call; new ones with their network interfaces."""
        found = list(super().sightings(cloud, query))
        seen = [one for one in found if isinstance(one, Sighting)]
        named = [one.resource_id for one in seen if not query.names or one.name in query.names]
        vnics.cache_primary_vnics(cloud, named, with_addresses=bool(query.names))
        for one in found:
            yield _with_vnic(cloud, one) if isinstance(one, Sighting) else one

    def read(self, cloud: Oci, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One instance by its OCID."""
        found = super().read(cloud, resource_id)
        if found is None:
            return None
        vnics.cache_primary_vnics(cloud, [resource_id], with_addresses=True, instanceId=resource_id)
        found = _with_vnic(cloud, found)
        return replace(found, actual={**found.actual, **self.sweep(cloud, found, sweep)}) if sweep else found

    def sweep(self, cloud: Oci, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """Whether it has a public address: each interface shows it, one by one."""
        known = cloud.vnics.get(sighting.resource_id)
        if known is None or "assignPublicIp" not in names:
            return {}
        found = cloud.find(self.service, f"{CORE}/vnics/{known.id}")
        if found is None:
            raise NotFound(f"network interface {known.id!r} cannot be read: it is looked for again")
        return {"assignPublicIp": bool(found[0].get("publicIp"))}

    def sweep_calls(self, names: Collection[str]) -> int:
        """One call, whatever is asked."""
        del names
        return 1

    def actual(self, item: Item) -> dict[str, Any]:
        """What it runs on, and what it was started with."""
        metadata = dict(item.get("metadata") or {})
        keys, script = metadata.pop(KEYS, None), metadata.pop(SCRIPT, None)
        size = item.get("shapeConfig") or {}
        source = item.get("sourceDetails") or {}
        volume = source.get("bootVolumeSizeInGBs")
        return {
            "availabilityDomain": item["availabilityDomain"],
            "faultDomain": item.get("faultDomain"),
            "imageId": source.get("imageId") or item.get("imageId"),
            "shape": item["shape"],
            "ocpus": size.get("ocpus"),
            "memoryInGBs": size.get("memoryInGBs"),
            "sshAuthorizedKeys": keys,
            "userData": None if script is None else b64decode(script).decode("utf-8", "replace"),
            "metadata": metadata,
            **({} if volume is None else {"bootVolumeSizeInGBs": volume}),
            **({"state": _RUN_STATES[item["lifecycleState"]]} if item["lifecycleState"] in _RUN_STATES else {}),
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Its id and where it runs."""
        names = ("availabilityDomain", "faultDomain", "timeCreated")
        return {"instanceId": item["id"], **{name: item.get(name) for name in names}}

    def body(self, cloud: Oci, wanted: Wanted[OciInstance]) -> Item:
        """All but a stopped run state travels in the create call."""
        del cloud
        machine = wanted.component
        source = {"bootVolumeSizeInGBs": machine.boot_volume_size_in_gbs} if machine.boot_volume_size_in_gbs else {}
        public = {} if machine.assign_public_ip is None else {"assignPublicIp": machine.assign_public_ip}
        own = {KEYS: machine.ssh_authorized_keys, SCRIPT: _encoded(text_of(machine.user_data))}
        return {
            "availabilityDomain": machine.availability_domain,
            "faultDomain": machine.fault_domain,
            "shape": machine.shape,
            "shapeConfig": _size(machine) or None,
            "sourceDetails": {"sourceType": "image", "imageId": machine.image_id, **source},
            "createVnicDetails": {"subnetId": reference_id(machine.subnet), **public},
            "metadata": {**texts_of(machine.metadata), **{name: value for name, value in own.items() if value}},
        }

    def update(self, cloud: Oci, sighting: Sighting, wanted: Wanted[OciInstance], drift: Collection[str]) -> None:
        """Make the next call needed: metadata, then what reboots the machine, then its run state."""
        machine = wanted.component
        step = next((step for step in _STEPS if step & set(drift)), frozenset())
        if "state" in step:
            action = "START" if machine.state == "running" else "SOFTSTOP"
            path = f"{CORE}/instances/{sighting.resource_id}"
            cloud.change(self.service, "POST", path, sighting.revision, action=action)
        elif "metadata" in step:
            # The whole map is replaced, and refused unless what cannot change is in it as it is.
            kept = {KEYS: sighting.actual["sshAuthorizedKeys"], SCRIPT: _encoded(sighting.actual["userData"])}
            own = {name: value for name, value in kept.items() if value is not None}
            self.put(cloud, sighting, {"metadata": {**texts_of(machine.metadata), **own}})
        elif step:
            self.put(cloud, sighting, _hardware(machine, drift, sighting.actual))

    def delete(self, cloud: Oci, sighting: Sighting) -> None:
        """Terminate it, and keep its disks: OCI would delete the boot volume with it (O15)."""
        self.remove(cloud, sighting, preserveBootVolume="true", preserveDataVolumesCreatedAtLaunch="true")

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What reboots the machine."""
        return [f"changing {name} reboots the machine" for name in _REBOOTS if name in drift]


def _size(machine: OciInstance) -> dict[str, float]:
    size = {"ocpus": machine.ocpus, "memoryInGBs": machine.memory_in_gbs}
    return {name: value for name, value in size.items() if value is not None}


def _hardware(machine: OciInstance, drift: Collection[str], actual: Mapping[str, Any]) -> Item:
    """What an update of the machine's hardware says: a shape and its size travel together, what did not drift as it is.

    A size that is not declared goes along only where the shape stays: another shape may not have it.
    """
    changed: Item = {}
    if {"shape", "ocpus", "memoryInGBs"} & set(drift):
        changed["shape"] = machine.shape if "shape" in drift else actual["shape"]
        size = _size(machine)
        sizes = {
            name: size[name] if name in drift else actual.get(name)
            for name in ("ocpus", "memoryInGBs")
            if name in drift or name in size or "shape" not in drift
        }
        given = {name: value for name, value in sizes.items() if value is not None}
        if given:
            changed["shapeConfig"] = given
    if "faultDomain" in drift:
        changed["faultDomain"] = machine.fault_domain
    return changed


def _encoded(text: str | None) -> str | None:
    return None if text is None else b64encode(text.encode()).decode()


def _with_vnic(cloud: Oci, sighting: Sighting) -> Sighting:
    known = cloud.vnics.get(sighting.resource_id)
    if known is None:
        return sighting
    address = {"privateIp": known.private_ip} if known.private_ip else {}
    return replace(
        sighting,
        actual={**sighting.actual, "subnet": known.subnet_id},
        outputs={**sighting.outputs, "vnicId": known.id, "subnetId": known.subnet_id, **address},
    )
