"""What Google reports of a machine, and where in its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.offers.gcp.tags import interned
from fractal_cloud.offers.gcp.value_types import last_of, path_of

Part = Mapping[str, Any]
STARTUP_SCRIPT: Final = "startup-script"


def boot_disk(raw: Part) -> Part:
    """The disk it starts from."""
    return next((disk for disk in raw.get("disks") or () if disk.get("boot")), {})


def first_interface(raw: Part) -> Part:
    """The interface that parameters are about."""
    return next(iter(raw.get("networkInterfaces") or ()), {})


def access_config(raw: Part) -> Part:
    """The public side of the first interface; empty where it has none."""
    return next(iter(first_interface(raw).get("accessConfigs") or ()), {})


def actual(raw: Part) -> dict[str, Any]:
    """The actual parameters, but for its place and its run state."""
    metadata = (raw.get("metadata") or {}).get("items") or ()
    accounts = raw.get("serviceAccounts") or ()
    size = boot_disk(raw).get("diskSizeGb")
    return {
        "machineType": interned(last_of(raw["machineType"])),
        "diskSizeGb": int(size) if size else None,
        "subnetwork": path_of(first_interface(raw).get("subnetwork")),
        "externalIP": bool(access_config(raw)),
        "networkTags": sorted((raw.get("tags") or {}).get("items") or ()),
        "startupScript": next((one.get("value") for one in metadata if one["key"] == STARTUP_SCRIPT), None),
        "serviceAccount": next((one["email"] for one in accounts), None),
        "provisioningModel": (raw.get("scheduling") or {}).get("provisioningModel") or "STANDARD",
        "deletionProtection": bool(raw.get("deletionProtection")),
    }
