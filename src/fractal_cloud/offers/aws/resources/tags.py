"""The tags of a resource, in the property of its type that holds them: how they are read, and patched one by one.

A patch of tags begins with a ``test`` of the whole property as it was read: AWS refuses it where anybody was faster, so
nobody's tags are lost (T10), and who removed ``managed-by`` wins (S16).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.tags import RECONCILE_VALUE, ProtocolTags
from fractal_cloud.offers.aws.resources.patch import Operation, pointer
from fractal_cloud.offers.aws.resources.schema import Tagging

NOTHING: Final[Mapping[str, str]] = {}
# CloudFormation's own tags; AWS lets nobody write tags that begin so.
_STACK: Final = ("aws:cloudformation:stack-name", "aws:cloudformation:stack-id")


def read(tagging: Tagging, value: Any) -> Mapping[str, str]:
    """The tags that a property holds."""
    if not value:
        return NOTHING
    if isinstance(value, Mapping):
        return {str(key): str(text) for key, text in value.items()}
    return {str(one[tagging.key]): str(one.get(tagging.value) or "") for one in value}


def written(tagging: Tagging, tags: Mapping[str, str]) -> Any:
    """Tags as the property wants them."""
    return dict(tags) if tagging.shape == "map" else [_pair(tagging, key, value) for key, value in tags.items()]


def stack(tags: Mapping[str, str]) -> str | None:
    """The CloudFormation stack that a resource with these tags belongs to; None where there is none."""
    return next((tags[key] for key in _STACK if key in tags), None)


def protocol(rules: TagRules, tags: Mapping[str, str]) -> ProtocolTags:
    """What the tags say to the protocol; what belongs to a stack has another manager (T7)."""
    of_stack = stack(tags)
    found = rules.protocol(tags)
    if of_stack is None:
        return found
    reconcile = RECONCILE_VALUE if found.reconcile else None
    return ProtocolTags.from_values(f"the CloudFormation stack {of_stack}", reconcile, found.owner)


def spelled(tagging: Tagging, value: Any, keys: Iterable[str]) -> list[str]:
    """Keys as they stand on a resource whose tags were read; one that is not there stays as it is given."""
    held: dict[str, list[str]] = {}
    for key in read(tagging, value):
        held.setdefault(tagging.folded(key), []).append(key)
    return [one for key in keys for one in held.get(tagging.folded(key), [key])]


def guard(tagging: Tagging, value: Any) -> list[Operation]:
    """The precondition of every patch: the tags are as they were read. What is not there cannot be tested."""
    return [] if value is None else [{"op": "test", "path": pointer("", tagging.property), "value": value}]


def changes(tagging: Tagging, value: Any, add: Mapping[str, str], remove: Iterable[str]) -> list[Operation]:
    """The operations that add, replace and remove single tags in a property as it was read, each as it stands there."""
    at = pointer("", tagging.property)
    if value is None:
        return [{"op": "add", "path": at, "value": written(tagging, add)}] if add else []
    add = {one: text for key, text in add.items() for one in spelled(tagging, value, [key])}
    remove = spelled(tagging, value, remove)
    if isinstance(value, Mapping):
        gone = [{"op": "remove", "path": pointer(at, key)} for key in remove if key in value]
        return [*gone, *({"op": "add", "path": pointer(at, key), "value": text} for key, text in add.items())]
    places = {str(one[tagging.key]): place for place, one in enumerate(value)}
    replaced = [
        {"op": "replace", "path": pointer(pointer(at, places[key]), tagging.value), "value": text}
        for key, text in add.items()
        if key in places
    ]
    gone = [
        {"op": "remove", "path": pointer(at, places[key])}
        for key in sorted((key for key in remove if key in places), key=lambda key: -places[key])
    ]
    new = [
        {"op": "add", "path": pointer(at, "-"), "value": _pair(tagging, key, text)}
        for key, text in add.items()
        if key not in places
    ]
    return [*replaced, *gone, *new]


def _pair(tagging: Tagging, key: str, value: str) -> dict[str, Any]:
    return {tagging.key: key, tagging.value: value, **dict(tagging.extra)}
