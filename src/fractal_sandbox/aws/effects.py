"""What an AWS call is about: the resources it names, those it would create, change, tag or delete, and those it shows.

Everything here follows from a parsed call, or from an answer read into a dictionary; nothing is looked up in the
cloud's state and nothing is changed. Whether an effect is allowed is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fractal_sandbox.aws.resources import Ref, ec2_ref, ref_from_arn
from fractal_sandbox.calls import Call
from fractal_sandbox.monitor_rules import Change

__all__ = [
    "LISTINGS",
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

# Which kind of resource an operation changes or deletes; the resources themselves are the ones of that kind it names.
_MODIFIES: Final[dict[_Operation, str]] = {
    **dict.fromkeys(
        [("ec2", name) for name in ("ModifyVpcAttribute", "ModifyVpcTenancy", "AssociateVpcCidrBlock")]
        + [("ec2", name) for name in ("AssociateDhcpOptions", "DisassociateVpcCidrBlock")],
        "vpc",
    ),
    ("ec2", "ModifySubnetAttribute"): "subnet",
    ("ec2", "AssociateSubnetCidrBlock"): "subnet",
    **dict.fromkeys(
        [("ec2", f"{verb}SecurityGroup{way}") for verb in ("Authorize", "Revoke") for way in ("Ingress", "Egress")]
        + [("ec2", f"UpdateSecurityGroupRuleDescriptions{way}") for way in ("Ingress", "Egress")]
        + [("ec2", "ModifySecurityGroupRules")],
        "security-group",
    ),
    **dict.fromkeys(
        [("ec2", f"{verb}Instances") for verb in ("Start", "Stop", "Reboot", "Monitor", "Unmonitor")]
        + [("ec2", f"ModifyInstance{what}") for what in ("Attribute", "MetadataOptions", "Placement")]
        + [("ec2", "AssociateIamInstanceProfile")],
        "instance",
    ),
    **dict.fromkeys([("rds", f"{verb}DBInstance") for verb in ("Modify", "Start", "Stop", "Reboot")], "db"),
    **dict.fromkeys(
        [("ecs", name) for name in ("UpdateCluster", "UpdateClusterSettings", "PutClusterCapacityProviders")],
        "ecs-cluster",
    ),
    ("ecs", "UpdateService"): "ecs-service",
    ("eks", "UpdateClusterConfig"): "eks-cluster",
    ("eks", "UpdateClusterVersion"): "eks-cluster",
}
_DELETES: Final[dict[_Operation, str]] = {
    ("ec2", "DeleteVpc"): "vpc",
    ("ec2", "DeleteSubnet"): "subnet",
    ("ec2", "DeleteSecurityGroup"): "security-group",
    ("ec2", "TerminateInstances"): "instance",
    ("rds", "DeleteDBInstance"): "db",
    ("ecs", "DeleteCluster"): "ecs-cluster",
    ("ecs", "DeleteService"): "ecs-service",
    ("eks", "DeleteCluster"): "eks-cluster",
    ("s3", "DeleteBucket"): "bucket",
}
# What changes a bucket as a whole. What changes the objects in it is in no table: they are data (O15).
_BUCKETS: Final[set[_Operation]] = {
    ("s3", name)
    for name in (
        *("PutBucketEncryption", "DeleteBucketEncryption", "PutBucketVersioning"),
        *("PutBucketOwnershipControls", "DeleteBucketOwnershipControls"),
        *("PutPublicAccessBlock", "DeletePublicAccessBlock"),
        *("PutBucketTagging", "DeleteBucketTagging"),
    )
}
# What an operation creates, and where its answer holds the new resource.
_CREATES: Final[dict[_Operation, tuple[str, str]]] = {
    ("ec2", "CreateVpc"): ("vpc", "Vpc.VpcId"),
    ("ec2", "CreateSubnet"): ("subnet", "Subnet.SubnetId"),
    ("ec2", "CreateSecurityGroup"): ("security-group", "GroupId"),
    ("ec2", "RunInstances"): ("instance", "Instances.InstanceId"),
    ("rds", "CreateDBInstance"): ("db", "DBInstance.DBInstanceIdentifier"),
    ("ecs", "CreateCluster"): ("ecs-cluster", "cluster.clusterArn"),
    ("ecs", "CreateService"): ("ecs-service", "service.serviceArn"),
    ("eks", "CreateCluster"): ("eks-cluster", "cluster.name"),
    ("s3", "CreateBucket"): ("bucket", ""),
}
_TAGGING: Final[set[_Operation]] = {
    ("ec2", "CreateTags"),
    ("rds", "AddTagsToResource"),
    ("ecs", "TagResource"),
    ("eks", "TagResource"),
    ("s3control", "TagResource"),
    ("resourcegroupstaggingapi", "TagResources"),
}
_UNTAGGING: Final[set[_Operation]] = {
    ("ec2", "DeleteTags"),
    ("rds", "RemoveTagsFromResource"),
    ("ecs", "UntagResource"),
    ("eks", "UntagResource"),
    ("s3control", "UntagResource"),
    ("resourcegroupstaggingapi", "UntagResources"),
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
        return list(_walk(data, self.path.split(".")))

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
    found = _NAMED.get(call.service, _names_none)(call, call.parameters)
    return [ref for ref in found if ref is not None]


def unclassified(call: Call) -> str | None:
    """Say why nobody knows what a write does, or to what; None where the tables do."""
    operation = (call.service, call.operation)
    if not call.is_write or operation in _CREATES:
        return None
    found = _NAMED.get(call.service, _names_none)(call, call.parameters)
    kind = _MODIFIES.get(operation) or _DELETES.get(operation) or ("bucket" if operation in _BUCKETS else None)
    if kind is not None:
        is_named = any(ref is not None and ref.kind == kind for ref in found)
        return None if is_named else f"it names no {kind} in a way that is understood"
    if operation in _TAGGING | _UNTAGGING:
        is_named = bool(found) and None not in found
        return None if is_named else "it writes tags of what no offer is about"
    return f"no table says what {call.service}:{call.operation} does"


def changes(call: Call) -> list[tuple[Ref, Change]]:
    """Return what a writing call would do to which existing resources; creating is not among it."""
    operation = (call.service, call.operation)
    if operation in _CREATES or not call.is_write:
        return []
    change = _change(call, operation)
    if change is None:
        return []
    kind = _MODIFIES.get(operation) or _DELETES.get(operation)
    return [(ref, change) for ref in named(call) if kind in (None, ref.kind)]


def creation(call: Call) -> tuple[str, dict[str, str]] | None:
    """Return the kind of resource that a call would create, and the tags that travel in the call."""
    operation = (call.service, call.operation)
    if operation not in _CREATES:
        return None
    kind, _ = _CREATES[operation]
    return kind, _tags_in_create(call, kind)


def created(call: Call, data: Mapping[str, Any]) -> list[Ref]:
    """Return the resources that a successful creating call has made, as its answer says."""
    kind, path = _CREATES[(call.service, call.operation)]
    if kind == "bucket":
        return [Ref("bucket", call.parameters["Bucket"], "")]
    ids = [str(found) for found in _walk(data, path.split("."))]
    refs = [ref_from_arn(one) if one.startswith("arn:") else Ref(kind, one, call.region) for one in ids]
    return [ref for ref in refs if ref is not None]


def shows_tags_of_named(call: Call) -> bool:
    """Return whether a call answers with nothing but the tags of the resources it names."""
    return call.operation in ("ListTagsForResource", "GetBucketTagging")


def _change(call: Call, operation: _Operation) -> Change | None:
    if operation in _MODIFIES:
        return Change("modify")
    if operation in _DELETES:
        return Change("delete")
    if operation in _TAGGING:
        return Change("tag", added=_tag_map(call.parameters.get("Tags", call.parameters.get("tags"))))
    if operation in _UNTAGGING:
        removed = _removed_tags(call.parameters)
        return Change("tag", removed=removed, removes_all=not removed)
    if call.service == "s3":
        whole_set = call.operation in ("PutBucketTagging", "DeleteBucketTagging")
        return Change("replace-tags" if whole_set else "modify")
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


def _walk(value: Any, path: list[str]) -> Iterator[Any]:
    """Yield what is found at a path of names, going into every item of every list on the way."""
    if isinstance(value, list):
        for item in value:
            yield from _walk(item, path)
    elif not path or not path[0]:
        yield value
    elif isinstance(value, Mapping) and value.get(path[0]) is not None:
        yield from _walk(value[path[0]], path[1:])


# Names, service by service


def _names_none(_: Call, __: Mapping[str, Any]) -> list[Ref | None]:
    return []


def _ec2_names(call: Call, parameters: Mapping[str, Any]) -> list[Ref | None]:
    ids: list[str] = []
    for name in ("VpcId", "SubnetId", "GroupId", "InstanceId"):
        ids += [parameters[name]] if parameters.get(name) else []
        ids += parameters.get(f"{name}s") or []
    ids += parameters.get("Resources") or []
    return [ec2_ref(one, call.region) for one in ids]


def _s3_names(_: Call, parameters: Mapping[str, Any]) -> list[Ref | None]:
    return [Ref("bucket", parameters["Bucket"], "")] if parameters.get("Bucket") else []


def _rds_names(call: Call, parameters: Mapping[str, Any]) -> list[Ref | None]:
    refs: list[Ref | None] = [ref_from_arn(parameters["ResourceName"])] if parameters.get("ResourceName") else []
    if parameters.get("DBInstanceIdentifier"):
        refs.append(Ref("db", parameters["DBInstanceIdentifier"].lower(), call.region))
    return refs


def _ecs_names(call: Call, parameters: Mapping[str, Any]) -> list[Ref | None]:
    if parameters.get("resourceArn"):
        return [ref_from_arn(parameters["resourceArn"])]
    if not ({"cluster", "clusters"} & set(parameters) or call.operation.endswith(("Service", "Services"))):
        return []
    clusters = parameters.get("clusters") or [parameters.get("cluster") or "default"]
    names = [one.rsplit("/", 1)[-1] for one in clusters]
    refs: list[Ref | None] = [Ref("ecs-cluster", name, call.region) for name in names]
    services = parameters.get("services") or ([parameters["service"]] if parameters.get("service") else [])
    refs += [Ref("ecs-service", f"{names[0]}/{one.rsplit('/', 1)[-1]}", call.region) for one in services]
    return refs


def _eks_names(call: Call, parameters: Mapping[str, Any]) -> list[Ref | None]:
    if parameters.get("resourceArn"):
        return [ref_from_arn(parameters["resourceArn"])]
    name = parameters.get("name") or parameters.get("clusterName")
    return [Ref("eks-cluster", name, call.region)] if name else []


def _arn_names(_: Call, parameters: Mapping[str, Any]) -> list[Ref | None]:
    return [ref_from_arn(arn) for arn in parameters.get("ResourceARNList") or []]


def _s3control_names(_: Call, parameters: Mapping[str, Any]) -> list[Ref | None]:
    return [ref_from_arn(parameters["ResourceArn"])] if parameters.get("ResourceArn") else []


_NAMED: Final[dict[str, Callable[[Call, Mapping[str, Any]], list[Ref | None]]]] = {
    "ec2": _ec2_names,
    "s3": _s3_names,
    "s3control": _s3control_names,
    "rds": _rds_names,
    "ecs": _ecs_names,
    "eks": _eks_names,
    "resourcegroupstaggingapi": _arn_names,
}


# Listings


def _always(_: Call) -> bool:
    return True


def _never(_: Call) -> bool:
    return False


def _with_tags(call: Call) -> bool:
    return "TAGS" in (call.parameters.get("include") or [])


def _by(kind: str, key: str) -> Callable[[Call, Any], Ref | None]:
    return lambda call, item: Ref(kind, item[key], call.region)


def _by_arn(key: str = "") -> Callable[[Call, Any], Ref | None]:
    return lambda _, item: ref_from_arn(item[key] if key else item)


LISTINGS: Final[dict[_Operation, Listing]] = {
    ("ec2", "DescribeVpcs"): Listing("vpc", "Vpcs", _by("vpc", "VpcId"), _always),
    ("ec2", "DescribeSubnets"): Listing("subnet", "Subnets", _by("subnet", "SubnetId"), _always),
    ("ec2", "DescribeSecurityGroups"): Listing(
        "security-group", "SecurityGroups", _by("security-group", "GroupId"), _always
    ),
    ("ec2", "DescribeInstances"): Listing("instance", "Reservations.Instances", _by("instance", "InstanceId"), _always),
    ("rds", "DescribeDBInstances"): Listing("db", "DBInstances", _by("db", "DBInstanceIdentifier"), _always),
    ("ecs", "ListClusters"): Listing("ecs-cluster", "clusterArns", _by_arn(), _never),
    ("ecs", "DescribeClusters"): Listing("ecs-cluster", "clusters", _by_arn("clusterArn"), _with_tags, is_by_name=True),
    ("ecs", "ListServices"): Listing("ecs-service", "serviceArns", _by_arn(), _never),
    ("ecs", "DescribeServices"): Listing("ecs-service", "services", _by_arn("serviceArn"), _with_tags, is_by_name=True),
    ("eks", "ListClusters"): Listing(
        "eks-cluster", "clusters", lambda call, name: Ref("eks-cluster", name, call.region), _never
    ),
    ("eks", "DescribeCluster"): Listing("eks-cluster", "cluster", _by("eks-cluster", "name"), _always, is_by_name=True),
    ("s3", "ListBuckets"): Listing("bucket", "Buckets", lambda _, item: Ref("bucket", item["Name"], ""), _never),
    ("resourcegroupstaggingapi", "GetResources"): Listing(
        "*", "ResourceTagMappingList", _by_arn("ResourceARN"), _always
    ),
    ("ec2", "DescribeTags"): Listing("*", "Tags", lambda call, item: ec2_ref(item["ResourceId"], call.region), _always),
}

# Where the answers of writing operations show the resource they have just made or changed.
WRITTEN: Final[dict[_Operation, Listing]] = {
    ("ec2", "CreateVpc"): Listing("vpc", "Vpc", _by("vpc", "VpcId"), _always),
    ("ec2", "CreateSubnet"): Listing("subnet", "Subnet", _by("subnet", "SubnetId"), _always),
    ("ec2", "RunInstances"): Listing("instance", "Instances", _by("instance", "InstanceId"), _always),
    ("rds", "CreateDBInstance"): Listing("db", "DBInstance", _by("db", "DBInstanceIdentifier"), _always),
    ("rds", "ModifyDBInstance"): Listing("db", "DBInstance", _by("db", "DBInstanceIdentifier"), _always),
    ("ecs", "CreateCluster"): Listing("ecs-cluster", "cluster", _by_arn("clusterArn"), _always),
    ("ecs", "DeleteCluster"): Listing("ecs-cluster", "cluster", _by_arn("clusterArn"), _always),
    ("ecs", "CreateService"): Listing("ecs-service", "service", _by_arn("serviceArn"), _always),
    ("ecs", "UpdateService"): Listing("ecs-service", "service", _by_arn("serviceArn"), _always),
    ("ecs", "DeleteService"): Listing("ecs-service", "service", _by_arn("serviceArn"), _always),
    ("eks", "CreateCluster"): Listing("eks-cluster", "cluster", _by("eks-cluster", "name"), _always),
}
