"""Virtual machines: found by their name in a resource group.

A machine's network interface and its system disk are made by the very call that makes the machine, and go with it.
Disks and interfaces that people attach later are theirs, and stay.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal

from pydantic import field_validator

from fractal_cloud.model.component import Reference, parameter, reference_id
from fractal_cloud.model.referable import SensitiveText, text_of
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.kinds import DISK, Item, ResourceGroup, ResourceKind, canonical_id, machine_name
from fractal_cloud.offers.azure.resources import OUTPUTS, AzureResource, ResourceOffer, State
from fractal_cloud.offers.azure.subnet import AzureSubnet
from fractal_cloud.offers.azure.vnet import VNET
from fractal_cloud.offers.offer import Wanted

NIC: Final = ResourceKind("Microsoft.Network", "networkInterfaces", "2024-05-01")
VM: Final = ResourceKind("Microsoft.Compute", "virtualMachines", "2024-11-01")

NETWORK_API: Final = "2022-11-01"
_BESIDE: Final = "_networkInterface"
# What the power state says: our run state, and whether Azure is at work.
_POWER: Final[Mapping[str, tuple[str, Condition]]] = {
    "starting": ("running", Condition.CHANGING),
    "running": ("running", Condition.SETTLED),
    "stopping": ("stopped", Condition.CHANGING),
    "stopped": ("stopped", Condition.SETTLED),
    "deallocating": ("stopped", Condition.CHANGING),
    "deallocated": ("stopped", Condition.SETTLED),
}
_IMAGE: Final = ("publisher", "offer", "sku", "version")


class AzureVm(AzureResource):
    """A virtual machine with Linux, one network interface and a system disk of its own."""

    type = "NetworkAndCompute.IaaS.AzureVm"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in the resource group; the component's id if not given.",
    )
    resource_group: ResourceGroup | None = parameter(
        default=None, immutable=True, description="Resource group it lies in; that of its subnet where none is given."
    )
    subnet: Reference[AzureSubnet] = parameter(
        immutable=True, reference=(AzureSubnet.type, "id"), description="The subnet its network interface is in."
    )
    vm_size: str = parameter(
        description="Its size. Changing it stops the machine and starts it again.", examples=["Standard_B2s"]
    )
    image_reference: str = parameter(
        immutable=True,
        pattern=r"^[^:\s]+:[^:\s]+:[^:\s]+:[^:\s]+$",
        description="The image it starts from, as publisher:offer:sku:version.",
        examples=["Canonical:ubuntu-24_04-lts:server:latest"],
    )
    admin_username: str = parameter(default="azureuser", immutable=True, description="Name of its first user.")
    ssh_public_key: str = parameter(
        immutable=True, pattern=r"^(ssh|ecdsa)-\S+ \S+.*$", description="The public key its first user logs in with."
    )
    os_disk_size_gb: int | None = parameter(
        default=None,
        declared_as="osDiskSizeGB",
        immutable=True,
        ge=1,
        le=4095,
        description="Size of its system disk in GiB.",
    )
    zone: str | None = parameter(
        default=None, immutable=True, pattern=r"^[1-3]$", description="Availability zone it is in."
    )
    user_data: SensitiveText | None = parameter(
        default=None,
        swept=True,
        lines=True,
        sensitive=True,
        max_length=49_152,
        description="Text that the machine can ask for.",
    )
    state: Literal["running", "stopped"] = parameter(
        default="running",
        enforced=True,
        description="Whether it runs; stopped means deallocated. Listed in ignoreDrift, it is never stopped: what "
        "needs that waits until you do.",
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return machine_name(name)


class AzureVmOffer(ResourceOffer[AzureVm]):
    """How virtual machines are read and changed."""

    component = AzureVm
    title = "Virtual machine"
    service = "compute"
    kind = VM
    rights = (  # its interface and its disk are made with it and go with it
        *(f"{NIC.type}/{verb}" for verb in ("read", "write", "delete", "join/action")),
        *(f"{DISK.type}/{verb}" for verb in ("read", "write", "delete")),
        f"{VM.type}/start/action",
        f"{VM.type}/deallocate/action",
        f"{VNET.type}/subnets/join/action",
    )
    guard = (
        "changes carry the machine's etag (If-Match); starting, stopping, tag changes and deletions have no "
        "precondition: their window is the one call after a fresh read"
    )
    unguarded = frozenset({"update", "tag", "delete"})
    outputs: ClassVar[Mapping[str, str]] = {
        **OUTPUTS,
        "vmId": "id that no other machine will ever have",
        "powerState": "running, deallocated, starting, …",
        "networkInterfaceId": "id of its network interface",
        "privateIpAddress": "its private address, once it has one",
    }

    # --- reading: the address and the subnet stand on the network interface

    def items(self, cloud: Azure) -> Iterator[Item]:
        """All machines of the group, their interfaces in one list more, and their power in another.

        Azure refuses to list machines with their instance views; it lists the views alone, of the whole subscription.
        """
        machines = list(cloud.list(VM))
        interfaces = {canonical_id(one["id"]): one for one in cloud.list(NIC)} if machines else {}
        views = (
            {canonical_id(one["id"]): _view(one) for one in cloud.everywhere(VM, statusOnly="true")} if machines else {}
        )
        for machine in machines:
            properties = {**(machine.get("properties") or {}), "instanceView": views.get(canonical_id(machine["id"]))}
            yield {**machine, "properties": properties, _BESIDE: interfaces.get(_interface_id(machine))}

    def find(self, cloud: Azure, resource_id: str) -> Item | None:
        """One machine with its power state and its interface."""
        machine = cloud.find(resource_id, VM.version, **{"$expand": "instanceView"})
        if machine is None:
            return None
        interface = cloud.find(_interface_id(machine), NIC.version) if _interface_id(machine) else None
        return {**machine, _BESIDE: interface}

    def sweep(self, cloud: Azure, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """Read the user data, which no list shows."""
        return dict.fromkeys(names, _user_data(cloud, sighting.resource_id))

    def read(self, cloud: Azure, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """Read one machine by its id. Its user data is read first, so that the sighting is as fresh as can be."""
        swept = dict.fromkeys(sweep, _user_data(cloud, resource_id)) if sweep else {}
        found = super().read(cloud, resource_id)
        return found if found is None else replace(found, actual={**found.actual, **swept})

    def actual(self, item: Item) -> dict[str, Any]:
        """What the machine and its interface show."""
        properties = item.get("properties") or {}
        disks = properties.get("storageProfile") or {}
        system = properties.get("osProfile") or {}
        keys = ((system.get("linuxConfiguration") or {}).get("ssh") or {}).get("publicKeys") or ()
        image = disks.get("imageReference") or {}
        known = {
            "vmSize": (properties.get("hardwareProfile") or {}).get("vmSize"),
            "imageReference": ":".join(str(image.get(part) or "") for part in _IMAGE),
            "adminUsername": system.get("adminUsername"),
            "sshPublicKey": next((one["keyData"] for one in keys), None),
            "zone": next(iter(item.get("zones") or ()), None),
            "subnet": _subnet_id(item.get(_BESIDE)),
        }
        # What Azure leaves out is not known, which is no difference: the size of a deallocated machine's disk, and the
        # power, which only the instance's view has.
        if (size := (disks.get("osDisk") or {}).get("diskSizeGB")) is not None:
            known["osDiskSizeGB"] = size
        if (power := _power(item)) in _POWER:
            known["state"] = _POWER[power][0]
        return known

    def shown(self, item: Item) -> dict[str, Any]:
        """Its address and power."""
        addresses = _addresses(item.get(_BESIDE))
        return {
            "vmId": (item.get("properties") or {}).get("vmId"),
            "powerState": _power(item) or None,
            "networkInterfaceId": _interface_id(item) or None,
            "privateIpAddress": next((one.get("privateIPAddress") for one in addresses), None),
        }

    def incarnation_of(self, item: Item) -> str:
        """The id of the machine itself."""
        return str((item.get("properties") or {}).get("vmId") or "")

    def state(self, item: Item) -> State:
        """Its provisioning, and then its power: a start or a stop takes time of its own."""
        condition, detail = super().state(item)
        power = _power(item)
        if condition is Condition.SETTLED and power in _POWER:
            condition = _POWER[power][1]
            detail = "" if condition is Condition.SETTLED else power
        return condition, detail

    # --- writing

    def body(self, wanted: Wanted[AzureVm]) -> Item:
        """The machine with its interface and its disk, both to go with it."""
        machine = wanted.component
        user = machine.admin_username
        keys = [{"path": f"/home/{user}/.ssh/authorized_keys", "keyData": machine.ssh_public_key}]
        disk: Item = {"createOption": "FromImage", "deleteOption": "Delete"}
        if machine.os_disk_size_gb is not None:
            disk["diskSizeGB"] = machine.os_disk_size_gb
        address = {"name": "primary", "properties": {"primary": True, "subnet": {"id": reference_id(machine.subnet)}}}
        interface = {
            "name": f"{machine.name}-nic",
            "properties": {"primary": True, "deleteOption": "Delete", "ipConfigurations": [address]},
        }
        image = dict(zip(_IMAGE, machine.image_reference.split(":"), strict=True))
        properties: Item = {
            "hardwareProfile": {"vmSize": machine.vm_size},
            "storageProfile": {"imageReference": image, "osDisk": disk},
            "osProfile": {
                "computerName": machine.name.replace("_", "-"),
                "adminUsername": user,
                "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": {"publicKeys": keys}},
            },
            "networkProfile": {"networkApiVersion": NETWORK_API, "networkInterfaceConfigurations": [interface]},
        }
        if machine.user_data is not None:
            properties["userData"] = _encoded(text_of(machine.user_data))
        return {"properties": properties, **({"zones": [machine.zone]} if machine.zone else {})}

    def update(self, cloud: Azure, sighting: Sighting, wanted: Wanted[AzureVm], drift: Collection[str]) -> None:
        """Make the next call needed: stop, change, start are three, each found to be next by what was seen."""
        machine = wanted.component
        if "userData" in drift:
            self._patch(cloud, sighting, {"userData": _encoded(text_of(machine.user_data) or "")})
        elif "vmSize" in drift and sighting.actual.get("state") != "stopped":
            wanted.may_stop_for("vmSize", sighting.name)
            cloud.post(f"{sighting.resource_id}/deallocate", VM.version)
        elif "vmSize" in drift:
            self._patch(cloud, sighting, {"hardwareProfile": {"vmSize": machine.vm_size}})
        elif "state" in drift:
            verb = "start" if machine.state == "running" else "deallocate"
            cloud.post(f"{sighting.resource_id}/{verb}", VM.version)

    def _patch(self, cloud: Azure, sighting: Sighting, properties: Item) -> None:
        cloud.patch(sighting.resource_id, VM.version, {"properties": properties}, sighting.revision)

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What interrupts the machine."""
        return ["changing vmSize stops the machine and starts it again"] if "vmSize" in drift else []


def _user_data(cloud: Azure, resource_id: str) -> str:
    machine = cloud.find(resource_id, VM.version, **{"$expand": "userData"}) or {}
    text = (machine.get("properties") or {}).get("userData") or ""
    return b64decode(text).decode("utf-8", "replace")


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _view(item: Item) -> Item:
    return (item.get("properties") or {}).get("instanceView") or {}


def _power(item: Item) -> str:
    view = _view(item)
    codes = [str(one.get("code") or "") for one in view.get("statuses") or ()]
    return next((code.partition("/")[2] for code in codes if code.startswith("PowerState/")), "")


def _interface_id(item: Item) -> str:
    interfaces = ((item.get("properties") or {}).get("networkProfile") or {}).get("networkInterfaces") or ()
    return canonical_id(interfaces[0]["id"]) if interfaces else ""


def _addresses(interface: Item | None) -> list[Item]:
    configurations = ((interface or {}).get("properties") or {}).get("ipConfigurations") or ()
    return [one.get("properties") or {} for one in configurations]


def _subnet_id(interface: Item | None) -> str | None:
    return next((canonical_id(one["subnet"]["id"]) for one in _addresses(interface) if one.get("subnet")), None)
