"""The rights the agent needs in a subscription, as a custom role of Azure's own access control.

Azure's roles know no conditions on the tags of a resource. That the agent changes only what is managed, its guard makes
sure of: etags where the service has them, a fresh read right before the call where it has none (S16). What each type
needs stands on its offer: its kind is read, written and deleted, and ``rights`` says what else.
"""

from __future__ import annotations

from typing import Any, Final

from fractal_cloud.offers.azure.resources import ResourceOffer
from fractal_cloud.offers.registry import installed

SCOPE: Final = "/subscriptions/<subscription id>"
_EVERYWHERE: Final = (
    "Microsoft.Resources/subscriptions/read",
    "Microsoft.Resources/subscriptions/resourceGroups/read",
    "Microsoft.Resources/tags/read",
    "Microsoft.Resources/tags/write",
)


def policy() -> dict[str, Any]:
    """A role definition as `az role definition create --role-definition` takes it."""
    registry = installed("azure")
    kinds = [offer.kind for offer in registry.of_provider("azure") if isinstance(offer, ResourceOffer)]
    changed = [f"{kind.type}/{verb}" for kind in kinds for verb in ("read", "write", "delete")]
    return {
        "Name": "Fractal Cloud agent",
        "IsCustom": True,
        "Description": "Brings Azure to what LiveSystems declare, and touches nothing that lacks managed-by.",
        "Actions": sorted({*changed, *registry.rights("azure"), *_EVERYWHERE}),
        "NotActions": [],
        "DataActions": [],
        "NotDataActions": [],
        "AssignableScopes": [SCOPE],
    }
