"""What AWS asks of its access control for a call: which actions, on which resources, in which context.

One call asks for several things: `RunInstances` for the machine, its subnet, its groups and its tags; `CreateCluster`
also for the role that it passes. All of them must be allowed. Follows the tables of AWS's Service Authorization
Reference for the calls that agents make; a call it has no table for asks for its own action on every resource, which
only a statement about every resource allows. Reads moto at an instant, under the cloud's lock, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.cloudcontrol import refs
from fractal_sandbox.aws.cloudcontrol.rights import HandlerAct, handler_asks, read_asks
from fractal_sandbox.aws.descriptors import RESOURCES, SERVICES, Ref
from fractal_sandbox.aws.effects import TAGGING_API, changes, creation, named
from fractal_sandbox.aws.iam_evaluation import AuthorizationRequest, PolicyError, decide
from fractal_sandbox.aws.identities import asked_of_iam, passed_roles
from fractal_sandbox.aws.principals import Principal, find_principal
from fractal_sandbox.aws.resources import backend, exists, find, tags_of
from fractal_sandbox.calls import Call
from fractal_sandbox.monitor_rules import Change

__all__ = ["Asked", "asked_for", "denial", "handler_denial"]

_PREFIXES: Final = {"s3control": "s3", TAGGING_API: "tag"}
# S3's actions that are not named as the operations that need them.
_S3_ACTIONS: Final = {
    "DeleteBucketEncryption": "PutEncryptionConfiguration",
    "DeleteBucketLifecycle": "PutLifecycleConfiguration",
    "DeleteObjects": "DeleteObject",
    "DeletePublicAccessBlock": "PutBucketPublicAccessBlock",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListObjectVersions": "ListBucketVersions",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "PutBucketEncryption": "PutEncryptionConfiguration",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
}
# AWS answers these to whoever has a key at all.
_FREE: Final = frozenset({("sts", "GetCallerIdentity")})
_SET_BY_NAME: Final = {"Groups": "GroupSet", "BlockDeviceMappings": "BlockDeviceMapping"}
_NOT_AN_ATTRIBUTE: Final = frozenset({"Attribute", "DryRun", "InstanceId", "Value"})


@dataclass(frozen=True)
class Asked:
    """One thing that a call asks for, before the caller is known."""

    action: str
    resource: str
    context: Mapping[str, str | tuple[str, ...]]

    def by(self, principal: Principal) -> AuthorizationRequest:
        """The request of one caller."""
        whole = {
            "aws:PrincipalAccount": accounts.current(),
            "aws:PrincipalArn": principal.arn,
            "aws:ResourceAccount": accounts.current(),
            "aws:ViaAWSService": "false",
            "aws:username": principal.name,
            **self.context,
        }
        values: dict[str, tuple[str, ...]] = {}
        for key, value in whole.items():  # two tags that differ in case alone are two values of one key
            values[key.lower()] = (*values.get(key.lower(), ()), *((value,) if isinstance(value, str) else value))
        return AuthorizationRequest(self.action, self.resource, values)


def denial(call: Call, *, bucket_abac: bool) -> str | None:
    """Say why the access control refuses a call; None where it is allowed. What cannot be decided is refused.

    `bucket_abac`: conditions on the tags of buckets hold, because they have them switched on.
    """
    if (call.service, call.operation) in _FREE:
        return None
    return _first_refused(call, lambda: asked_for(call, bucket_abac=bucket_abac))


def handler_denial(call: Call, act: HandlerAct) -> str | None:
    """Say why a handler of Cloud Control, which acts as the caller, is refused what it needs; None where it is not."""
    return _first_refused(call, lambda: (Asked(*one) for one in handler_asks(act)))


def _first_refused(call: Call, all_asked: Callable[[], Iterable[Asked]]) -> str | None:
    principal = find_principal(call.access_key)
    if principal is None:
        return None
    who = f"User: {principal.arn} is not authorized"
    try:
        for asked in all_asked():
            decision = decide(asked.by(principal), principal.policies, principal.boundary)
            if not decision.is_allowed:
                return f"{who} to perform: {asked.action} on resource: {asked.resource}: {decision.reason}"
    except PolicyError as error:
        return f"{who}: its policies cannot be evaluated: {error}"
    return None


def asked_for(call: Call, *, bucket_abac: bool = False) -> Iterator[Asked]:
    """Return all that a call asks for."""
    if call.service == "iam":
        yield from (Asked(*one) for one in asked_of_iam(call))
        return
    yield from _TABLES.get(call.service, _of_a_service)(call, bucket_abac)
    for service, role in passed_roles(call):
        yield Asked("iam:PassRole", role, {"iam:PassedToService": service})


# --- services whose calls are about the resources of the descriptors


def _action(call: Call) -> str:
    name = _S3_ACTIONS.get(call.operation, call.operation) if call.service == "s3" else call.operation
    return f"{_PREFIXES.get(call.service, call.service)}:{name}"


def _arn(ref: Ref) -> str:
    if refs.is_generic(ref):
        return refs.arn(ref)
    return RESOURCES[ref.kind].arn(ref.id, ref.region, accounts.current())


def _tagged(key: str, tags: Mapping[str, str | None] | None) -> dict[str, str | tuple[str, ...]]:
    """The tags of a resource or a request as keys of a context. Two that differ in case alone are kept apart."""
    found: dict[str, str | tuple[str, ...]] = {}
    for name, value in (tags or {}).items():
        found[f"aws:{key}/{name}"] = value or ""
    return found


def _requested(tags: Mapping[str, str | None]) -> dict[str, str | tuple[str, ...]]:
    return {**_tagged("RequestTag", tags), "aws:TagKeys": tuple(tags)}


def _on(ref: Ref, *, bucket_abac: bool) -> dict[str, str | tuple[str, ...]]:
    """The context that a resource brings: its tags, which a bucket's only are where that is switched on."""
    return {} if ref.kind == "bucket" and not bucket_abac else _tagged("ResourceTag", tags_of(ref))


def _of_a_service(call: Call, bucket_abac: bool) -> Iterator[Asked]:
    action = _action(call)
    made = creation(call)
    if made is not None:
        kind, tags = made
        service = SERVICES[call.service]
        arn = next((_arn(ref) for ref in named(call) if ref.kind == kind), _arn(Ref(kind, "*", call.region)))
        yield Asked(action, arn, _requested(tags))
        if tags:
            # The single tags of a bucket are a service of their own, of the same prefix.
            adds = service.tagging.get("add") or SERVICES["s3control"].tagging["add"]
            yield Asked(f"{action.partition(':')[0]}:{adds}", arn, _requested(tags))
        return
    touched = changes(call)
    for ref, change in _there(touched):
        context = _on(ref, bucket_abac=bucket_abac)
        if change.kind == "tag":
            context |= _requested({**change.added, **change.removed})
        yield Asked(action, _arn(ref), context)
    if not touched:
        yield from _reading(call, action)


def _there(touched: list[tuple[Ref, Change]]) -> Iterator[tuple[Ref, Change]]:
    """Leave out what does not exist: the answer says that it is not there, and nothing can be done to it."""
    return ((ref, change) for ref, change in touched if exists(ref))


def _reading(call: Call, action: str) -> Iterator[Asked]:
    """What changes nothing that a descriptor knows: a read, or something that nobody here has a table for."""
    if call.service == "s3" and call.parameters.get("Bucket"):
        key = call.parameters.get("Key")
        yield Asked(action, f"arn:aws:s3:::{call.parameters['Bucket']}{f'/{key}' if key else ''}", {})
    else:
        yield Asked(action, "*", {})


# --- EC2


def _of_ec2(call: Call, bucket_abac: bool) -> Iterator[Asked]:
    action, made = _action(call), creation(call)
    if made is not None:
        kind, tags = made
        new = _ec2(call, kind, "*")
        yield Asked(action, new, _requested(tags))
        if tags:
            yield Asked("ec2:CreateTags", new, {**_requested(tags), "ec2:CreateAction": call.operation})
        yield from (Asked(action, arn, context) for arn, context in _beside(call))
        return
    if call.operation in ("CreateTags", "DeleteTags"):
        tags = {tag["Key"]: tag.get("Value") for tag in call.parameters.get("Tags") or []}
        for one in call.parameters.get("Resources") or []:
            kind = EC2_PREFIX_TO_RESOURCE.get(one.rpartition("-")[0], "unknown")
            held = dict(backend("ec2", call.region).tags.get(one, {}))
            yield Asked(action, _ec2(call, kind, one), {**_tagged("ResourceTag", held), **_requested(tags)})
        return
    touched = changes(call)
    for ref, _ in _there(touched):
        context = _on(ref, bucket_abac=bucket_abac)
        if ref.kind == "instance":
            context |= _of_machine(call, ref)
        yield Asked(action, _arn(ref), context)
    yield from (Asked(action, arn, context) for arn, context in _beside(call))
    if not touched:
        yield from _reading(call, action)


def _ec2(call: Call, kind: str, name: str) -> str:
    account = "" if kind == "image" else accounts.current()
    return f"arn:aws:ec2:{call.region}:{account}:{kind}/{name}"


def _beside(call: Call) -> Iterator[tuple[str, Mapping[str, str | tuple[str, ...]]]]:
    """Return what else a call of EC2 has to do with, each with its own tags."""
    parameters = call.parameters
    groups = [*_texts(parameters.get("SecurityGroupIds"))]
    if call.operation == "RunInstances":
        subnets = _texts(parameters.get("SubnetId"))
        for interface in parameters.get("NetworkInterfaces") or []:
            groups += _texts(interface.get("Groups"))
            subnets += _texts(interface.get("SubnetId"))
        yield _ec2(call, "image", str(parameters.get("ImageId") or "*")), {}
        yield _ec2(call, "network-interface", "*"), {}
        yield _ec2(call, "volume", "*"), {}
        if parameters.get("KeyName"):
            yield _ec2(call, "key-pair", str(parameters["KeyName"])), {}
        if parameters.get("LaunchTemplate"):
            yield _ec2(call, "launch-template", "*"), {}
        yield from _with_tags(call, "subnet", subnets)
        yield from _with_tags(call, "security-group", groups)
    elif call.operation in ("CreateSubnet", "CreateSecurityGroup"):
        yield from _with_tags(call, "vpc", _texts(parameters.get("VpcId")))
    elif call.operation == "ModifyInstanceAttribute":
        yield from _with_tags(call, "security-group", _texts(parameters.get("Groups")))
    elif call.operation in ("AuthorizeSecurityGroupEgress", "AuthorizeSecurityGroupIngress"):
        yield _ec2(call, "security-group-rule", "*"), {}


def _with_tags(call: Call, kind: str, ids: Iterable[str]) -> Iterator[tuple[str, Mapping[str, str | tuple[str, ...]]]]:
    for one in ids:
        yield _ec2(call, kind, one), _tagged("ResourceTag", tags_of(Ref(kind, one, call.region)))


def _of_machine(call: Call, ref: Ref) -> dict[str, str | tuple[str, ...]]:
    """The keys of a machine: its profile; and of a call that sets an attribute: which one, and to what."""
    context: dict[str, str | tuple[str, ...]] = {}
    machine = find(ref)
    profile = getattr(machine, "iam_instance_profile", None)
    held = backend("ec2", call.region).iam_instance_profile_associations.get(ref.id)
    if held is not None:
        profile = held.iam_instance_profile
    if profile is not None:
        context["ec2:InstanceProfile"] = str(getattr(profile, "arn", None) or profile["Arn"])
    if call.operation == "ModifyInstanceAttribute":
        given = call.parameters
        sets = {name: value for name, value in given.items() if name not in _NOT_AN_ATTRIBUTE}
        if given.get("Attribute"):
            sets[given["Attribute"][0].upper() + given["Attribute"][1:]] = given.get("Value")
        context["ec2:Attribute"] = tuple(_SET_BY_NAME.get(name, name) for name in sets)
        for name, value in sets.items():
            plain = value.get("Value") if isinstance(value, Mapping) else value
            if isinstance(plain, str | bool | int):
                context[f"ec2:Attribute/{name}"] = str(plain).lower() if isinstance(plain, bool) else str(plain)
    return context


# --- RDS and Secrets Manager


def _of_rds(call: Call, bucket_abac: bool) -> Iterator[Asked]:
    yield from _of_a_service(call, bucket_abac)
    action, parameters = _action(call), call.parameters
    where = f"arn:aws:rds:{call.region}:{accounts.current()}"
    if call.operation in ("CreateDBInstance", "ModifyDBInstance"):
        yield Asked(action, f"{where}:pg:{parameters.get('DBParameterGroupName') or 'default'}", {})
        yield Asked(action, f"{where}:og:{parameters.get('OptionGroupName') or 'default'}", {})
        if parameters.get("DBSubnetGroupName"):
            yield Asked(action, f"{where}:subgrp:{parameters['DBSubnetGroupName']}", {})
    if parameters.get("ManageMasterUserPassword"):
        by_rds = {"aws:ViaAWSService": "true"}
        secret = f"arn:aws:secretsmanager:{call.region}:{accounts.current()}:secret:rds!db-1"
        yield Asked("secretsmanager:CreateSecret", secret, by_rds)
        yield Asked("secretsmanager:TagResource", secret, by_rds)
        yield Asked("kms:DescribeKey", "*", by_rds)
        yield Asked("kms:CreateGrant", "*", {**by_rds, "kms:GrantIsForAWSResource": "true"})
    if call.operation == "DeleteDBInstance" and parameters.get("FinalDBSnapshotIdentifier"):
        database = next(ref for ref in named(call) if ref.kind == "db")
        yield Asked("rds:CreateDBSnapshot", _arn(database), _on(database, bucket_abac=bucket_abac))
        yield Asked("rds:CreateDBSnapshot", f"{where}:snapshot:{parameters['FinalDBSnapshotIdentifier']}", {})


def _of_secrets(call: Call, _: bool) -> Iterator[Asked]:
    action, parameters = _action(call), call.parameters
    tags = {tag["Key"]: tag.get("Value") or "" for tag in parameters.get("Tags") or []}
    where = f"arn:aws:secretsmanager:{call.region}:{accounts.current()}:secret:"
    if call.operation == "CreateSecret":
        yield Asked(action, f"{where}{parameters['Name']}", _requested(tags))
        if tags:
            yield Asked("secretsmanager:TagResource", f"{where}{parameters['Name']}", _requested(tags))
        return
    name = str(parameters.get("SecretId") or "")
    if not name:
        yield Asked(action, "*", {})
        return
    secret = backend("secretsmanager", call.region).secrets.get(name)
    held = {tag["Key"]: tag["Value"] for tag in (secret.tags if secret is not None else None) or []}
    arn = name if name.startswith("arn:") else str(secret.arn) if secret is not None else f"{where}{name}"
    yield Asked(action, arn, {**_tagged("ResourceTag", held), **(_requested(tags) if tags else {})})


def _of_sts(call: Call, _: bool) -> Iterator[Asked]:
    yield Asked(_action(call), str(call.parameters.get("RoleArn") or "*"), {})


def _of_cloudcontrol(call: Call, _: bool) -> Iterator[Asked]:
    """Its own actions are CloudFormation's; what a read's handler needs is asked of the caller in the same breath."""
    yield Asked(f"cloudformation:{call.operation}", "*", {})
    yield from (Asked(*one) for one in read_asks(call))


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value if one] if isinstance(value, list) else [str(value)] if value else []


_TABLES: Final[Mapping[str, Callable[[Call, bool], Iterator[Asked]]]] = {
    "cloudcontrol": _of_cloudcontrol,
    "ec2": _of_ec2,
    "rds": _of_rds,
    "secretsmanager": _of_secrets,
    "sts": _of_sts,
}
