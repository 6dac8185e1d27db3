"""The rights the agent needs in a subscription, as a custom role of Azure's own access control.

Azure's roles know no conditions on the tags of a resource. That the agent changes only what is managed, its guard makes
sure of: etags where the service has them, a fresh read right before the call where it has none (S16).
"""

from __future__ import annotations

from typing import Any, Final

from fractal_cloud.offers.azure.kinds import AKS, DISK, NIC, NSG, POSTGRES, STORAGE, VM, VNET

SCOPE: Final = "/subscriptions/<subscription id>"
_CHANGED: Final = (VNET, NSG, VM, STORAGE, AKS, POSTGRES)
_LOOKED_AT: Final = (DISK,)
# What a machine makes by its own creation and takes along, and what its kind of change asks for.
_BESIDE: Final = (
    f"{NIC.type}/read",
    f"{NIC.type}/write",
    f"{NIC.type}/delete",
    f"{NIC.type}/join/action",
    f"{DISK.type}/write",
    f"{DISK.type}/delete",
    f"{VM.type}/start/action",
    f"{VM.type}/deallocate/action",
    f"{VNET.type}/subnets/read",
    f"{VNET.type}/subnets/write",
    f"{VNET.type}/subnets/join/action",
    f"{NSG.type}/join/action",
)
# What keeps an account or a server from being deleted: that it holds something is looked at, never what.
_HELD: Final = (
    f"{STORAGE.type}/blobServices/containers/read",
    f"{STORAGE.type}/fileServices/shares/read",
    f"{STORAGE.type}/queueServices/queues/read",
    f"{STORAGE.type}/tableServices/tables/read",
    f"{POSTGRES.type}/databases/read",
)


def policy() -> dict[str, Any]:
    """A role definition as `az role definition create --role-definition` takes it."""
    changed = [f"{kind.type}/{verb}" for kind in _CHANGED for verb in ("read", "write", "delete")]
    looked_at = [f"{kind.type}/read" for kind in _LOOKED_AT]
    return {
        "Name": "Fractal Cloud agent",
        "IsCustom": True,
        "Description": "Brings Azure to what LiveSystems declare, and touches nothing that lacks managed-by.",
        "Actions": sorted(
            {
                *changed,
                *looked_at,
                *_BESIDE,
                *_HELD,
                "Microsoft.Resources/subscriptions/read",
                "Microsoft.Resources/subscriptions/resourceGroups/read",
                "Microsoft.Resources/tags/read",
                "Microsoft.Resources/tags/write",
            }
        ),
        "NotActions": [],
        "DataActions": [],
        "NotDataActions": [],
        "AssignableScopes": [SCOPE],
    }
