"""Machines: found by their name, which is unique in a folder, and known by an instance UUID of our making.

vCenter reports where a machine was put (pool, datastore, network) in other terms than they are declared in, so these
are used at creation only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Literal
from uuid import UUID, uuid5

from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.errors import Conflict, Invalid, NotFound, Overtaken
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags
from fractal_cloud.offers.items import parse_each
from fractal_cloud.offers.offer import Offer, Query, Wanted
from fractal_cloud.offers.vsphere.cloud import Tagged, Vsphere
from fractal_cloud.offers.vsphere.machines import Machine, Making
from fractal_cloud.offers.vsphere.tags import GUARD, RULES, glass, word_of, words_of

_OURS = UUID("5b0b7a4e-0c53-5d5e-9f43-1a3d6c0c9e71")
_STATES: Mapping[str, str] = {"poweredOn": "running", "poweredOff": "stopped", "suspended": "suspended"}


class VsphereVm(Component):
    """A virtual machine with one disk. Deleting it deletes its disk; one with more disks or with snapshots is left."""

    type = "NetworkAndCompute.IaaS.VsphereVm"
    provider = "vsphere"

    vcenter: str | None = parameter(
        default=None,
        immutable=True,
        description="The vCenter it is in, as the agent's file of realms calls it; the agent's own if not given.",
    )
    folder: str = parameter(
        description="The inventory path of the folder it lies in, without slashes around it.",
        examples=["DC0/vm"],
        pattern=r"^[^/]+(/[^/]+)+$",
    )
    resource_pool: str = parameter(
        description="The inventory path of the resource pool it is put into. Used at creation only.",
        examples=["DC0/host/DC0_C0/Resources"],
    )
    datastore: str = parameter(
        description="Name of the datastore that holds it. Used at creation only.", examples=["LocalDS_0"]
    )
    network: str | None = parameter(
        default=None,
        description="The inventory path of the network of its card; no card without. Used at creation only.",
        examples=["DC0/network/VM Network"],
    )
    num_cpus: int = parameter(
        description="How many processors it has. Changing it stops the machine and starts it again.", ge=1, le=768
    )
    memory_mb: int = parameter(
        description="Its memory in MB, in fours. Changing it stops the machine and starts it again.",
        ge=4,
        le=25_165_824,
        multiple_of=4,
    )
    disk_gb: int = parameter(description="The size of its disk in GB; it can grow and never shrink.", ge=1, le=63_488)
    guest_id: str = parameter(
        default="otherGuest64",
        immutable=True,
        description="Which system it is made for, in vSphere's words.",
        examples=["debian12_64Guest"],
    )
    annotation: str | None = parameter(default=None, lines=True, description="A note that people see with it.")
    state: Literal["running", "stopped"] = parameter(
        default="running",
        enforced=True,
        description="Whether it runs. Listed in ignoreDrift, it is never stopped: what needs that waits until you do.",
    )


class VsphereVmOffer(Offer[VsphereVm, Vsphere]):
    """How machines are read and changed."""

    component = VsphereVm
    tag_rules = RULES
    title = "Virtual machine"
    place = ("folder",)
    realm = "vcenter"
    service = "vsphere"
    rights = (
        "VirtualMachine.Inventory.Create",
        "VirtualMachine.Inventory.Delete",
        "VirtualMachine.Config.AddNewDisk",
        "VirtualMachine.Config.AddRemoveDevice",
        "VirtualMachine.Config.Annotation",
        "VirtualMachine.Config.CPUCount",
        "VirtualMachine.Config.DiskExtend",
        "VirtualMachine.Config.Memory",
        "VirtualMachine.Interact.PowerOff",
        "VirtualMachine.Interact.PowerOn",
        "Datastore.AllocateSpace",
        "Network.Assign",
        "Resource.AssignVMToPool",
    )
    holds_data = True
    not_found_may_mean_denied = True  # vCenter finds nothing where it may not be seen
    guard = GUARD
    outputs: ClassVar[Mapping[str, str]] = {
        "moref": "its managed object id at this vCenter (vm-…)",
        "instanceUuid": "its instance UUID",
        "inventoryPath": "its path in the inventory",
        "powerState": "poweredOn, poweredOff or suspended",
        "vmPathName": "where its files lie",
        "ipAddress": "its address, once its tools report it",
    }
    glass = glass()

    def sightings(self, cloud: Vsphere, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All machines of the folder."""
        del query
        shown = lambda one: (one.machine.instance or None, one.machine.name or None)  # noqa: E731
        yield from parse_each(cloud.machines(), lambda one: self._sighting(cloud, one), shown)

    def read(self, cloud: Vsphere, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One by its id."""
        del sweep
        found = cloud.find(resource_id)
        return None if found is None else self._sighting(cloud, found)

    def create(self, cloud: Vsphere, wanted: Wanted[VsphereVm], tags: ProtocolTags) -> Sighting:
        """Create it, stopped, with its tags where they can go along; it is started by ``update``."""
        component = wanted.component
        making = _making(component, self.predicted_id(wanted.token or f"{wanted.live_system_id}/{component.id}"))
        moref = cloud.create(making, wanted.live_system_id, words_of(tags))
        found = cloud.find(making.instance) if moref else None
        if found is not None:
            return self._sighting(cloud, found)
        travelled = NO_TAGS if cloud.tags_follow else tags
        return Sighting(
            type=self.type,
            name=making.name,
            resource_id=making.instance,
            protocol=travelled,
            tags=travelled.to_mapping(),
            condition=Condition.CREATING,
            detail="vCenter is at it",
        )

    def tags_follow(self, cloud: Vsphere) -> bool:
        """Below API 9.1."""
        return cloud.tags_follow

    def predicted_id(self, token: str) -> str:
        """The instance UUID, which travels in the create call and is certain before the task is over."""
        return str(uuid5(_OURS, token))

    def update(self, cloud: Vsphere, sighting: Sighting, wanted: Wanted[VsphereVm], drift: Collection[str]) -> None:
        """Make the next call needed: what a running machine takes, then the stop, what needs it, and the start."""
        component, moref = wanted.component, sighting.outputs["moref"]
        runs = sighting.actual["state"] != "stopped"
        sizes = {"numCpus": ("numCPUs", component.num_cpus), "memoryMb": ("memoryMB", component.memory_mb)}
        resized = dict(sizes[name] for name in sizes if name in drift)
        grows = "diskGb" in drift and component.disk_gb > sighting.actual["diskGb"]
        if "annotation" in drift or grows:
            note = {"annotation": component.annotation} if "annotation" in drift else {}
            cloud.reconfigure(moref, disk=component.disk_gb if grows else None, **note)
        elif resized and runs:
            wanted.may_stop_for(" and ".join(sorted(sizes.keys() & set(drift))), sighting.name)
            cloud.stop(moref, kindly=_hears(cloud, sighting))
        elif resized:
            cloud.reconfigure(moref, **resized)
        elif "state" in drift and component.state == "running":
            cloud.start(moref)
        elif "state" in drift:
            cloud.stop(moref, kindly=_hears(cloud, sighting))
        elif "diskGb" in drift:
            size = sighting.actual["diskGb"]
            raise Invalid(
                f"diskGb cannot shrink from {size} to {component.disk_gb}: declare at least {size}, or a new machine"
            )

    def delete(self, cloud: Vsphere, sighting: Sighting) -> None:
        """Stop it, and then delete it; nothing goes along that was not made with it."""
        found = cloud.find(sighting.resource_id)
        if found is None:
            return
        machine = found.machine
        if found.tags != sighting.tags:
            raise Overtaken("its tags were changed a moment ago: nothing was written, and it is tried again")
        _keep_what_is_not_ours(machine)
        try:
            if machine.power == "poweredOff":
                cloud.destroy(machine.moref)
            else:
                cloud.stop(machine.moref, kindly=machine.hears)
        except NotFound:
            return

    # The owner is a tag of its own name: replacing it takes two calls, between which it would have two owners, or none.
    owner_moves = False

    def tag(self, cloud: Vsphere, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Attach in one call, or detach; nobody else's tags are touched."""
        moref = sighting.outputs["moref"]
        words = words_of(add)
        if words:
            cloud.attach(moref, words)
        for key, value in remove.to_mapping().items():
            cloud.detach(moref, word_of(key, value))

    def write_tags(self, cloud: Vsphere, sighting: Sighting, tags: Mapping[str, str]) -> None:
        """Detach what stands under one of these keys, one a call, and then attach them: a key has one value."""
        moref = sighting.outputs["moref"]
        wanted = {self.tag_rules.folded(key): value for key, value in tags.items()}
        for word in cloud.words_on(moref):
            key = self.tag_rules.folded(word[0])
            if key in wanted and word[1] != wanted[key]:
                cloud.detach(moref, word)
                return
        cloud.attach(moref, list(tags.items()))

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What stops the machine."""
        stopping = sorted({"memoryMb", "numCpus"} & set(drift))
        return [f"changing {name} stops the machine and starts it again" for name in stopping]

    def _sighting(self, cloud: Vsphere, found: Tagged) -> Sighting:
        machine, tags, elsewhere = found
        outputs = {
            "moref": machine.moref,
            "instanceUuid": machine.instance,
            "inventoryPath": f"{f'/{elsewhere}' if elsewhere else cloud.folder}/{machine.name}",
            "powerState": machine.power,
            "vmPathName": machine.path,
            "ipAddress": machine.address,
        }
        has_configuration = bool(machine.instance)
        without_it = Condition.CREATING if machine.is_reached else Condition.BROKEN
        return Sighting(
            type=self.type,
            name=machine.name,
            resource_id=machine.instance or machine.moref,
            protocol=ProtocolTags.from_mapping(tags),
            tags=tags,
            actual=_actual(machine) if has_configuration else {},
            outputs={name: value for name, value in outputs.items() if value},
            condition=Condition.SETTLED if has_configuration else without_it,
            detail="" if has_configuration else "vCenter does not report its configuration",
            moved_to=f"folder {elsewhere}" if elsewhere else "",
        )


def _actual(machine: Machine) -> dict[str, Any]:
    return {
        "numCpus": machine.cpus,
        "memoryMb": machine.memory,
        **({"diskGb": machine.disks[0].size} if machine.disks else {}),
        "guestId": machine.guest,
        "annotation": machine.annotation,
        **({"state": _STATES[machine.power]} if machine.power in _STATES else {}),
    }


def _making(component: VsphereVm, instance: str) -> Making:
    return Making(
        name=component.name,
        instance=instance,
        pool=component.resource_pool,
        datastore=component.datastore,
        network=component.network,
        cpus=component.num_cpus,
        memory=component.memory_mb,
        disk=component.disk_gb,
        guest=component.guest_id,
        annotation=component.annotation or "",
    )


def _hears(cloud: Vsphere, sighting: Sighting) -> bool:
    """Whether its system can be asked to stop; the agent's own read was a moment ago, and this one is fresher."""
    found = cloud.find(sighting.resource_id)
    if found is not None and found.tags != sighting.tags:
        raise Overtaken("its tags were changed a moment ago: nothing was written, and it is tried again")
    return found is not None and found.machine.hears


def _keep_what_is_not_ours(machine: Machine) -> None:
    """Refuse where a deletion would take along disks or states that were not declared."""
    found = [f"disk {one.label!r}" for one in machine.disks[1:]] + [f"snapshot {one!r}" for one in machine.snapshots]
    if found:
        raise Conflict(f"{', '.join(found)} would be lost with the machine: it goes when they are gone")
