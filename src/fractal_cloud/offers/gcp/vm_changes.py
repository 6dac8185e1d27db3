"""How each parameter of a machine is changed: a call of its own each, with the fingerprint where Google has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.gcp.vm_facts import STARTUP_SCRIPT, access_config, first_interface

CHANGED_WHEN_STOPPED: Final = ("machineType", "serviceAccount")
# The run state comes last: a machine is started once everything that needs it stopped is done.
ORDER: Final = (
    "deletionProtection",
    "networkTags",
    "startupScript",
    "externalIP",
    *CHANGED_WHEN_STOPPED,
    "state",
)
RETRY_SECONDS: Final = 600
_SCOPES: Final = ["https://www.googleapis.com/auth/cloud-platform"]
_NAT: Final = {"name": "External NAT", "type": "ONE_TO_ONE_NAT"}

Change = tuple[str, dict[str, str], Any]
"""The verb behind the machine's path, the query, and the body."""


def attempt(sighting: Sighting, verb: str, now: float) -> str:
    """The request id of a start or a stop: the same for ten minutes, as long as the machine was not started or stopped.

    Google answers a repeated request with what became of the first. So a start that it accepted and that failed
    for want of capacity is reported in the next cycle, and tried anew later.
    """
    seen = (
        sighting.outputs.get(name, "") for name in ("instanceId", "status", "lastStartTimestamp", "lastStopTimestamp")
    )
    return str(uuid5(NAMESPACE_URL, " ".join([*seen, verb, str(int(now // RETRY_SECONDS))])))


def change(name: str, declared: Mapping[str, Any], raw: Mapping[str, Any], zone: str) -> Change:
    """The one call that brings a parameter to its declared value, on the machine as it was just read."""
    value = declared[name]
    match name:
        case "deletionProtection":
            return "setDeletionProtection", {"deletionProtection": "true" if value else "false"}, None
        case "networkTags":
            return "setTags", {}, {"items": value or [], "fingerprint": (raw.get("tags") or {}).get("fingerprint", "")}
        case "startupScript":
            return "setMetadata", {}, _metadata(raw.get("metadata") or {}, value)
        case "externalIP":
            return _external_ip(raw, is_wanted=bool(value))
        case "machineType":
            return "setMachineType", {}, {"machineType": f"zones/{zone}/machineTypes/{value}"}
        case _:
            accounts = raw.get("serviceAccounts") or ()
            scopes = next((one.get("scopes") for one in accounts), None) or _SCOPES
            return "setServiceAccount", {}, {"email": value, "scopes": scopes}


def _metadata(metadata: Mapping[str, Any], script: str | None) -> dict[str, Any]:
    """All metadata with the script put in: the keys of others (people's ssh keys) stay as they are."""
    others = [one for one in metadata.get("items") or () if one["key"] != STARTUP_SCRIPT]
    ours = [{"key": STARTUP_SCRIPT, "value": script}] if script is not None else []
    return {"fingerprint": metadata.get("fingerprint", ""), "items": [*others, *ours]}


def _external_ip(raw: Mapping[str, Any], *, is_wanted: bool) -> Change:
    at = {"networkInterface": first_interface(raw).get("name", "nic0")}
    if is_wanted:
        return "addAccessConfig", at, dict(_NAT)
    return "deleteAccessConfig", {**at, "accessConfig": access_config(raw).get("name", _NAT["name"])}, None
