"""VMware vSphere on this machine: govmomi's simulator, with the sandbox's own knobs, record and monitor in front."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fractal_sandbox.calls import Actor
from fractal_sandbox.registry import Mount

if TYPE_CHECKING:
    from fractal_sandbox.vsphere.cloud import VsphereCloud

# They open nothing but the sandbox.
PERSON = "person@sandbox.local"
AGENT = "agent@sandbox.local"
PASSWORD = "sandbox"
PATH = "/vsphere"


def _load() -> VsphereCloud:
    from fractal_sandbox.vsphere.cloud import VsphereCloud

    return VsphereCloud()


def environment(url: str, actor: Actor, folder: Path | None) -> Mapping[str, str]:
    """What points our agent, govc and the Python client here; an agent's leaves no way to a real vCenter."""
    del folder
    return {
        "GOVC_URL": f"{url}{PATH}/sdk",
        "GOVC_USERNAME": AGENT if actor == "agent" else PERSON,
        "GOVC_PASSWORD": PASSWORD,
    }


MOUNTS = (
    Mount(
        "vsphere",
        "vsphere",
        "VMware vSphere",
        PATH,
        _load,
        environment,
        clears=("GOVC_", "VSPHERE_"),
        also=("/rest/com/vmware",),
    ),
)
