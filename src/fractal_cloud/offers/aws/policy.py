"""The IAM policy under which AWS itself enforces the protocol: only what carries ``managed-by`` can be changed.

The actions are those of the descriptors, so that an offer's calls are granted by being described; what links make and
what AWS asks for beside the resources is written here.

With it the last window is closed: a tag removed after the agent's last read makes AWS refuse the write (S16, S21). And
it is no way to more rights (A7): it writes nothing in IAM, passes no role but those named, and never changes what a
machine runs that has rights of its own. What links need is a document of its own, printed on request; the identities
they make are held by a permissions boundary that the agent cannot change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE
from fractal_cloud.offers.aws import generated_secrets
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.descriptors import Resource, Service
from fractal_cloud.offers.aws.link_storage import BOUNDARY, LINK_TAG, PATH, READ_OBJECTS, USE_BUCKET, WRITE_OBJECTS
from fractal_cloud.offers.aws.resources.rights import statements
from fractal_cloud.offers.aws.services import services
from fractal_cloud.offers.aws.services.cloudtrail import CLOUDTRAIL
from fractal_cloud.offers.aws.services.ec2 import EC2
from fractal_cloud.offers.aws.services.rds import RDS
from fractal_cloud.offers.aws.services.s3 import S3
from fractal_cloud.offers.policy import PLAIN, PolicyOptions, every_match
from fractal_cloud.offers.registry import installed

Statement = dict[str, Any]
Document = dict[str, Any]

PROTOCOL_KEYS: Final = [MANAGED_BY, RECONCILE, OWNER]
MOST_CHARACTERS: Final = 6144  # of a managed policy, white space not counted
_OPTIONS: Final = (
    *("with_links", "with_generated_secrets", "with_history", "assume_roles", "pass_roles"),
    *("boundary", "buckets", "document", "secrets", "types"),
)
_ROLE: Final = re.compile(r"arn:[\w-]+:iam::\d{12}:role/[\w+=,.@/-]+")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,62}\*?")
_SECRET: Final = re.compile(r"(arn:[\w-]+:secretsmanager:[\w-]+:\d{12}:secret:)?[\w/+=.@-]+")
_IS_MANAGED: Final = {"StringEquals": {f"aws:ResourceTag/{MANAGED_BY}": OURS}}
_IS_STAMPED: Final = {"StringEquals": {f"aws:RequestTag/{MANAGED_BY}": OURS}}
_IN_PATH: Final = [f"arn:*:iam::*:{noun}{PATH}*" for noun in ("role", "user")]
_ONLY_THE_MARK: Final = {"ForAllValues:StringEquals": {"aws:TagKeys": LINK_TAG}}
_OWN_PROFILE: Final = f"arn:*:iam::*:instance-profile{PATH}*"
# What may be changed on a machine that has rights of its own: anything but what it runs.
_HARMLESS_ATTRIBUTES: Final = [
    *("BlockDeviceMapping", "DisableApiTermination", "EbsOptimized", "GroupSet", "InstanceType", "SourceDestCheck")
]


def _resources() -> list[Resource]:
    offers = [offer for offer in installed("aws").of_provider("aws") if isinstance(offer, AwsOffer)]
    return sorted((offer.resource for offer in offers), key=lambda one: (one.service.name, one.kind))


def _actions(found: Iterable[tuple[Service, Iterable[str]]]) -> list[str]:
    """The actions of operations, each once; what a pattern among them already covers is left out."""
    actions = {service.action(operation) for service, operations in found for operation in operations}
    patterns = [action for action in actions if "*" in action]
    return sorted(one for one in actions if not any(one != wide and fnmatchcase(one, wide) for wide in patterns))


def _creations(service: str) -> list[str]:
    return _actions((one.service, one.creates) for one in _resources() if one.service.name == service)


def _changes(service: str) -> list[str]:
    return _changes_of(one for one in _resources() if one.service.name == service)


def _changes_of(resources: Iterable[Resource]) -> list[str]:
    """What changes and deletes these resources, but for what only their tags or their names allow."""
    changing = [(one, (*one.modifies, *one.deletes, *one.needs)) for one in resources]
    return _actions((one.service, [name for name in names if name not in one.held_by_tags]) for one, names in changing)


def _held(service: str) -> list[str]:
    return _actions((one.service, one.held_by_tags) for one in _resources() if one.service.name == service)


def _with_own_statements() -> list[Service]:
    """The services that have statements of their own; all others share the common ones."""
    found = {one.service.name: one.service for one in _resources() if one.service.noun is not None}
    return [service for _, service in sorted(found.items())]


def policy(options: PolicyOptions = PLAIN) -> Document | list[Document]:
    """The least the agent needs: a document, or a list of them where IAM's limit or the options ask for several."""
    options.check("aws", _OPTIONS)
    every_match(options.secrets, "secrets", _SECRET, "name or ARN of a secret in AWS Secrets Manager")
    every_match(options.buckets, "buckets", _BUCKET, "name of a bucket, or its beginning with * behind it")
    made = [boundary(options.buckets)] if options.boundary else documents(options)
    if options.document is not None:
        if not 1 <= options.document <= len(made):
            raise PolicyOptionError(f"there is no document {options.document}: there are {len(made)}, counted from 1")
        return made[options.document - 1]
    return made[0] if len(made) == 1 else made


def documents(options: PolicyOptions = PLAIN, *, bucket_abac: bool = False) -> list[Document]:
    """The agent's rights, each document one managed policy: what reads, creates and tags; what changes and passes, for
    one would not hold both; and those of links last, in documents of their own.

    ``bucket_abac``: all its buckets have ABAC on, so that they too are held by tags.
    """
    adding = [*_reading(), *_creating(), *_tagging(bucket_abac=bucket_abac)]
    changing = [
        *_changing(bucket_abac=bucket_abac),
        *_named_buckets(options.buckets),
        *_supporting_permissions(),
        *_passing(options.pass_roles),
        *(_history() if options.with_history else []),
    ]
    apart = [_linking()] if options.with_links else []
    apart += [generated_secrets.rights()] if options.with_generated_secrets else []
    apart += [_resolving(options.secrets)] if options.secrets else []
    apart += [_assuming(options.assume_roles)] if options.assume_roles else []
    apart += [statements(options.types, options.pass_roles)]
    return [document for needed in (adding, changing, *apart) if needed for document in _packed(needed)]


def _history() -> list[Statement]:
    """What naming whoever changed a resource needs: CloudTrail's events, which have no ARN to limit it to."""
    return [_allow("ReadHistory", [CLOUDTRAIL.action("LookupEvents")])]


def _resolving(secrets: Iterable[str]) -> list[Statement]:
    """What declarations' secrets need: the named ones can be read, and no other (A8).

    AWS ends the ARN of a secret with six characters of its own.
    """
    arns = [one if one.startswith("arn:") else f"arn:*:secretsmanager:*:*:secret:{one}-??????" for one in secrets]
    return [_allow("ReadNamedSecrets", ["secretsmanager:GetSecretValue"], sorted(arns))]


def boundary(buckets: Sequence[str] = ()) -> Document:
    """The limit of every identity that links make: objects of this account's buckets, and nothing else."""
    own_account = {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}}
    actions = sorted([*USE_BUCKET, *READ_OBJECTS, *WRITE_OBJECTS])
    arns = [f"arn:*:s3:::{name}{end}" for name in sorted(set(buckets)) for end in ("", "/*")]
    return _document([_allow("ObjectsOfBuckets", actions, arns or ["arn:*:s3:::*"], own_account)])


def _document(statements: Sequence[Statement]) -> Document:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _packed(statements: Sequence[Statement]) -> list[Document]:
    """As few documents as hold these statements, in their order, each within IAM's limit."""
    packed: list[list[Statement]] = [[]]
    for statement in statements:
        if _size([statement]) > MOST_CHARACTERS:
            raise PolicyOptionError(f"{statement['Sid']} is too long for one policy of IAM: name fewer roles")
        if _size([*packed[-1], statement]) > MOST_CHARACTERS:
            packed.append([])
        packed[-1].append(statement)
    return [_document(one) for one in packed]


def _size(statements: Sequence[Statement]) -> int:
    return len("".join(json.dumps(_document(statements)).split()))


def _allow(
    name: str, actions: list[str], resources: list[str] | None = None, condition: dict[str, Any] | None = None
) -> Statement:
    statement: Statement = {"Sid": name, "Effect": "Allow", "Action": actions, "Resource": resources or ["*"]}
    return {**statement, "Condition": condition} if condition else statement


def _ec2(resources: list[str]) -> list[str]:
    return [f"arn:*:ec2:*:*:{resource}" if resource != "image/*" else "arn:*:ec2:*::image/*" for resource in resources]


def _reading() -> list[Statement]:
    by_service = [(service, service.reads) for service in services().values()]
    by_resource = [(one.service, (*one.reads, *(shown.operation for shown in one.listings))) for one in _resources()]
    return [_allow("Read", _actions([*by_service, *by_resource]))]


def _creating() -> list[Statement]:
    """What a call makes bears the stamp; what else the same call touches (the subnet of an instance) need not.

    IAM counts the letters: calls that touch the same share a statement, and so do services whose creations touch
    nothing else.
    """
    in_ec2 = [one for one in _resources() if one.service.name == EC2.name]
    touched: dict[tuple[str, ...], list[str]] = {}
    for name, what in sorted(pair for one in in_ec2 for pair in one.touches.items()):
        touched.setdefault(what, []).append(name)
    others = [one for one in _resources() if one.service.name != EC2.name and not one.service.scope]
    return [
        _allow("CreateStamped", _creations(EC2.name), _ec2([one.arn.format(id="*") for one in in_ec2]), _IS_STAMPED),
        *(
            _allow(f"Touch{names[0]}", [EC2.action(name) for name in names], _ec2(list(what)))
            for what, names in touched.items()
        ),
        _allow("CreateOthersStamped", _actions((one.service, one.creates) for one in others), None, _IS_STAMPED),
        *(
            _allow(f"Create{one.noun}Stamped", _creations(one.name), list(one.scope), _IS_STAMPED)
            for one in _with_own_statements()
            if one.scope
        ),
    ]


def _tagging(*, bucket_abac: bool) -> list[Statement]:
    """Tags of the protocol wherever no other manager's name stands; the user's own (T1) only with the stamp or on what
    bears it, and they are never taken off.
    """
    at_creation = {
        "StringEquals": {"ec2:CreateAction": [action.partition(":")[2] for action in _creations(EC2.name)]},
    }
    # ForAllValues also fits a request without any keys, such as the one that deletes all tags: hence Null.
    # What bears another manager's name is never taken from him, by a Force Push neither (T7).
    later = {
        "ForAllValues:StringEquals": {"aws:TagKeys": PROTOCOL_KEYS},
        "Null": {"aws:TagKeys": "false"},
        "StringEqualsIfExists": _IS_MANAGED["StringEquals"],
    }
    users_own = {"ForAllValues:StringNotEquals": {"aws:TagKeys": PROTOCOL_KEYS}}
    tagged = [(service, one) for service in services().values() if (one := service.tagging)]
    adding = _actions((service, [one.add]) for service, one in tagged)
    unheld = _tags_of_buckets() if not bucket_abac else []
    return [
        _allow("TagAtCreation", [EC2.action("CreateTags")], None, at_creation),
        _allow("TagProtocolOnly", _actions((service, (one.add, one.remove)) for service, one in tagged), None, later),
        _allow("TagWithStamp", adding, None, {**_IS_STAMPED, "StringEqualsIfExists": _IS_MANAGED["StringEquals"]}),
        _allow("TagManaged", [one for one in adding if one not in unheld], None, _IS_MANAGED),
        *([_allow("TagBuckets", unheld, ["arn:*:s3:::*"], users_own)] if unheld else []),
    ]


def _tags_of_buckets() -> list[str]:
    """What tags a bucket: without ABAC, no condition on a bucket's tags holds."""
    named = {one.iam or one.name for one in _with_own_statements() if one.needs_abac}
    by_bucket = [one for one in services().values() if one.tagging and (one.iam or one.name) in named]
    return _actions((one, [one.tagging.add]) for one in by_bucket if one.tagging)


def _changing(*, bucket_abac: bool) -> list[Statement]:
    sharing = [one for one in _resources() if one.service.noun is None]
    running = EC2.action("ModifyInstanceAttribute")
    statements = [
        _allow("ChangeManaged", [one for one in _changes_of(sharing) if one != running], None, _IS_MANAGED),
        *_changing_machines(running),
    ]
    for service in _with_own_statements():
        is_held = not service.needs_abac or bucket_abac
        name = f"Change{service.noun}s" if service.needs_abac else f"ChangeManaged{service.noun}s"
        statements.append(_allow(name, _changes(service.name), list(service.scope), _IS_MANAGED if is_held else None))
        if held := _held(service.name):
            statements.append(_allow(f"ChangeManaged{service.noun}s", held, list(service.scope), _IS_MANAGED))
    return statements


def _named_buckets(names: Sequence[str]) -> list[Statement]:
    """What deletes objects or shows who asks for them, of the buckets that were named: their tags say nothing there."""
    arns = [f"arn:*:s3:::{name}" for name in sorted(set(names))]
    return [_allow("ChangeNamedBuckets", _held(S3.name), arns)] if names else []


def _changing_machines(action: str) -> list[Statement]:
    """Whoever writes the start-up script of a machine has the machine's rights: it is written only where it has none.

    A profile below the path of links is no exception in substance: the roles in it are held by the boundary.
    """
    machines = _ec2(["instance/*"])
    without_rights = {**_IS_MANAGED, "ArnLikeIfExists": {"ec2:InstanceProfile": _OWN_PROFILE}}
    harmless = {**_IS_MANAGED, "StringEqualsIgnoreCase": {"ec2:Attribute": _HARMLESS_ATTRIBUTES}}
    return [
        _allow("ChangeMachinesWithoutRights", [action], machines, without_rights),
        _allow("ChangeOtherMachines", [action], machines, harmless),
    ]


def _supporting_permissions() -> list[Statement]:
    """What AWS asks for beside the resource itself: parts of a database, and its password's secret.

    That secret is made by RDS with the agent's rights; the agent itself has no way into Secrets Manager or KMS by it.
    """
    parts = [f"arn:*:rds:*:*:{part}:*" for part in ("og", "pg", "secgrp", "snapshot", "subgrp")]
    secrets = ["arn:*:secretsmanager:*:*:secret:rds!*"]
    by_rds = {"Bool": {"aws:ViaAWSService": "true"}}
    for_aws = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    return [
        _allow("PartsOfDatabases", [*_creations(RDS.name), *_changes(RDS.name)], parts),
        _allow("MasterPasswords", ["secretsmanager:CreateSecret", "secretsmanager:TagResource"], secrets, by_rds),
        _allow("KeysOfMasterPasswords", ["kms:CreateGrant"], None, for_aws),
        _allow("ReadKeys", ["kms:DescribeKey"]),
    ]


def _passing(roles: Sequence[str]) -> list[Statement]:
    """The roles that were named, each to the services whose resources take one, and no other."""
    if not roles:
        return []
    every_match(roles, "pass_roles", _ROLE, "ARN of one role, such as arn:aws:iam::123456789012:role/eks")
    takers = sorted(one for service in services().values() for one in service.roles_of)
    named = sorted(set(roles))
    return [
        _allow("ReadPassedRoles", ["iam:GetRole"], named),
        _allow("PassRoles", ["iam:PassRole"], named, {"StringEquals": {"iam:PassedToService": takers}}),
    ]


def _assuming(roles: Sequence[str]) -> list[Statement]:
    """The roles of other accounts that were named, and no other."""
    every_match(roles, "assume_roles", _ROLE, "ARN of one role, such as arn:aws:iam::123456789012:role/fractal-cloud")
    return [_allow("AssumeRolesOfRealms", ["sts:AssumeRole"], sorted(set(roles)))]


def _linking() -> list[Statement]:
    """What links make: identities below a path of their own, held by the boundary, and secrets of a name of their own.

    No policy is attached and no boundary changed or removed. Whoever is not there is shown without a path, so reading
    is not limited to it.
    """
    bounded = {"StringLike": {"iam:PermissionsBoundary": BOUNDARY.format("*", "${aws:PrincipalAccount}")}}
    reading = [f"iam:{one}" for one in ("GetRole", "GetRolePolicy", "GetUser", "GetUserPolicy", "ListAccessKeys")]
    making = [f"iam:{verb}" for verb in ("CreateRole", "CreateUser", "PutRolePolicy", "PutUserPolicy")]
    keys = [f"iam:{verb}AccessKey" for verb in ("Create", "Delete")]
    ending = [f"iam:Delete{noun}" for noun in ("Role", "RolePolicy", "User", "UserPolicy")]
    secrets = [
        f"secretsmanager:{verb}"
        for verb in ("CreateSecret", "DeleteSecret", "DescribeSecret", "PutSecretValue", "TagResource")
    ]
    return [
        _allow("ReadLinked", [*reading, "iam:ListRoles", "iam:ListUsers", "secretsmanager:ListSecrets"]),
        _allow("BoundedIdentities", making, _IN_PATH, bounded),
        _allow("IdentitiesOfLinks", [*keys, *ending, "iam:TagRole", "iam:TagUser"], _IN_PATH, _ONLY_THE_MARK),
        _allow("SecretsOfLinks", secrets, ["arn:*:secretsmanager:*:*:secret:fractal-cloud/*"], _ONLY_THE_MARK),
        _allow("ReadMasterPasswords", ["secretsmanager:GetSecretValue"], ["arn:*:secretsmanager:*:*:secret:rds!*"]),
    ]
