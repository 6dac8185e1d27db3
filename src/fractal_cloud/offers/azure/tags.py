"""How Azure carries the three tags, and the one call that changes single ones.

Keys are compared without regard to case, values exactly (T8). The call names the tags it is about; it never replaces
a set, so nobody else's are touched (T1). It has no precondition: its window is the one call after a fresh read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.tags import MANAGED_BY, OURS, RECONCILE, RECONCILE_VALUE, ProtocolTags
from fractal_cloud.offers.azure.arm import Azure

_OF_MICROSOFT: Final = "begins with a word that Azure reserves for its own tags: choose another key"
RULES: Final = TagRules(
    key=r"[^<>%&\\?/\x00-\x1f]{1,512}",
    value=r".{0,256}",
    form="keys of 1 to 512 characters without < > % & \\ ? /, values of up to 256",
    reserved_prefixes={"microsoft": _OF_MICROSOFT, "azure": _OF_MICROSOFT, "windows": _OF_MICROSOFT},
    caseless=True,
)
TAGS_VERSION: Final = "2024-11-01"
GUARDED: Final = (
    "updates carry the resource's etag (If-Match); tag changes and deletions have no precondition: "
    "their window is the one call after a fresh read"
)
UNGUARDED: Final = "no precondition, and tags never travel in an update: the window is the one call after a fresh read"


def protocol_of(tags: Mapping[str, str]) -> ProtocolTags:
    """What the three tags say."""
    return RULES.protocol(tags)


def write_tags(cloud: Azure, resource_id: str, add: ProtocolTags, remove: ProtocolTags) -> None:
    """Add protocol tags, or remove those that still have the value named."""
    adding, removing = add.to_mapping(), remove.to_mapping()
    if adding and removing:
        raise ValueError(f"tags are added or removed in one call, not both: {sorted(adding)} and {sorted(removing)}")
    if adding or removing:
        body = {"operation": "Merge" if adding else "Delete", "properties": {"tags": adding or removing}}
        cloud.patch(f"{resource_id}/providers/Microsoft.Resources/tags/default", TAGS_VERSION, body)


def glass() -> GlassCommands:
    """The vendor's commands; they are the same for every type."""
    update = "az tag update --resource-id={resourceId} --operation"
    return GlassCommands(
        break_glass=[f"{update} delete --tags {MANAGED_BY}={OURS}"],
        readopt=[f"{update} merge --tags {MANAGED_BY}={OURS} {RECONCILE}={RECONCILE_VALUE}"],
    )
