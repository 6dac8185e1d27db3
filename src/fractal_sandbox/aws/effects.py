"""What an AWS call is about: the resources it names, those it would create, change, tag or delete, and those it shows.

Everything here follows from a parsed call, or from an answer read into a dictionary, by the descriptors. Only what they
do not know is looked up among the resources of Cloud Control, whose calls `cloudcontrol/monitoring.py` reads.
Nothing is changed, and whether an effect is allowed is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fractal_sandbox.aws.answer import walk
from fractal_sandbox.aws.cloudcontrol import refs
from fractal_sandbox.aws.descriptors import RESOURCES, SERVICES, Ref, Resource, ref_from_arn, ref_from_id
from fractal_sandbox.aws.resources import backend
from fractal_sandbox.calls import Call
from fractal_sandbox.monitor_rules import Change

__all__ = [
    "LISTINGS",
    "TAGGING_API",
    "WRITTEN",
    "Listing",
    "changes",
    "created",
    "creation",
    "named",
    "shows_tags_of_named",
    "unclassified",
]

_Operation = tuple[str, str]
TAGGING_API: Final = "resourcegroupstaggingapi"
"""The one service that writes and lists the tags of all others."""


def _kinds(*facts: str) -> dict[_Operation, str]:
    """Return the kind of resource that each operation of some lists is about."""
    return {
        (resource.service, operation): resource.kind
        for resource in RESOURCES.values()
        for fact in facts
        for operation in resource.facts[fact]
    }


# Which kind of resource an operation changes or deletes; the resources themselves are the ones of that kind it names.
# What changes the objects in a bucket is in no descriptor: they are data (O15).
_MODIFIES: Final = _kinds("modifies", "also_modifies")
_REPLACES_TAGS: Final = _kinds("replaces_tags")
_DELETES: Final = _kinds("deletes")
_CHANGES: Final = {**_MODIFIES, **_REPLACES_TAGS, **_DELETES}
_CREATES: Final = _kinds("creates")
# IAM's own calls for tags, which the tagging API does not serve: which parameter names one of which type.
_IAM_TAGS: Final[Mapping[str, tuple[str, str]]] = {
    "TagPolicy": ("AWS::IAM::ManagedPolicy", "PolicyArn"),
    "UntagPolicy": ("AWS::IAM::ManagedPolicy", "PolicyArn"),
    "ListPolicyTags": ("AWS::IAM::ManagedPolicy", "PolicyArn"),
    "TagInstanceProfile": ("AWS::IAM::InstanceProfile", "InstanceProfileName"),
    "UntagInstanceProfile": ("AWS::IAM::InstanceProfile", "InstanceProfileName"),
    "ListInstanceProfileTags": ("AWS::IAM::InstanceProfile", "InstanceProfileName"),
    "TagRole": ("AWS::IAM::Role", "RoleName"),
    "UntagRole": ("AWS::IAM::Role", "RoleName"),
    "ListRoleTags": ("AWS::IAM::Role", "RoleName"),
}
_TAGGING: Final[set[_Operation]] = {
    *(("iam", name) for name in _IAM_TAGS if name.startswith("Tag")),
    *((name, service.tagging["add"]) for name, service in SERVICES.items() if service.tagging),
    (TAGGING_API, "TagResources"),
}
_UNTAGGING: Final[set[_Operation]] = {
    *(("iam", name) for name in _IAM_TAGS if name.startswith("Untag")),
    *((name, service.tagging["remove"]) for name, service in SERVICES.items() if service.tagging),
    (TAGGING_API, "UntagResources"),
}
_TAGS_READ: Final[set[_Operation]] = {
    *(("iam", name) for name in _IAM_TAGS if name.startswith("List")),
    *((name, service.tagging["read"]) for name, service in SERVICES.items() if service.tagging),
    ("s3", "GetBucketTagging"),
}


@dataclass(frozen=True)
class Listing:
    """Where the answer of a reading operation holds resources, and whether it shows their tags."""

    kind: str
    path: str
    ref: Callable[[Call, Any], Ref | None]
    shows_tags: Callable[[Call], bool]
    is_by_name: bool = False  # answers only what the call names, so it is no listing of all there is

    def items(self, data: Mapping[str, Any]) -> list[Any]:
        return list(walk(data, self.path))

    def refs(self, call: Call, data: Mapping[str, Any]) -> list[Ref]:
        found = [self.ref(call, item) for item in self.items(data)]
        return [ref for ref in found if ref is not None]

    def drop(self, data: dict[str, Any], is_unwanted: Callable[[Any], bool]) -> None:
        """Take the unwanted items out of a list in an answer, and whatever held nothing else."""
        outer, _, inner = self.path.partition(".")
        if inner:
            for group in data.get(outer, []):
                group[inner] = [item for item in group.get(inner, []) if not is_unwanted(item)]
            data[outer] = [group for group in data.get(outer, []) if group[inner]]
        elif isinstance(data.get(outer), list):
            data[outer] = [item for item in data[outer] if not is_unwanted(item)]


def named(call: Call) -> list[Ref]:
    """Return the resources that the parameters of a call name."""
    return [ref for ref in _names(call) if ref is not None]


def unclassified(call: Call) -> str | None:
    """Say why nobody knows what a write does, or to what; None where the descriptors do."""
    operation = (call.service, call.operation)
    if not call.is_write or operation in _CREATES:
        return None
    found = _names(call)
    kind = _CHANGES.get(operation)
    if kind is not None:
        is_named = any(ref is not None and ref.kind == kind for ref in found)
        return None if is_named else f"it names no {kind} in a way that is understood"
    if operation in _TAGGING | _UNTAGGING:
        is_named = bool(found) and None not in found
        return None if is_named else "it writes tags of what no offer is about"
    return f"no descriptor says what {call.service}:{call.operation} does"


def changes(call: Call) -> list[tuple[Ref, Change]]:
    """Return what a writing call would do to which existing resources; creating is not among it."""
    operation = (call.service, call.operation)
    if operation in _CREATES or not call.is_write:
        return []
    change = _change(call, operation)
    if change is None:
        return []
    kind = _CHANGES.get(operation)
    return [(ref, change) for ref in named(call) if kind in (None, ref.kind)]


def creation(call: Call) -> tuple[str, dict[str, str]] | None:
    """Return the kind of resource that a call would create, and the tags that travel in the call."""
    operation = (call.service, call.operation)
    if operation not in _CREATES:
        return None
    kind = _CREATES[operation]
    return kind, _tags_in_create(call, kind)


def created(call: Call, data: Mapping[str, Any]) -> list[Ref]:
    """Return the resources that a successful creating call has made, as its answer says."""
    resource = RESOURCES[_CREATES[(call.service, call.operation)]]
    path = resource.facts["creates"][call.operation]
    if not path:  # the request itself names it
        return [ref for ref in named(call) if ref.kind == resource.kind]
    shown = [_shown(resource, call, str(found)) for found in walk(data, path)]
    return [ref for ref in shown if ref is not None]


def shows_tags_of_named(call: Call) -> bool:
    """Return whether a call answers with nothing but the tags of the resources it names."""
    return (call.service, call.operation) in _TAGS_READ


def _change(call: Call, operation: _Operation) -> Change | None:
    if operation in _MODIFIES:
        return Change("modify")
    if operation in _REPLACES_TAGS:
        return Change("replace-tags")
    if operation in _DELETES:
        return Change("delete")
    if operation in _TAGGING:
        return Change("tag", added=_tag_map(call.parameters.get("Tags", call.parameters.get("tags"))))
    if operation in _UNTAGGING:
        removed = _removed_tags(call.parameters)
        return Change("tag", removed=removed, removes_all=not removed)
    return None


def _removed_tags(parameters: Mapping[str, Any]) -> dict[str, str | None]:
    keys = parameters.get("TagKeys", parameters.get("tagKeys"))
    if keys is not None:
        return dict.fromkeys(keys)
    return {tag["Key"]: tag.get("Value") for tag in parameters.get("Tags") or []}


def _tags_in_create(call: Call, kind: str) -> dict[str, str]:
    parameters = call.parameters
    if call.service == "ec2":
        specifications = parameters.get("TagSpecifications") or []
        fitting = [one.get("Tags") for one in specifications if one.get("ResourceType") == kind]
        return {key: value for tags in fitting for key, value in _tag_map(tags).items()}
    if call.service == "s3":
        return _tag_map((parameters.get("CreateBucketConfiguration") or {}).get("Tags"))
    return _tag_map(parameters.get("Tags", parameters.get("tags")))


def _tag_map(tags: Any) -> dict[str, str]:
    if isinstance(tags, Mapping):
        return {str(key): str(value) for key, value in tags.items()}
    return {tag.get("Key", tag.get("key")): tag.get("Value", tag.get("value")) or "" for tag in tags or []}


# Names


def _names(call: Call) -> list[Ref | None]:
    """Return what the parameters of a call name; None for what no offer is about."""
    if call.service == TAGGING_API:
        return [_by_arn(arn) for arn in call.parameters.get("ResourceARNList") or []]
    if call.service == refs.SERVICE:
        return [*refs.named(call)]
    if call.service == "iam" and call.operation in _IAM_TAGS:
        kind, parameter = _IAM_TAGS[call.operation]
        return [Ref(kind, str(call.parameters.get(parameter) or ""), call.region)]
    if call.service not in SERVICES:
        return []
    service = SERVICES[call.service]
    targets = _each(call.parameters.get(service.tagging.get("target", "")))
    found = [_target(call, one) for one in targets]
    if service.name == "ecs":
        return found or _ecs_names(call)
    if service.name == "ec2" and call.parameters.get("AssociationId"):
        found += _of_profile(call)
    for resource in service.resources:
        for name in resource.facts["named_by"]:
            found += [resource.named(value, call.region) for value in _each(call.parameters.get(name))]
    return found


def _of_profile(call: Call) -> list[Ref | None]:
    """The machine whose profile a call names by its association."""
    held = backend("ec2", call.region).iam_instance_profile_associations
    wanted = call.parameters["AssociationId"]
    return [Ref("instance", one, call.region) for one, kept in held.items() if kept.association_id == wanted]


def _target(call: Call, value: str) -> Ref | None:
    """Return what a tagging call names, by its ARN or by an id that says what it is."""
    if value.startswith("arn:"):
        return _by_arn(value)
    found = ref_from_id(call.service, value, call.region)
    return refs.ref_from_id(value, call.region) if found is None and call.service == "ec2" else found


def _by_arn(arn: str) -> Ref | None:
    return ref_from_arn(arn) or refs.ref_from_arn(arn)


def _each(value: Any) -> list[str]:
    """Return the texts of a parameter that holds one or several."""
    return [str(one) for one in value if one] if isinstance(value, list) else [str(value)] if value else []


def _ecs_names(call: Call) -> list[Ref | None]:
    """A service is named inside its cluster, and the cluster that nobody names is `default`."""
    parameters = call.parameters
    if not ({"cluster", "clusters"} & set(parameters) or call.operation.endswith(("Service", "Services"))):
        return []
    clusters = parameters.get("clusters") or [parameters.get("cluster") or "default"]
    names = [one.rsplit("/", 1)[-1] for one in clusters]
    found: list[Ref | None] = [Ref("ecs-cluster", name, call.region) for name in names]
    services = parameters.get("services") or ([parameters["service"]] if parameters.get("service") else [])
    found += [Ref("ecs-service", f"{names[0]}/{one.rsplit('/', 1)[-1]}", call.region) for one in services]
    return found


# Listings


def _shows_tags(mode: str) -> Callable[[Call], bool]:
    if mode == "asked":
        return lambda call: "TAGS" in (call.parameters.get("include") or [])
    return lambda _: mode == "always"


def _shown(resource: Resource, call: Call, value: str) -> Ref | None:
    """Return the resource that an answer shows, by its id or its ARN."""
    return ref_from_arn(value) if value.startswith("arn:") else resource.ref(value, call.region)


def _by(resource: Resource, key: str) -> Callable[[Call, Any], Ref | None]:
    return lambda call, item: _shown(resource, call, str(item[key] if key else item))


def _listings() -> Iterator[tuple[_Operation, Listing]]:
    for resource in RESOURCES.values():
        for one in resource.facts["listings"]:
            listing = Listing(
                resource.kind, one["path"], _by(resource, one["id"]), _shows_tags(one["tags"]), one["is_by_name"]
            )
            yield (resource.service, one["operation"]), listing


def _written() -> Iterator[tuple[_Operation, Listing]]:
    for resource in RESOURCES.values():
        for operation, path in {**resource.facts["creates"], **resource.facts["shown_by"]}.items():
            item, _, key = path.rpartition(".")
            if item:
                yield (
                    (resource.service, operation),
                    Listing(resource.kind, item, _by(resource, key), _shows_tags("always")),
                )


LISTINGS: Final[dict[_Operation, Listing]] = {
    **dict(_listings()),
    (TAGGING_API, "GetResources"): Listing(
        "*", "ResourceTagMappingList", lambda _, item: _by_arn(item["ResourceARN"]), _shows_tags("always")
    ),
    ("ec2", "DescribeTags"): Listing(
        "*", "Tags", lambda call, item: _target(call, item["ResourceId"]), _shows_tags("always")
    ),
}

# Where the answers of writing operations show the resource they have just made or changed.
WRITTEN: Final[dict[_Operation, Listing]] = dict(_written())
