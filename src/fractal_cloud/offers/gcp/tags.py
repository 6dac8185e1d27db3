"""How Google Cloud carries the three tags: as labels, under the same names.

Labels are written as whole maps, but for those of buckets: so a map is written only together with the fingerprint of
the map it was made of, and Google refuses it if anybody changed a label in between (T10).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.errors import Overtaken
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.tags import MANAGED_BY, OURS, RECONCILE, RECONCILE_VALUE, ProtocolTags

RULES: Final = TagRules(
    key=r"(?!.*[A-Z])[^\W\d_][\w-]{0,62}",
    value=r"(?!.*[A-Z])[\w-]{0,63}",
    form="keys of 1 to 63 small letters, digits, _ and -, beginning with a letter, values of up to 63 of the same",
    most=61,
    reserved_prefixes={"goog": "begins with goog, which is Google's own: choose another key"},
)
NONE: Final[Mapping[str, str]] = {}
BOTH: Final = f"{MANAGED_BY}={OURS},{RECONCILE}={RECONCILE_VALUE}"


@lru_cache(maxsize=4096)
def interned(text: str) -> str:
    """One object for equal texts: thousands of resources repeat the same keys, zones and states."""
    return text


def labels_of(labels: Mapping[str, str] | None) -> Mapping[str, str]:
    """Labels as they are, each text kept once."""
    return {interned(key): interned(value) for key, value in labels.items()} if labels else NONE


def one_way(add: ProtocolTags, remove: ProtocolTags) -> tuple[dict[str, str], dict[str, str]]:
    """The pairs to add and to remove, of which one is empty: two would be two writing calls."""
    adding, removing = add.to_mapping(), remove.to_mapping()
    if adding and removing:
        raise ValueError(f"tags are added or removed in one call, not both: {sorted(adding)} and {sorted(removing)}")
    return adding, removing


def check_unchanged(sighting: Sighting, labels: Mapping[str, str]) -> None:
    """Raise where the three labels are no longer those that were judged (S16)."""
    if ProtocolTags.from_mapping(labels) != sighting.protocol:
        raise Overtaken(f"the labels of {sighting.name!r} were changed by somebody: nothing was written")


def relabelled(labels: Mapping[str, str], add: ProtocolTags, remove: ProtocolTags) -> dict[str, str]:
    """The whole map after a change; a label is removed only while it has that value."""
    adding, removing = one_way(add, remove)
    kept = {key: value for key, value in labels.items() if removing.get(key) != value}
    return {**kept, **adding}


def glass(remove: str, update: str, *, caveat: str = "") -> GlassCommands:
    """The commands of a type: how gcloud takes a label off (``remove``), and how it puts some on (``update``)."""
    return GlassCommands(break_glass=[f"{remove}={MANAGED_BY}"], readopt=[f"{update}={BOTH}"], caveat=caveat)
