"""The IAM policy under which AWS itself enforces the protocol: only what carries ``managed-by`` can be changed.

With it the last window is closed: a tag removed after the agent's last read makes AWS refuse the write (S16, S21).
"""

from __future__ import annotations

from typing import Any, Final

from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE
from fractal_cloud.offers.aws.tags import NAME

Statement = dict[str, Any]

PROTOCOL_KEYS: Final = [MANAGED_BY, RECONCILE, OWNER]
_IS_MANAGED: Final = {"StringEquals": {f"aws:ResourceTag/{MANAGED_BY}": OURS}}
_IS_STAMPED: Final = {"StringEquals": {f"aws:RequestTag/{MANAGED_BY}": OURS}}

_READS: Final = [
    "ec2:Describe*",
    "ecs:DescribeClusters",
    "ecs:DescribeServices",
    "ecs:ListClusters",
    "ecs:ListServices",
    "ecs:ListTagsForResource",
    "ecs:ListTasks",
    "eks:DescribeCluster",
    "eks:DescribeUpdate",
    "eks:ListClusters",
    "rds:DescribeDBInstances",
    "rds:ListTagsForResource",
    "s3:GetBucketLocation",
    "s3:GetBucketOwnershipControls",
    "s3:GetBucketPublicAccessBlock",
    "s3:GetBucketTagging",
    "s3:GetBucketVersioning",
    "s3:GetEncryptionConfiguration",
    "s3:ListAllMyBuckets",
    "s3:ListBucket",
    "s3:ListBucketVersions",
    "s3:ListTagsForResource",
    "sts:GetCallerIdentity",
    "tag:GetResources",
]
# What a call makes bears the stamp; what else the same call touches (the subnet of an instance) need not.
_EC2_CREATES: Final = ["ec2:CreateSecurityGroup", "ec2:CreateSubnet", "ec2:CreateVpc", "ec2:RunInstances"]
_EC2_MADE: Final = ["instance/*", "security-group/*", "subnet/*", "vpc/*"]
_EC2_TOUCHED: Final[dict[str, list[str]]] = {
    "ec2:CreateSubnet": ["vpc/*"],
    "ec2:CreateSecurityGroup": ["vpc/*"],
    "ec2:RunInstances": [
        "image/*",
        "key-pair/*",
        "network-interface/*",
        "security-group/*",
        "subnet/*",
        "volume/*",
    ],
    "ec2:ModifyInstanceAttribute": ["security-group/*", "volume/*"],
}
_OTHER_CREATES: Final = ["ecs:CreateCluster", "ecs:CreateService", "eks:CreateCluster"]
_CHANGES: Final = [
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteSubnet",
    "ec2:DeleteVpc",
    "ec2:ModifyInstanceAttribute",
    "ec2:ModifySubnetAttribute",
    "ec2:ModifyVpcAttribute",
    "ec2:RevokeSecurityGroupEgress",
    "ec2:RevokeSecurityGroupIngress",
    "ec2:StartInstances",
    "ec2:StopInstances",
    "ec2:TerminateInstances",
    "ec2:UpdateSecurityGroupRuleDescriptionsEgress",
    "ec2:UpdateSecurityGroupRuleDescriptionsIngress",
    "ecs:DeleteCluster",
    "ecs:DeleteService",
    "ecs:PutClusterCapacityProviders",
    "ecs:UpdateCluster",
    "ecs:UpdateService",
    "eks:DeleteCluster",
    "eks:UpdateClusterConfig",
    "eks:UpdateClusterVersion",
]
_RDS_CHANGES: Final = ["rds:CreateDBSnapshot", "rds:DeleteDBInstance", "rds:ModifyDBInstance"]
_BUCKET_CHANGES: Final = [
    "s3:DeleteBucket",
    "s3:PutBucketOwnershipControls",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutBucketVersioning",
    "s3:PutEncryptionConfiguration",
]
_TAGGING: Final = [
    "ec2:CreateTags",
    "ec2:DeleteTags",
    "ecs:TagResource",
    "ecs:UntagResource",
    "eks:TagResource",
    "eks:UntagResource",
    "rds:AddTagsToResource",
    "rds:RemoveTagsFromResource",
    "s3:TagResource",
    "s3:UntagResource",
]


def policy(*, bucket_abac: bool = False) -> dict[str, Any]:
    """The least the agent needs. ``bucket_abac``: all its buckets have ABAC on, so that they too are held by tags."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            *_reading(),
            *_creating(),
            *_tagging(),
            *_changing(bucket_abac=bucket_abac),
            *_helping(),
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
    return [_allow("Read", _READS)]


def _creating() -> list[Statement]:
    return [
        _allow("CreateStamped", _EC2_CREATES, _ec2(_EC2_MADE), _IS_STAMPED),
        *(
            _allow(f"Touch{action.partition(':')[2]}", [action], _ec2(resources))
            for action, resources in _EC2_TOUCHED.items()
        ),
        _allow("CreateOthersStamped", _OTHER_CREATES, None, _IS_STAMPED),
        _allow("CreateDatabaseStamped", ["rds:CreateDBInstance"], ["arn:*:rds:*:*:db:*"], _IS_STAMPED),
        _allow("CreateBucketStamped", ["s3:CreateBucket"], ["arn:*:s3:::*"], _IS_STAMPED),
    ]


def _tagging() -> list[Statement]:
    at_creation = {
        "StringEquals": {"ec2:CreateAction": [action.partition(":")[2] for action in _EC2_CREATES]},
        "ForAllValues:StringEquals": {"aws:TagKeys": [NAME, *PROTOCOL_KEYS]},
    }
    # ForAllValues also fits a request without any keys, such as the one that deletes all tags: hence Null.
    later = {"ForAllValues:StringEquals": {"aws:TagKeys": PROTOCOL_KEYS}, "Null": {"aws:TagKeys": "false"}}
    return [
        _allow("NameAtCreation", ["ec2:CreateTags"], None, at_creation),
        _allow("TagProtocolOnly", _TAGGING, None, later),
    ]


def _changing(*, bucket_abac: bool) -> list[Statement]:
    return [
        _allow("ChangeManaged", _CHANGES, None, _IS_MANAGED),
        _allow("ChangeManagedDatabases", _RDS_CHANGES, ["arn:*:rds:*:*:db:*"], _IS_MANAGED),
        _allow("ChangeBuckets", _BUCKET_CHANGES, ["arn:*:s3:::*"], _IS_MANAGED if bucket_abac else None),
    ]


def _helping() -> list[Statement]:
    """What AWS asks for beside the resource itself: parts of a database, its password's secret, service roles."""
    parts = [f"arn:*:rds:*:*:{part}:*" for part in ("og", "pg", "secgrp", "snapshot", "subgrp")]
    secrets = ["arn:*:secretsmanager:*:*:secret:rds!*"]
    for_aws = {"BoolIfExists": {"kms:GrantIsForAWSResource": "true"}}
    services = {"iam:AWSServiceName": ["ecs.amazonaws.com", "eks.amazonaws.com", "rds.amazonaws.com"]}
    to_eks = {"StringEqualsIfExists": {"iam:PassedToService": "eks.amazonaws.com"}}
    return [
        _allow("PartsOfDatabases", ["rds:CreateDBInstance", *_RDS_CHANGES], parts),
        _allow("MasterPasswords", ["secretsmanager:CreateSecret", "secretsmanager:TagResource"], secrets),
        _allow("KeysOfMasterPasswords", ["kms:CreateGrant", "kms:DescribeKey"], None, for_aws),
        _allow("ServiceRoles", ["iam:CreateServiceLinkedRole"], None, {"StringEquals": services}),
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
