"""The resources of the sandbox's AWS: what they are called, whether they exist, and which tags they carry right now.

Reads moto itself, so that the monitor and the access control see the truth at an instant, not an answer that knobs have
changed. Changes nothing. Which call touches which resource is in `effects.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from moto import backends as moto_backends

from fractal_sandbox.aws import accounts, moto_api
from fractal_sandbox.aws.cloudcontrol import refs
from fractal_sandbox.aws.descriptors import RESOURCES, Ref, ref_from_arn, ref_from_id

__all__ = [
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

# The kinds whose place in moto's memory is known here, which is quick; all others are read through moto's own API.
_KEPT: Final = frozenset(
    {
        "bucket",
        "db",
        "ecs-cluster",
        "ecs-service",
        "eks-cluster",
        "instance",
        "security-group",
        "subnet",
        "vpc",
    }
)


def not_found(ref: Ref) -> tuple[str, int, str]:
    """Return code, HTTP status and message with which AWS says that there is no such resource."""
    if refs.is_generic(ref):
        text = f"Resource of type '{ref.kind}' with identifier '{ref.id}' was not found."
        return "ResourceNotFoundException", 400, text
    code, status, message = RESOURCES[ref.kind].facts["not_found"]
    return str(code), int(status), str(message).format(id=ref.id)


def backend(service: str, region: str) -> Any:
    """Return moto's backend of a service in a region of the account at hand; buckets are in region `aws`."""
    get_backend: Any = moto_backends.get_backend
    return get_backend(service)[accounts.current()][region]


def find(ref: Ref) -> Any | None:
    """Return moto's own object for a resource, or what it answers about it, in any state; None if there is none."""
    if ref.kind not in _KEPT:
        return moto_api.items(RESOURCES[ref.kind], ref.region).get(ref.id)
    if ref.kind == "instance":
        return next((found for key, found in _all(ref.kind, ref.region) if key == ref.id), None)
    return next((group[ref.id] for group in _groups(ref.kind, ref.region) if ref.id in group), None)


def exists(ref: Ref) -> bool:
    """Return whether a resource is there and not merely a dead remain (terminated, INACTIVE)."""
    if refs.is_generic(ref):
        return refs.tags_of(ref) is not None
    found = find(ref)
    return found is not None and not _is_dead(ref.kind, found)


def live(kind: str, region: str) -> Iterator[Ref]:
    """Return all resources of a kind that are not dead remains."""
    for resource_id, found in _all(kind, region):
        if not _is_dead(kind, found):
            yield RESOURCES[kind].ref(resource_id, region)


def all_tagged() -> Iterator[tuple[Ref, dict[str, str]]]:
    """Return all resources with their tags, of every region: those of our kinds that are not dead remains, and
    whatever else EC2 keeps tags of."""
    for resource in RESOURCES.values():
        for region in _regions(resource.service) if resource.is_regional else [""]:
            yield from ((ref, tags_shown(ref)) for ref in live(resource.kind, region))
    yield from refs.all_tagged()
    for region in _regions("ec2"):
        for resource_id, tags in list(backend("ec2", region).tags.items()):
            if tags and ref_from_id("ec2", resource_id, region) is None:
                yield Ref(resource_id.rpartition("-")[0], resource_id, region), dict(tags)


def _regions(service: str) -> list[str]:
    """The regions that anybody has asked a service of."""
    get_backend: Any = moto_backends.get_backend
    return list(get_backend(service)[accounts.current()])


def tags_of(ref: Ref) -> dict[str, str] | None:
    """Return the tags a resource carries at this instant; None if it does not exist."""
    if refs.is_generic(ref):
        return refs.tags_of(ref)
    found = find(ref)
    return None if found is None else _tags(ref, found)


def tags_shown(ref: Ref) -> dict[str, str]:
    """Return the tags of a resource that an answer shows: as `tags_of`, but quick for the thousands of a listing."""
    if refs.is_generic(ref):
        return refs.tags_of(ref) or {}
    return _tags(ref, None if _is_of_ec2(ref.kind) else find(ref))


def _is_of_ec2(kind: str) -> bool:
    """Return whether EC2 holds it: moto keeps all tags of EC2 in one place, by id."""
    return RESOURCES[kind].service == "ec2"


def _tags(ref: Ref, found: Any) -> dict[str, str]:
    if _is_of_ec2(ref.kind):
        return dict(backend("ec2", ref.region).tags.get(ref.id, {}))
    if found is None:
        return {}
    if ref.kind not in _KEPT:
        return moto_api.tags(ref)
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
    if kind not in _KEPT:
        return list(moto_api.items(RESOURCES[kind], region).items())
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
