"""Which permissions that schemas name are never granted, which only within bounds, and where tags decide.

Sources: https://docs.aws.amazon.com/service-authorization/latest/reference/ (each service's actions and the condition
keys they know), https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_aws-services-that-work-with-iam.html (the
column ABAC), https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html (calls that know
`iam:PermissionsBoundary`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# They read other people's secrets, run commands, or make somebody who can do more.
NEVER: Final = frozenset(
    {
        "cloudformation:CreateChangeSet",
        "cloudformation:CreateStack",
        "cloudformation:CreateStackInstances",
        "cloudformation:UpdateStack",
        "cloudformation:UpdateStackInstances",
        "iam:AddUserToGroup",
        "iam:AssumeRole",
        "iam:AttachGroupPolicy",
        "iam:CreateAccessKey",
        "iam:CreateLoginProfile",
        "iam:DeleteRolePermissionsBoundary",
        "iam:DeleteUserPermissionsBoundary",
        "iam:UpdateLoginProfile",
        "iam:assumeRole",
        "lambda:InvokeFunction",
        "secretsmanager:BatchGetSecretValue",
        "secretsmanager:GetSecretValue",
        "ssm:SendCommand",
        "ssm:StartAutomationExecution",
        "ssm:StartSession",
        "sts:AssumeRole",
        "sts:GetServiceBearerToken",
        "sts:GetWebIdentityToken",
        "sts:TagGetWebIdentityToken",
    }
)
NEVER_SERVICES: Final = frozenset({"account", "identitystore", "organizations", "sso", "sso-directory"})

# Data and keys are used by the services whose resources are made, never by the agent itself.
BY_SERVICES_ONLY: Final = frozenset(
    {
        "codecommit:GetFile",
        "codecommit:GetFolder",
        "dynamodb:GetItem",
        "dynamodb:Query",
        "dynamodb:Scan",
        "ecr:BatchGetImage",
        "ecr:GetAuthorizationToken",
        "ecr:GetDownloadUrlForLayer",
        "kinesis:GetRecords",
        "logs:GetLogEvents",
        "s3:GetObject",
        "s3:GetObjectVersion",
        "s3:PutObject",
        "sqs:ReceiveMessage",
        "ssm:GetParameter",
    }
) | frozenset(
    f"kms:{verb}"
    for verb in (
        "CreateGrant",
        "Decrypt",
        "Encrypt",
        "GenerateDataKey",
        "GenerateDataKeyPair",
        "GenerateDataKeyPairWithoutPlaintext",
        "GenerateDataKeyWithoutPlainText",
        "GenerateDataKeyWithoutPlaintext",
        "ReEncrypt",
        "ReEncryptFrom",
        "ReEncryptTo",
        "Sign",
    )
)

# Calls that know the condition on the boundary of the role or user.
BOUNDED: Final = frozenset(
    f"iam:{verb}"
    for verb in (
        "AttachRolePolicy",
        "AttachUserPolicy",
        "CreateRole",
        "CreateUser",
        "DeleteRolePolicy",
        "DeleteUserPolicy",
        "DetachRolePolicy",
        "DetachUserPolicy",
        "PutRolePermissionsBoundary",
        "PutRolePolicy",
        "PutUserPermissionsBoundary",
        "PutUserPolicy",
    )
)
# Calls that do not, and are harmless to what is below the product's own path: all in it is bounded.
IN_PATH: Final = frozenset(
    f"iam:{verb}"
    for verb in (
        "AddRoleToInstanceProfile",
        "CreateInstanceProfile",
        "CreatePolicy",
        "CreatePolicyVersion",
        "DeleteInstanceProfile",
        "DeletePolicy",
        "DeletePolicyVersion",
        "DeleteRole",
        "DeleteUser",
        "RemoveRoleFromInstanceProfile",
        "TagInstanceProfile",
        "TagPolicy",
        "TagRole",
        "TagUser",
        "UntagInstanceProfile",
        "UntagPolicy",
        "UntagRole",
        "UntagUser",
        "UpdateAssumeRolePolicy",
        "UpdateRole",
        "UpdateRoleDescription",
        "UpdateUser",
    )
)

# Services all of whose changing calls know `aws:ResourceTag`.
TAGS_DECIDE: Final = frozenset(
    {
        "acm",
        "dynamodb",
        "ecr",
        "ecs",
        "eks",
        "elasticache",
        "elasticfilesystem",
        "elasticloadbalancing",
        "firehose",
        "kinesis",
        "lambda",
        "rds",
        "secretsmanager",
        "sns",
        "sqs",
        "states",
    }
)

# To whom roles are passed, where that is not the service itself: the services' own pages on service roles.
PASSED_TO: Final[Mapping[str, tuple[str, ...]]] = {
    "ecs": ("ecs.amazonaws.com", "ecs-tasks.amazonaws.com"),
    "apigateway": ("apigateway.amazonaws.com",),
    "elasticfilesystem": ("elasticfilesystem.amazonaws.com",),
    "iam": ("ec2.amazonaws.com",),
    "rds": ("monitoring.rds.amazonaws.com", "rds.amazonaws.com"),
    "es": ("es.amazonaws.com", "opensearchservice.amazonaws.com"),
}
