"""A complete valid declaration of a machine, and other values for its parameters.

Plain data for suites that run over the whole registry; nothing here asserts anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.vsphere.vm import VsphereVm

FOLDER = "DC0/vm"
POOL = "DC0/host/DC0_C0/Resources"
DATASTORE = "LocalDS_0"
NETWORK = "DC0/network/VM Network"


@dataclass(frozen=True)
class Example:
    """``components``: declarations in dependency order, the last one is under test."""

    components: list[dict[str, Any]]
    changes: dict[str, Any]
    immutable_changes: Mapping[str, Any] = field(default_factory=dict)


def declaration(component_id: str, **parameters: Any) -> dict[str, Any]:
    """A machine with everything that can be declared."""
    given = {
        "folder": FOLDER,
        "resourcePool": POOL,
        "datastore": DATASTORE,
        "network": NETWORK,
        "numCpus": 2,
        "memoryMb": 1024,
        "diskGb": 10,
        "guestId": "otherGuest64",
        "annotation": "as it was declared",
        **parameters,
    }
    return {"id": component_id, "type": VsphereVm.type, "provider": "vsphere", "parameters": given}


EXAMPLES: dict[type[Component], Example] = {
    VsphereVm: Example(
        components=[declaration("machine")],
        changes={"numCpus": 4, "memoryMb": 2048, "diskGb": 20, "annotation": "as a person left it"},
        immutable_changes={"guestId": "debian12_64Guest"},
    )
}
