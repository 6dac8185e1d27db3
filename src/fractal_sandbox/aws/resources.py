"""The resources of the sandbox's AWS: what they are called, whether they exist, and which tags they carry right now.

Reads moto's backends directly, so that the monitor and the access control see the truth at an instant, not an answer.
Changes nothing. Which call touches which resource is in `effects.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moto import backends as moto_backends
from moto.core.models import DEFAULT_ACCOUNT_ID

__all__ = [
    "KINDS",
    "Ref",
    "all_tagged",
    "backend",
    "exists",
    "find",
    "live",
    "name_of",
    "not_found",
    "ref_from_arn",
    "tags_of",
    "tags_shown",
]

KINDS: Final = (
    "vpc",
    "subnet",
    "security-group",
    "instance",
    "bucket",
    "db",
    "ecs-cluster",
    "ecs-service",
    "eks-cluster",
)

_SERVICES: Final = {"db": "rds", "ecs-cluster": "ecs", "ecs-service": "ecs", "eks-cluster": "eks"}
_EC2_PREFIXES: Final = {"vpc-": "vpc", "subnet-": "subnet", "sg-": "security-group", "i-": "instance"}
_ARN = re.compile(r"arn:[^:]+:(?P<service>[^:]+):(?P<region>[^:]*):[^:]*:(?P<rest>.+)")
_NOT_FOUND: Final = {
    "vpc": ("InvalidVpcID.NotFound", 400, "The vpc ID '{id}' does not exist"),
    "subnet": ("InvalidSubnetID.NotFound", 400, "The subnet ID '{id}' does not exist"),
    "security-group": ("InvalidGroup.NotFound", 400, "The security group '{id}' does not exist"),
    "instance": ("InvalidInstanceID.NotFound", 400, "The instance ID '{id}' does not exist"),
    "bucket": ("NoSuchBucket", 404, "The specified bucket does not exist: '{id}'"),
    "db": ("DBInstanceNotFound", 404, "DBInstance {id} not found."),
    "ecs-cluster": ("ClusterNotFoundException", 400, "Cluster '{id}' not found."),
    "ecs-service": ("ServiceNotFoundException", 400, "Service '{id}' not found."),
    "eks-cluster": ("ResourceNotFoundException", 404, "No cluster found for name: {id}."),
}


@dataclass(frozen=True)
class Ref:
    """One resource: its kind, its id (an ECS service's is `cluster/name`), and its region (a bucket has none)."""

    kind: str
    id: str
    region: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


def ref_from_arn(arn: str) -> Ref | None:
    """Return the resource that an ARN names; None for kinds the sandbox does not watch."""
    match = _ARN.match(arn)
    if not match:
        return None
    service, region, rest = match["service"], match["region"], match["rest"]
    if service == "s3" and "/" not in rest:
        return Ref("bucket", rest, "")
    if service == "rds" and rest.startswith("db:"):
        return Ref("db", rest.removeprefix("db:").lower(), region)
    if service == "ec2":
        return ec2_ref(rest.rsplit("/", 1)[-1], region)
    kind, _, name = rest.partition("/")
    if service in ("ecs", "eks") and kind in ("cluster", "service"):
        return Ref(f"{service}-{kind}", name, region)
    return None


def ec2_ref(resource_id: str, region: str) -> Ref | None:
    """Return the resource with an EC2 id; None for kinds the sandbox does not watch, such as volumes."""
    for prefix, kind in _EC2_PREFIXES.items():
        if resource_id.startswith(prefix):
            return Ref(kind, resource_id, region)
    return None


def not_found(ref: Ref) -> tuple[str, int, str]:
    """Return code, HTTP status and message with which AWS says that there is no such resource."""
    code, status, message = _NOT_FOUND[ref.kind]
    return code, status, message.format(id=ref.id)


def backend(service: str, region: str) -> Any:
    """Return moto's backend of a service in a region of the one account; buckets are in region `aws`."""
    get_backend: Any = moto_backends.get_backend
    return get_backend(service)[DEFAULT_ACCOUNT_ID][region]


def find(ref: Ref) -> Any | None:
    """Return moto's own object for a resource, whatever state it is in; None if there is none."""
    if ref.kind == "instance":
        return next((found for key, found in _all(ref.kind, ref.region) if key == ref.id), None)
    return next((group[ref.id] for group in _groups(ref.kind, ref.region) if ref.id in group), None)


def exists(ref: Ref) -> bool:
    """Return whether a resource is there and not merely a dead remain (terminated, INACTIVE)."""
    found = find(ref)
    return found is not None and not _is_dead(ref.kind, found)


def live(kind: str, region: str) -> Iterator[Ref]:
    """Return all resources of a kind that are not dead remains."""
    for resource_id, found in _all(kind, region):
        if not _is_dead(kind, found):
            yield Ref(kind, resource_id, "" if kind == "bucket" else region)


def all_tagged() -> Iterator[tuple[Ref, dict[str, str]]]:
    """Return all resources with their tags, of every region: those of our kinds that are not dead remains, and
    whatever else EC2 keeps tags of."""
    yield from ((ref, tags_shown(ref)) for ref in live("bucket", ""))
    for kind in (kind for kind in KINDS if kind != "bucket"):
        service = "ec2" if kind in _EC2_PREFIXES.values() else _SERVICES.get(kind, kind)
        for region in _regions(service):
            yield from ((ref, tags_shown(ref)) for ref in live(kind, region))
    for region in _regions("ec2"):
        for resource_id, tags in list(backend("ec2", region).tags.items()):
            if tags and ec2_ref(resource_id, region) is None:
                yield Ref(resource_id.rpartition("-")[0], resource_id, region), dict(tags)


def _regions(service: str) -> list[str]:
    """The regions that anybody has asked a service of."""
    get_backend: Any = moto_backends.get_backend
    return list(get_backend(service)[DEFAULT_ACCOUNT_ID])


def tags_of(ref: Ref) -> dict[str, str] | None:
    """Return the tags a resource carries at this instant; None if it does not exist."""
    found = find(ref)
    return None if found is None else _tags(ref, found)


def tags_shown(ref: Ref) -> dict[str, str]:
    """Return the tags of a resource that an answer shows: as `tags_of`, but quick for the thousands of a listing."""
    return _tags(ref, None if ref.kind in _EC2_PREFIXES.values() else find(ref))


def _tags(ref: Ref, found: Any) -> dict[str, str]:
    if ref.kind in _EC2_PREFIXES.values():
        return dict(backend("ec2", ref.region).tags.get(ref.id, {}))
    if found is None:
        return {}
    if ref.kind == "bucket":
        return dict(backend("s3", "aws").tagger.get_tag_dict_for_resource(found.arn))
    if ref.kind == "eks-cluster":
        return dict(found.tags or {})
    return {tag.get("Key", tag.get("key")): tag.get("Value", tag.get("value")) for tag in found.tags or []}


def name_of(ref: Ref, tags: Mapping[str, str]) -> tuple[str, str]:
    """Return the name and the scope within its region in which a resource of that name should be the only one."""
    scope = str(find(ref).vpc_id) if ref.kind == "subnet" else ""  # type: ignore[union-attr]
    return tags.get("Name", ""), scope


def _all(kind: str, region: str) -> list[tuple[str, Any]]:
    if kind == "instance":
        reservations = list(backend("ec2", region).reservations.values())
        return [(found.id, found) for reservation in reservations for found in reservation.instances]
    return [item for group in _groups(kind, region) for item in group.items()]


def _groups(kind: str, region: str) -> list[dict[str, Any]]:
    """Return moto's dictionaries by id in which the resources of a kind are kept."""
    if kind == "bucket":
        return [dict(backend("s3", "aws").buckets)]
    if kind == "db":
        return [dict(backend("rds", region).databases)]
    if kind == "ecs-service":
        return [{key.replace(":", "/", 1): found for key, found in backend("ecs", region).services.items()}]
    if kind in ("ecs-cluster", "eks-cluster"):
        return [dict(backend(kind.split("-", maxsplit=1)[0], region).clusters)]
    ec2 = backend("ec2", region)
    if kind == "vpc":
        return [dict(ec2.vpcs)]
    return [dict(group) for group in list((ec2.subnets if kind == "subnet" else ec2.groups).values())]


def _is_dead(kind: str, found: Any) -> bool:
    if kind == "instance":
        return bool(found._state.name == "terminated")  # noqa: SLF001
    return kind in ("ecs-cluster", "ecs-service") and found.status == "INACTIVE"
