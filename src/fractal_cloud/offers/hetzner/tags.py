"""How the three tags are spelled on Hetzner's resources: three labels, of which every write replaces all (T8, T10).

So labels are written at creation, in re-adoption and when an operator breaks the glass or moves the owner through the
product, and never else; and always as the set that was read right before, with nothing but our own keys changed (T1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.tags import MANAGED_BY, OURS, RECONCILE, RECONCILE_VALUE, ProtocolTags

_PART: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
RULES: Final = TagRules(
    key=rf"(?:(?=[^/]{{1,253}}/)[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?/)?{_PART}",
    value=rf"(?:{_PART})?",
    form="keys and values of up to 63 letters, digits, - _ and ., beginning and ending with a letter or digit; a key "
    "may have a prefix and a / before it",
    most=61,
    reserved_prefixes={"hetzner.cloud/": "begins with hetzner.cloud/, which is Hetzner's own: choose another key"},
    written_once=True,
)
GUARD: Final = (
    "no precondition: the window is the one call after a fresh read. A write of labels replaces them all, so a label "
    "that is changed within that one call is lost; it happens only at creation, in re-adoption, and when an operator "
    "breaks the glass or moves the owner through the product"
)


def relabelled(labels: Mapping[str, str], add: ProtocolTags, remove: ProtocolTags) -> dict[str, str]:
    """All labels as they must be written; one of ours is removed only while it has the value that was seen."""
    leaving = remove.to_mapping()
    kept = {key: value for key, value in labels.items() if leaving.get(key) != value}
    return {**kept, **add.to_mapping()}


def glass(noun: str) -> GlassCommands:
    """The commands for one kind of resource, as the vendor's command line calls it."""
    return GlassCommands(
        break_glass=[f"hcloud {noun} remove-label {{resourceId}} {MANAGED_BY}"],
        readopt=[
            f"hcloud {noun} add-label {{resourceId}} {MANAGED_BY}={OURS}",
            f"hcloud {noun} add-label --overwrite {{resourceId}} {RECONCILE}={RECONCILE_VALUE}",
        ],
        caveat="They act in the project of the command line's active context, or of HCLOUD_TOKEN",
    )
