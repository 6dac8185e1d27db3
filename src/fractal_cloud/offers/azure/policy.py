"""The rights the agent needs in a subscription, as a custom role of Azure's own access control.

It holds nothing that gives rights away (role assignments, identities), runs something inside a machine, or returns a
key (A7). Links need no right in Azure at all: they make roles inside databases. What the agent may change, it may take
over: so the role can be kept to resource groups.

Azure's roles know no conditions on the tags of a resource. That the agent changes only what is managed, its guard makes
sure of: etags where the service has them, a fresh read right before the call where it has none (S16). What each type
needs stands on its offer: its kind is read, written and deleted, and ``rights`` says what else.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fractal_cloud.offers.azure.resources import ResourceOffer
from fractal_cloud.offers.policy import PLAIN, PolicyOptions, every_match
from fractal_cloud.offers.registry import installed

SCOPE: Final = "/subscriptions/<subscription id>"
_GROUP: Final = re.compile(r"[\w.()-]{0,89}[\w()-]", re.ASCII)
_EVERYWHERE: Final = (
    "Microsoft.Resources/subscriptions/read",
    "Microsoft.Resources/subscriptions/resourceGroups/read",
    "Microsoft.Resources/tags/read",
    "Microsoft.Resources/tags/write",
)


def policy(options: PolicyOptions = PLAIN) -> dict[str, Any]:
    """A role definition as `az role definition create --role-definition` takes it."""
    options.check("azure", ("with_links", "resource_groups"))
    every_match(options.resource_groups, "resource_groups", _GROUP, "name of a resource group")
    scopes = [f"{SCOPE}/resourceGroups/{one}" for one in options.resource_groups] or [SCOPE]
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
        "AssignableScopes": scopes,
    }
