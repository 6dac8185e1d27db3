"""The IAM policy under which AWS itself enforces the protocol: only what carries ``managed-by`` can be changed.

The actions are those of the descriptors, so that an offer's calls are granted by being described; what links make and
what AWS asks for beside the resources is written here.

With it the last window is closed: a tag removed after the agent's last read makes AWS refuse the write (S16, S21).
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Final

from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.descriptors import Resource, Service
from fractal_cloud.offers.aws.services import services
from fractal_cloud.offers.aws.services.ec2 import EC2
from fractal_cloud.offers.aws.services.rds import RDS
from fractal_cloud.offers.aws.tags import NAME
from fractal_cloud.offers.registry import installed

Statement = dict[str, Any]

PROTOCOL_KEYS: Final = [MANAGED_BY, RECONCILE, OWNER]
_IS_MANAGED: Final = {"StringEquals": {f"aws:ResourceTag/{MANAGED_BY}": OURS}}
_IS_STAMPED: Final = {"StringEquals": {f"aws:RequestTag/{MANAGED_BY}": OURS}}


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
    """What changes and deletes these resources."""
    return _actions((one.service, (*one.modifies, *one.deletes, *one.needs)) for one in resources)


def _with_own_statements() -> list[Service]:
    """The services that have statements of their own; all others share the common ones."""
    found = {one.service.name: one.service for one in _resources() if one.service.noun is not None}
    return [service for _, service in sorted(found.items())]


def policy(*, bucket_abac: bool = False) -> dict[str, Any]:
    """The least the agent needs. ``bucket_abac``: all its buckets have ABAC on, so that they too are held by tags."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            *_reading(),
            *_creating(),
            *_tagging(),
            *_changing(bucket_abac=bucket_abac),
            *_supporting_permissions(),
            *_linking(),
        ],
    }


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


def _tagging() -> list[Statement]:
    at_creation = {
        "StringEquals": {"ec2:CreateAction": [action.partition(":")[2] for action in _creations(EC2.name)]},
        "ForAllValues:StringEquals": {"aws:TagKeys": [NAME, *PROTOCOL_KEYS]},
    }
    # ForAllValues also fits a request without any keys, such as the one that deletes all tags: hence Null.
    later = {"ForAllValues:StringEquals": {"aws:TagKeys": PROTOCOL_KEYS}, "Null": {"aws:TagKeys": "false"}}
    single = [(service, (one.add, one.remove)) for service in services().values() if (one := service.tagging)]
    return [
        _allow("NameAtCreation", [EC2.action("CreateTags")], None, at_creation),
        _allow("TagProtocolOnly", _actions(single), None, later),
    ]


def _changing(*, bucket_abac: bool) -> list[Statement]:
    sharing = [one for one in _resources() if one.service.noun is None]
    statements = [_allow("ChangeManaged", _changes_of(sharing), None, _IS_MANAGED)]
    for service in _with_own_statements():
        is_held = not service.needs_abac or bucket_abac
        name = f"Change{service.noun}s" if service.needs_abac else f"ChangeManaged{service.noun}s"
        statements.append(_allow(name, _changes(service.name), list(service.scope), _IS_MANAGED if is_held else None))
    return statements


def _supporting_permissions() -> list[Statement]:
    """What AWS asks for beside the resource itself: parts of a database, its password's secret, service roles."""
    parts = [f"arn:*:rds:*:*:{part}:*" for part in ("og", "pg", "secgrp", "snapshot", "subgrp")]
    secrets = ["arn:*:secretsmanager:*:*:secret:rds!*"]
    for_aws = {"BoolIfExists": {"kms:GrantIsForAWSResource": "true"}}
    with_role = sorted(f"{one.name}.amazonaws.com" for one in services().values() if one.has_role)
    roles = {"StringEquals": {"iam:AWSServiceName": with_role}}
    to_eks = {"StringEqualsIfExists": {"iam:PassedToService": "eks.amazonaws.com"}}
    return [
        _allow("PartsOfDatabases", [*_creations(RDS.name), *_changes(RDS.name)], parts),
        _allow("MasterPasswords", ["secretsmanager:CreateSecret", "secretsmanager:TagResource"], secrets),
        _allow("KeysOfMasterPasswords", ["kms:CreateGrant", "kms:DescribeKey"], None, for_aws),
        _allow("ServiceRoles", ["iam:CreateServiceLinkedRole"], None, roles),
        _allow("RoleOfClusters", ["iam:GetRole", "iam:PassRole"], ["arn:*:iam::*:role/*"], to_eks),
    ]


def _linking() -> list[Statement]:
    """What links make: identities below a path of their own, secrets below a name of their own, and nothing else.

    In few words, because IAM counts the letters: the paths keep the patterns small.
    """
    made = ["arn:*:iam::*:user/fractal-cloud/*", "arn:*:iam::*:role/fractal-cloud/*"]
    identities = ["iam:*AccessKey*", "iam:*User", "iam:*UserPolicy", "iam:*RolePolicy"]
    roles = [f"iam:{verb}Role" for verb in ("Create", "Delete", "Get", "Tag")]
    secrets = [
        f"secretsmanager:{verb}"
        for verb in ("CreateSecret", "DeleteSecret", "DescribeSecret", "PutSecretValue", "TagResource")
    ]
    return [
        _allow("ListLinked", ["iam:ListRoles", "iam:ListUsers", "secretsmanager:ListSecrets"]),
        _allow("IdentitiesOfLinks", [*identities, *roles], made),
        _allow("SecretsOfLinks", secrets, ["arn:*:secretsmanager:*:*:secret:fractal-cloud/*"]),
        _allow("ReadMasterPasswords", ["secretsmanager:GetSecretValue"], ["arn:*:secretsmanager:*:*:secret:rds!*"]),
    ]
