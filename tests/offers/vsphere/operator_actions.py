"""What a person does to machines, and what blocks a deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyVmomi import vim

from fractal_cloud.offers.vsphere.vm import VsphereVm
from fractal_cloud.testing import Found, Hazard, Obstacle, OfferExample
from tests.offers.vsphere.examples import DATASTORE, EXAMPLES
from tests.offers.vsphere.person import CATEGORY, VspherePerson

OURS = ("managed-by", "fractal-cloud", "fractal-cloud-owner")
EMPTY = "(empty)"  # a tag must have a name
_NAMES = {"numCpus": "numCPUs", "memoryMb": "memoryMB", "annotation": "annotation"}


class MachineActions:
    """What a person does to machines. Others' tags have the key for their category."""

    def __init__(self, person: VspherePerson) -> None:
        self._person = person

    def find(self, name: str) -> list[Found]:
        return [
            Found(one.config.instanceUuid, _by_key(self._person.tags(one)), one.config.instanceUuid)
            for one in self._person.named(name)
            if one.config is not None  # else it is being made, and not to be had yet
        ]

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        machine = self._person.machine(resource_id)
        if parameter == "diskGb":
            disk = _disks(machine)[0]
            disk.capacityInKB = value * 1024 * 1024
            disk.capacityInBytes = value * 1024**3
            change = vim.vm.device.VirtualDeviceSpec(operation="edit", device=disk)
            self._person.reconfigure(machine, deviceChange=[change])
        else:
            self._person.reconfigure(machine, **{_NAMES[parameter]: value})

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        machine = self._person.machine(found.handle)
        for key, value in tags.items():
            self.untag(found, key)
            category, name = (CATEGORY, f"{key}:{value}") if key in OURS else (key, value or EMPTY)
            self._person.attach(machine, category, name)

    def untag(self, found: Found, *keys: str) -> None:
        machine = self._person.machine(found.handle)
        for category, name, one in self._person.tags(machine):
            if (name.partition(":")[0] if category == CATEGORY else category) in keys:
                self._person.detach(machine, one)

    def delete(self, found: Found) -> None:
        self._person.delete(self._person.machine(found.handle))


def _by_key(tags: list[tuple[str, str, str]]) -> dict[str, str]:
    pairs = [
        name.partition(":")[::2] if category == CATEGORY else (category, name.removeprefix(EMPTY))
        for category, name, _ in tags
    ]
    return dict(pairs)


def _disks(machine: Any) -> list[Any]:
    return [one for one in machine.config.hardware.device if isinstance(one, vim.vm.device.VirtualDisk)]


def _more_disks(person: VspherePerson, found: Found) -> Obstacle:
    machine = person.machine(found.handle)
    backing = vim.vm.device.VirtualDisk.FlatVer2BackingInfo(
        diskMode="persistent", thinProvisioned=True, fileName=f"[{DATASTORE}]"
    )
    disk = vim.vm.device.VirtualDisk(
        key=-9, controllerKey=1000, unitNumber=1, capacityInKB=1024 * 1024, backing=backing
    )
    adding = vim.vm.device.VirtualDeviceSpec(operation="add", fileOperation="create", device=disk)
    person.reconfigure(machine, deviceChange=[adding])
    added = _disks(machine)[-1]

    def clear() -> None:
        removing = vim.vm.device.VirtualDeviceSpec(operation="remove", device=added)
        person.reconfigure(machine, deviceChange=[removing])

    return Obstacle((added.deviceInfo.label,), clear)


def _a_snapshot(person: VspherePerson, found: Found) -> Obstacle:
    machine = person.machine(found.handle)
    person.done(machine.CreateSnapshot_Task("before-the-storm", "", False, False))
    return Obstacle(("before-the-storm",), lambda: person.done(machine.RemoveAllSnapshots_Task()))


def example_of(person: VspherePerson) -> OfferExample:
    """The example, with the actions of a person on it."""
    example = EXAMPLES[VsphereVm]
    return OfferExample(
        components=example.components,
        changes=example.changes,
        immutable_changes=example.immutable_changes,
        operator=MachineActions(person),
        only_up=frozenset({"diskGb"}),
        is_slow=True,
        hazards=[
            Hazard("somebody's disk", "Failed", lambda found: _more_disks(person, found)),
            Hazard("a snapshot", "Failed", lambda found: _a_snapshot(person, found)),
        ],
    )
