"""The resources of Cloud Control as the rest of the sandbox's AWS refers to them: by a `Ref`, an ARN or an id.

A type that the descriptors describe too (`AWS::EC2::VPC`) has their kind, so that whoever reads or changes it by either
API means one resource. Reads what is there at an instant; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE
from fractal_sandbox.aws.cloudcontrol.twins import all_twins, find_twin, identifier_in_arn, twins_of
from fractal_sandbox.aws.cloudcontrol.values import arn_of
from fractal_sandbox.aws.descriptors import RESOURCES, Ref
from fractal_sandbox.calls import Call

__all__ = [
    "SERVICE",
    "all_tagged",
    "arn",
    "is_generic",
    "is_named",
    "named",
    "named_by_tag",
    "names",
    "ref_from_arn",
    "ref_from_id",
    "ref_of",
    "tags_of",
]

SERVICE: Final = "cloudcontrol"
# The kinds of the descriptors, by the types that are the same.
_KINDS: Final[Mapping[str, str]] = {
    "AWS::EC2::Instance": "instance",
    "AWS::EC2::SecurityGroup": "security-group",
    "AWS::EC2::Subnet": "subnet",
    "AWS::EC2::VPC": "vpc",
    "AWS::ECS::Cluster": "ecs-cluster",
    "AWS::ECS::Service": "ecs-service",
    "AWS::EKS::Cluster": "eks-cluster",
    "AWS::RDS::DBInstance": "db",
    "AWS::S3::Bucket": "bucket",
}


def named(call: Call) -> list[Ref]:
    """Return the resource that a call of Cloud Control names."""
    type_name, identifier = call.parameters.get("TypeName"), call.parameters.get("Identifier")
    schema = catalog().find(str(type_name)) if identifier else None
    if schema is None:
        return []
    return [ref_of(schema.name, STORE.primary(schema, str(identifier), call.region), call.region)]


def is_generic(ref: Ref) -> bool:
    """Return whether only Cloud Control's type says what kind of resource this is."""
    return "::" in ref.kind


def ref_of(type_name: str, identifier: str, region: str) -> Ref:
    """Return the resource of a type with this identifier."""
    kind = _KINDS.get(type_name)
    if kind is None or find_twin(type_name) is None:
        return Ref(type_name, identifier, region)
    if kind == "ecs-service":  # its identifier is its ARN and its cluster; here it is `cluster/name`
        identifier = "/".join(identifier.partition("|")[0].split("/")[-2:])
    return RESOURCES[kind].ref(identifier, region)


def arn(ref: Ref) -> str:
    """Return the ARN of a resource of Cloud Control."""
    schema = catalog().find(ref.kind)
    assert schema is not None  # a reference is made of a type that was found
    return arn_of(schema, ref.id, STORE.find(schema, ref.id, ref.region) or {}, ref.region)


def tags_of(ref: Ref) -> dict[str, str] | None:
    """Return the tags that a resource carries at this instant; None where there is none."""
    schema = catalog().find(ref.kind)
    return None if schema is None else STORE.tags(schema, ref.id, ref.region)


def ref_from_arn(arn: str) -> Ref | None:
    """Return the resource of Cloud Control that an ARN names; None where there is none."""
    kept = STORE.by_arn(arn)
    if kept is not None:
        return ref_of(*kept)
    found = identifier_in_arn(arn)
    return None if found is None else ref_of(found[0], found[1], arn.split(":")[3])


def ref_from_id(resource_id: str, region: str) -> Ref | None:
    """Return the resource of EC2 that bears this id; None where there is none."""
    for schema, identifier in STORE.of_service("EC2", region):
        if identifier == resource_id:
            return ref_of(schema.name, identifier, region)
    for type_name in twins_of("ec2"):
        twin = find_twin(type_name)
        if twin is not None and twin.tags(resource_id, region) is not None:
            return ref_of(type_name, resource_id, region)
    return None


def is_named(service: str, identifier: str, region: str) -> bool:
    """Return whether something that no other service has names this in one of its properties."""
    kept = STORE.plain()
    return any(
        where == region and schema.name.split("::")[1] == service and identifier in map(str, model.values())
        for schema, _, where, model in kept
    )


def all_tagged() -> Iterator[tuple[Ref, dict[str, str]]]:
    """Return all resources that no descriptor is about, with their tags, of every region; EC2 lists its own."""
    for schema, identifier, region, _ in STORE.plain():
        yield Ref(schema.name, identifier, region), STORE.tags(schema, identifier, region) or {}
    for type_name in all_twins():
        twin = find_twin(type_name)
        if twin is None or type_name in _KINDS or type_name.startswith("AWS::EC2::"):
            continue
        for region in twin.regions:
            for identifier in twin.identifiers(region):
                yield Ref(type_name, identifier, region), twin.tags(identifier, region) or {}


def named_by_tag(schema: TypeSchema) -> bool:
    """Return whether nothing but the tag `Name` distinguishes resources of a type."""
    chosen = [path for path in schema.identifier if path not in schema.read_only]
    kind = schema.name.rpartition("::")[2]
    return not chosen and not {"Name", f"{kind}Name"} & schema.properties.keys() and bool(schema.tag_property)


def names(region: str) -> dict[str, tuple[str, str]]:
    """Return name and type of every resource that only the tag `Name` distinguishes, by its reference."""
    found = {}
    for schema, identifier, where, _ in STORE.plain():
        if where == region and named_by_tag(schema):
            tags = STORE.tags(schema, identifier, region) or {}
            found[str(ref_of(schema.name, identifier, region))] = (tags.get("Name", ""), schema.name)
    return found
