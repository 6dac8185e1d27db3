"""What the properties of a resource refer to, by the schema: whether it is there, and who still refers to something.

A schema says of some properties which type's identifier they hold (`relationshipRef`, or the format of an id). Only
those of networks, and what a relation names, are looked up: for others services accept what is not there yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fractal_sandbox.aws.cloudcontrol.parts import parts
from fractal_sandbox.aws.cloudcontrol.paths import found, parsed
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE
from fractal_sandbox.aws.cloudcontrol.twins import Refused

__all__ = ["drop_parts", "refuse_missing", "refuse_used"]

_IDS: Final[Mapping[str, str]] = {
    "AWS::EC2::SecurityGroup.Id": "AWS::EC2::SecurityGroup",
    "AWS::EC2::Subnet.Id": "AWS::EC2::Subnet",
    "AWS::EC2::VPC.Id": "AWS::EC2::VPC",
}
_NOUNS: Final[Mapping[str, str]] = {
    "AWS::EC2::SecurityGroup": "security group",
    "AWS::EC2::Subnet": "subnet ID",
    "AWS::EC2::VPC": "vpc ID",
}


def refuse_missing(schema: TypeSchema, model: Mapping[str, Any], region: str) -> None:
    """Raise for the first thing that properties refer to and that does not exist."""
    for target, wanted, value in _references(schema, {"properties": schema.properties}, model):
        if target.name != schema.name and not _exists(target, wanted, value, region):
            noun = _NOUNS.get(target.name, f"{target.name.rpartition('::')[2]} with {wanted}")
            raise Refused("NotFound", f"The {noun} '{value}' does not exist")


def refuse_used(schema: TypeSchema, identifier: str, region: str) -> None:
    """Raise where a part that holds what is to be deleted is there, or something of EC2 still names it."""
    for other, one in _naming(schema, identifier, region):
        part = parts().get(other.name)
        is_part = part is not None and part.parent == schema.name
        if part.blocks if part is not None and is_part else schema.name.split("::")[1] == "EC2":
            kind = schema.name.rpartition("::")[2]
            message = f"The {kind} '{identifier}' has dependencies and cannot be deleted: {other.name} {one}"
            raise Refused("ResourceConflict", message)


def drop_parts(schema: TypeSchema, identifier: str, region: str) -> None:
    """Remove what goes with what is deleted."""
    for other, one in _naming(schema, identifier, region):
        part = parts().get(other.name)
        if part is not None and part.parent == schema.name:
            STORE.drop(other, one, region)


def _naming(schema: TypeSchema, identifier: str, region: str) -> list[tuple[TypeSchema, str]]:
    """Return the resources of the same service that name another: by its identifier, or by what parts name it with."""
    model = STORE.find(schema, identifier, region) or {}
    service, found = schema.name.split("::")[1], []
    for other, one in STORE.of_service(service, region):
        shown = None if other.name == schema.name else STORE.find(other, one, region)
        if shown is None:
            continue
        part = parts().get(other.name)
        names = {identifier}
        if part is not None and part.parent == schema.name:
            names |= {str(model[name]) for name in part.holds if name in model}
        if any(isinstance(value, str) and value in names for value in shown.values()):
            found.append((other, one))
    return found


def _exists(target: TypeSchema, wanted: str, value: str, region: str) -> bool:
    if STORE.tags(target, value, region) is not None:
        return True
    return any(value in found(model, parsed(wanted)) for _, model in STORE.all(target, region))


def _references(
    schema: TypeSchema, at: Mapping[str, Any], value: Any, depth: int = 0
) -> Iterator[tuple[TypeSchema, str, str]]:
    """Yield what is referred to: its type, the property of it that is named, and the value."""
    at = schema.resolved(at)
    if isinstance(value, str):
        target = _target(at)
        if target is not None and value and not value.startswith("arn:"):
            yield (*target, value)
    elif isinstance(value, list):
        for one in value:
            yield from _references(schema, at.get("items") or {}, one, depth + 1)
    elif isinstance(value, Mapping) and depth < 20:
        for name, inner in (at.get("properties") or {}).items():
            if name in value:
                yield from _references(schema, inner, value[name], depth + 1)


def _target(at: Mapping[str, Any]) -> tuple[TypeSchema, str] | None:
    """Return what a property refers to; None where it may be one of several things, or nobody knows."""
    relation = at.get("relationshipRef")
    if isinstance(relation, Mapping):
        target = catalog().find(str(relation.get("typeName")))
        return None if target is None else (target, str(relation.get("propertyPath")))
    target = catalog().find(_IDS.get(str(at.get("format")), ""))
    return None if target is None else (target, "/properties/Id")
