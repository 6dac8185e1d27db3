"""What goes to vCenter and comes from it, in the classes of the vendor's client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fractal_cloud.model.errors import Unreadable
from fractal_cloud.offers.vsphere.machines import Machine, Making, machine

KILO_PER_GIGA: Final = 1024 * 1024
_PATHS: Final = (
    "name",
    "parent",
    "config.instanceUuid",
    "config.annotation",
    "config.guestId",
    "config.hardware.numCPU",
    "config.hardware.memoryMB",
    "config.hardware.device",
    "config.files.vmPathName",
    "runtime.connectionState",
    "runtime.powerState",
    "guest.ipAddress",
    "guest.toolsRunningStatus",
    "snapshot",
)


def asking(where: Any) -> Any:
    """What is asked of the property collector: everything of machines that we read."""
    from pyVmomi import vim

    what = vim.PropertyCollector.PropertySpec(type=vim.VirtualMachine, pathSet=list(_PATHS))
    return vim.PropertyCollector.FilterSpec(objectSet=[where], propSet=[what])


def asking_upwards(moref: str, stub: Any) -> Any:
    """What is asked of the property collector: the names of a folder and of everything it lies in."""
    from pyVmomi import vim

    collector = vim.PropertyCollector
    further = collector.SelectionSpec(name="up")
    up = collector.TraversalSpec(name="up", type=vim.ManagedEntity, path="parent", skip=False, selectSet=[further])
    where = collector.ObjectSpec(obj=vim.Folder(moref, stub), skip=False, selectSet=[up])
    what = collector.PropertySpec(type=vim.ManagedEntity, pathSet=["name", "parent"])
    return collector.FilterSpec(objectSet=[where], propSet=[what])


def path_from(moref: str, items: Iterable[Any]) -> str:
    """The inventory path of a folder, from what was answered of it and of what it lies in; without the root's name."""
    known = {item.obj._moId: {one.name: one.val for one in item.propSet} for item in items}  # noqa: SLF001
    names: list[str] = []
    while values := known.pop(moref, None):
        parent = values.get("parent")
        if parent is None:
            break
        names.insert(0, str(values.get("name") or moref))
        moref = parent._moId  # noqa: SLF001
    return "/".join(names)


def machine_from(item: Any) -> Machine:
    """A machine from what the property collector answered; raises where something of it may not be read (S0)."""
    if item.missingSet:
        what = ", ".join(one.path for one in item.missingSet)
        raise Unreadable(f"{what} of machine {item.obj._moId} may not be read: allow it to the agent")  # noqa: SLF001
    from pyVmomi import vim

    values = {one.name: one.val for one in item.propSet}
    if "name" not in values:
        raise Unreadable(f"the answer for machine {item.obj._moId} has no name")  # noqa: SLF001
    devices = values.pop("config.hardware.device", None) or ()
    disks = [one for one in devices if isinstance(one, vim.vm.device.VirtualDisk)]
    snapshot, parent = values.pop("snapshot", None), values.pop("parent", None)
    return machine(
        item.obj._moId,  # noqa: SLF001
        values,
        parent=parent._moId if parent is not None else "",  # noqa: SLF001
        disks=[(one.deviceInfo.label if one.deviceInfo else str(one.key), one.capacityInKB) for one in disks],
        snapshots=[one.name for one in snapshot.rootSnapshotList] if snapshot is not None else [],
    )


def devices_of(making: Making, network: Any) -> list[Any]:
    """The devices of a new machine: a disk at its controller, and a card where a network is given."""
    from pyVmomi import vim

    device = vim.vm.device
    disk = device.VirtualDisk(
        key=-1,
        controllerKey=1000,
        unitNumber=0,
        capacityInKB=making.disk * KILO_PER_GIGA,
        backing=device.VirtualDisk.FlatVer2BackingInfo(
            diskMode="persistent", thinProvisioned=True, fileName=f"[{making.datastore}]"
        ),
    )
    controller = device.VirtualLsiLogicController(key=1000, busNumber=0, sharedBus="noSharing")
    added = [
        device.VirtualDeviceSpec(operation="add", device=controller),
        device.VirtualDeviceSpec(operation="add", fileOperation="create", device=disk),
    ]
    if network is not None:
        card = device.VirtualVmxnet3(key=-2, backing=_backing(network))
        added.append(device.VirtualDeviceSpec(operation="add", device=card))
    return added


def _backing(network: Any) -> Any:
    from pyVmomi import vim

    card = vim.vm.device.VirtualEthernetCard
    if isinstance(network, vim.dvs.DistributedVirtualPortgroup):
        switch = network.config.distributedVirtualSwitch
        port = vim.dvs.PortConnection(portgroupKey=network.key, switchUuid=switch.uuid)
        return card.DistributedVirtualPortBackingInfo(port=port)
    return card.NetworkBackingInfo(deviceName=network.name, network=network)
