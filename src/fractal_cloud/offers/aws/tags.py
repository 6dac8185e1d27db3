"""How AWS spells and writes tags: the shapes its services answer in, and the calls that change single ones.

Every call here names the keys it is about; none replaces a set, so nobody else's tags are touched (T1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.tags import MANAGED_BY, OURS, RECONCILE, RECONCILE_VALUE, ProtocolTags
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Service, Tagging, method

NAME: Final = "Name"
NONE: Final[Mapping[str, str]] = {}
_NAMED: Final = "is the name of this resource, and written as one: say it with the parameter `name`, and take it out"
RULES: Final = TagRules(
    key=r"[\w +\-=.:/@]{1,128}",
    value=r"[\w +\-=.:/@]{0,256}",
    form="keys of 1 to 128 and values of up to 256 letters, digits, blanks and any of + - = . _ : / @",
    reserved_prefixes={"aws:": "begins with aws:, which is AWS's own: choose another key"},
)
NAMED_RULES: Final = RULES.model_copy(update={"most": 46, "reserved": {NAME: _NAMED}})
"""For types of which the tag `Name` is the name."""
GUARD: Final = (
    "no precondition: the window is the one call after a fresh read; the IAM condition "
    "`aws:ResourceTag/managed-by` (`fractal agent policy --provider aws`) closes it"
)


@lru_cache(maxsize=4096)
def interned(text: str) -> str:
    """One object for equal texts: thousands of resources repeat the same keys, regions and states."""
    return text


def moment(reported: datetime | None) -> str:
    """A time as AWS reports it, written in one way; empty where it reports none."""
    return reported.astimezone(UTC).isoformat() if reported is not None else ""


def from_list(tags: Iterable[Mapping[str, str]] | None, key: str = "Key", value: str = "Value") -> Mapping[str, str]:
    """Tags from a list of pairs; ECS spells the pairs in lower case."""
    if not tags:
        return NONE
    return {interned(tag[key]): tag[value] if tag[key] == NAME else interned(tag[value]) for tag in tags}


def from_map(tags: Mapping[str, str] | None) -> Mapping[str, str]:
    """Tags from a map, as EKS has them."""
    return {interned(key): interned(value) for key, value in tags.items()} if tags else NONE


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


def write_tags(cloud: Aws, service: Service, target: str, add: ProtocolTags, remove: ProtocolTags, **more: Any) -> None:
    """Change single tags of one resource, in one call. ``target``: its id or its ARN, as the service asks for it."""
    tagging = service.tagging
    if tagging is None:
        raise ValueError(f"{service.name} has no operations for single tags: describe them, or override `tag`")
    adding, removing = one_way(add, remove)
    about = {tagging.target: [target] if tagging.is_by_id else target, **more}
    if adding:
        cloud.call(service.name, method(tagging.add), **about, **{tagging.tags: _written(adding, tagging)})
    elif removing and tagging.keys:
        cloud.call(service.name, method(tagging.remove), **about, **{tagging.keys: list(removing)})
    elif removing:  # by pairs: the tag is removed only while it has that value
        cloud.call(service.name, method(tagging.remove), **about, **{tagging.tags: _written(removing, tagging)})


def _written(tags: Mapping[str, str], tagging: Tagging) -> Any:
    if tagging.pair is None:
        return dict(tags)
    key, value = tagging.pair
    return [{key: one, value: text} for one, text in tags.items()]


def glass_commands(service: Service, arn_output: str) -> GlassCommands:
    """The commands of AWS's own command line for a resource of a service; ``arn_output``: the field with its ARN."""
    tagging = service.tagging
    if tagging is None:
        return GlassCommands()
    target = "{resourceId}" if tagging.is_by_id else f"{{{arn_output}}}"
    at = f"--region={{region}} --{_option(tagging.target)}={target}"
    both = {MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE}
    if tagging.pair is None:
        tags, one = ",".join(f"{key}={value}" for key, value in both.items()), MANAGED_BY
    else:
        name, text = tagging.pair
        tags = " ".join(f"{name}={key},{text}={value}" for key, value in both.items())
        one = MANAGED_BY if tagging.keys else f"{name}={MANAGED_BY}"
    keys = _option(tagging.keys or tagging.tags)
    return GlassCommands(
        break_glass=[f"aws {service.name} {_option(tagging.remove)} {at} --{keys} {one}"],
        readopt=[f"aws {service.name} {_option(tagging.add)} {at} --{_option(tagging.tags)} {tags}"],
    )


def _option(name: str) -> str:
    return method(name).replace("_", "-")
