"""A machine as vCenter reports it, and what a new one is made of, in plain words: no line here knows the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_RUNS: Final = "guestToolsRunning"
_REACHED: Final = "connected"


@dataclass(frozen=True, slots=True)
class Disk:
    """One disk of a machine; ``size`` in GB, rounded down."""

    label: str
    size: int


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine. ``moref``: its managed object id. ``instance`` is empty while vCenter cannot read its settings.

    ``is_reached``: its host and its files are; one without settings is then being made.
    """

    moref: str
    name: str
    folder: str
    instance: str
    power: str
    cpus: int
    memory: int
    guest: str
    annotation: str
    address: str
    path: str
    hears: bool
    is_reached: bool
    disks: tuple[Disk, ...] = ()
    snapshots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Making:
    """What a new machine is made of; paths lead through the inventory."""

    name: str
    instance: str
    pool: str
    datastore: str
    network: str | None
    cpus: int
    memory: int
    disk: int
    guest: str
    annotation: str


def machine(
    moref: str,
    values: Mapping[str, Any],
    *,
    parent: str,
    disks: Sequence[tuple[str, int]],
    snapshots: Sequence[str],
) -> Machine:
    """A machine from the properties that were read; what vCenter leaves out is empty."""
    return Machine(
        moref=moref,
        name=str(values["name"]),
        folder=parent,
        instance=str(values.get("config.instanceUuid") or ""),
        power=str(values.get("runtime.powerState") or ""),
        cpus=int(values.get("config.hardware.numCPU") or 0),
        memory=int(values.get("config.hardware.memoryMB") or 0),
        guest=str(values.get("config.guestId") or ""),
        annotation=str(values.get("config.annotation") or ""),
        address=str(values.get("guest.ipAddress") or ""),
        path=str(values.get("config.files.vmPathName") or ""),
        hears=str(values.get("guest.toolsRunningStatus") or "") == _RUNS,
        is_reached=str(values.get("runtime.connectionState") or "") == _REACHED,
        disks=tuple(Disk(label, size // (1024 * 1024)) for label, size in disks),
        snapshots=tuple(snapshots),
    )
