"""How AWS spells and writes tags: the shapes its services answer in, and the calls that change single ones.

Every call here names the keys it is about; none replaces a set, so nobody else's tags are touched (T1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.tags import MANAGED_BY, OURS, RECONCILE, RECONCILE_VALUE, ProtocolTags
from fractal_cloud.offers.aws.cloud import Aws

NAME: Final = "Name"
NONE: Final[Mapping[str, str]] = {}
GUARD: Final = (
    "no precondition: the window is the one call after a fresh read; the IAM condition "
    "`aws:ResourceTag/managed-by` (`fractal agent policy --provider aws`) closes it"
)


@lru_cache(maxsize=4096)
def same(text: str) -> str:
    """One object for equal texts: thousands of resources repeat the same keys, regions and states."""
    return text


def moment(told: datetime | None) -> str:
    """A time as AWS reports it, written in one way; empty where it reports none."""
    return told.astimezone(UTC).isoformat() if told is not None else ""


def from_list(tags: Iterable[Mapping[str, str]] | None, key: str = "Key", value: str = "Value") -> Mapping[str, str]:
    """Tags from a list of pairs; ECS spells the pairs in lower case."""
    if not tags:
        return NONE
    return {same(tag[key]): tag[value] if tag[key] == NAME else same(tag[value]) for tag in tags}


def from_map(tags: Mapping[str, str] | None) -> Mapping[str, str]:
    """Tags from a map, as EKS has them."""
    return {same(key): same(value) for key, value in tags.items()} if tags else NONE


def to_list(
    tags: ProtocolTags, name: str | None = None, key: str = "Key", value: str = "Value"
) -> list[dict[str, str]]:
    """The tags of a create call as a list of pairs, with the tag ``Name`` where that is the resource's name."""
    pairs = tags.to_mapping() if name is None else {NAME: name, **tags.to_mapping()}
    return [{key: one, value: text} for one, text in pairs.items()]


def one_way(add: ProtocolTags, remove: ProtocolTags) -> tuple[dict[str, str], dict[str, str]]:
    """The pairs to add and to remove, of which one is empty: two would be two writing calls."""
    adding, removing = add.to_mapping(), remove.to_mapping()
    if adding and removing:
        raise ValueError(f"tags are added or removed in one call, not both: {sorted(adding)} and {sorted(removing)}")
    return adding, removing


def tag_ec2(cloud: Aws, resource_id: str, add: ProtocolTags, remove: ProtocolTags) -> None:
    """Change protocol tags of anything EC2 holds; a removal takes the tag only while it has that value."""
    adding, removing = one_way(add, remove)
    pairs: list[dict[str, Any]] = [{"Key": key, "Value": value} for key, value in (adding or removing).items()]
    if pairs:
        cloud.call("ec2", "create_tags" if adding else "delete_tags", Resources=[resource_id], Tags=pairs)


def ec2_glass() -> GlassCommands:
    """The commands for everything EC2 holds."""
    at = "--region {region} --resources {resourceId}"
    return GlassCommands(
        break_glass=[f"aws ec2 delete-tags {at} --tags Key={MANAGED_BY}"],
        readopt=[
            f"aws ec2 create-tags {at} --tags Key={MANAGED_BY},Value={OURS} Key={RECONCILE},Value={RECONCILE_VALUE}"
        ],
    )
