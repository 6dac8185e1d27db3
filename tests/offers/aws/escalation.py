"""The published ways from some rights in an AWS account to more, as the steps that AWS would be asked for.

From four lists. Both whole: «AWS IAM Privilege Escalation Methods» of Rhino Security Labs (R, by number) and «IAM
Vulnerable» of Bishop Fox (B, by profile). From HackTricks Cloud (H): what has to do with the services used here; from
Datadog's pathfinding.cloud (D): further services to which a role can be passed. Last come ways that only this agent
could try (F), by what its own rights are made of: tags, the path of links, and the boundary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.aws_rights import ACCOUNT, PASSED_ROLES

IAM: Final = f"arn:aws:iam::{ACCOUNT}:"
AGENT: Final = f"{IAM}user/fractal-cloud-agent"
ADMIN: Final = f"{IAM}user/admin"
ADMIN_ROLE: Final = f"{IAM}role/admin"
GROUP: Final = f"{IAM}group/admins"
POLICY: Final = f"{IAM}policy/of-the-agent"
BOUNDARY: Final = f"{IAM}policy/fractal-cloud/boundary"
IN_PATH: Final = f"{IAM}user/fractal-cloud/u"
ROLE_IN_PATH: Final = f"{IAM}role/fractal-cloud/r"
EC2: Final = f"arn:aws:ec2:eu-west-1:{ACCOUNT}:"
MACHINE: Final = f"{EC2}instance/i-1"
EVERYTHING_POLICY: Final = "arn:aws:iam::aws:policy/AdministratorAccess"
BOUND: Final = {"iam:PermissionsBoundary": BOUNDARY}
STAMPED: Final = {"aws:RequestTag/managed-by": "fractal-cloud", "aws:TagKeys": "managed-by"}
MANAGED: Final = {"aws:ResourceTag/managed-by": "fractal-cloud"}
WITH_PROFILE: Final = {"ec2:InstanceProfile": f"{IAM}instance-profile/of-a-person"}


@dataclass(frozen=True)
class Step:
    """One thing that AWS checks on the way."""

    action: str
    resource: str = "*"
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Way:
    """A way to more rights: where it was published, and its steps in order; it fails with the first that is refused."""

    name: str
    source: str
    steps: tuple[Step, ...]


def passing(service: str, role: str = ADMIN_ROLE) -> Step:
    return Step("iam:PassRole", role, {"iam:PassedToService": f"{service}.amazonaws.com"})


def _iam() -> Iterator[Way]:
    one = "policy of the agent"
    yield Way(f"new version of a {one}", "R1, B1", (Step("iam:CreatePolicyVersion", POLICY),))
    yield Way(f"older version of a {one}", "R2, B2", (Step("iam:SetDefaultPolicyVersion", POLICY),))
    yield Way("key of another user", "R4, B4", (Step("iam:CreateAccessKey", ADMIN),))
    yield Way(
        "second key of another user", "D", (Step("iam:DeleteAccessKey", ADMIN), Step("iam:CreateAccessKey", ADMIN))
    )
    yield Way("password for another user", "R5, B5", (Step("iam:CreateLoginProfile", ADMIN),))
    yield Way("new password of another user", "R6, B6", (Step("iam:UpdateLoginProfile", ADMIN),))
    attached = {"iam:PolicyARN": EVERYTHING_POLICY}
    yield Way("policy attached to itself", "R7, B7", (Step("iam:AttachUserPolicy", AGENT, attached),))
    yield Way("policy attached to a group", "R8, B8", (Step("iam:AttachGroupPolicy", GROUP, attached),))
    yield Way("policy attached to a role", "R9, B9", (Step("iam:AttachRolePolicy", ADMIN_ROLE, attached),))
    yield Way("inline policy of itself", "R10, B10", (Step("iam:PutUserPolicy", AGENT),))
    yield Way("inline policy of a group", "R11, B11", (Step("iam:PutGroupPolicy", GROUP),))
    yield Way("inline policy of a role", "R12, B12", (Step("iam:PutRolePolicy", ADMIN_ROLE),))
    yield Way("itself into a group", "R13, B13", (Step("iam:AddUserToGroup", GROUP),))
    yield Way("trust of a role", "R14, B14", (Step("iam:UpdateAssumeRolePolicy", ADMIN_ROLE),))
    yield Way("role that trusts the account", "B assumerole", (Step("sts:AssumeRole", ADMIN_ROLE),))
    yield Way("role of an identity provider", "H", (Step("iam:UpdateSAMLProvider"),))
    yield Way("new identity provider", "H", (Step("iam:CreateOpenIDConnectProvider"),))
    yield Way("signing certificate of a user", "H", (Step("iam:UploadSigningCertificate", ADMIN),))
    yield Way("credential for one service", "H", (Step("iam:CreateServiceSpecificCredential", ADMIN),))
    yield Way("second factor of a user", "H", (Step("iam:DeactivateMFADevice", ADMIN),))
    yield Way("user moved into the path of links", "F", (Step("iam:UpdateUser", ADMIN),))
    yield Way("service-linked role", "H", (Step("iam:CreateServiceLinkedRole"),))


def _passing_roles() -> Iterator[Way]:
    """A role that is given to a service, which then acts for whoever commands it."""
    started = Step("ec2:RunInstances", f"{EC2}instance/*", STAMPED)
    yield Way("machine with a profile", "R3, B3", (started, passing("ec2")))
    yield Way("spot machine with a profile", "H", (Step("ec2:RequestSpotInstances"), passing("ec2")))
    attached = Step("ec2:AssociateIamInstanceProfile", MACHINE, MANAGED)
    yield Way("profile for a running machine", "H", (attached, passing("ec2")))
    replaced = Step("ec2:ReplaceIamInstanceProfileAssociation", MACHINE, MANAGED)
    yield Way("other profile of a machine", "H", (replaced, passing("ec2")))
    yield Way("other role in a profile", "H", (Step("iam:AddRoleToInstanceProfile"), passing("ec2")))
    yield Way("launch template", "D, H", (Step("ec2:CreateLaunchTemplateVersion"),))
    yield Way("auto scaling group", "H", (Step("autoscaling:CreateAutoScalingGroup"), passing("ec2")))
    functions = Step("lambda:CreateFunction")
    yield Way("function, invoked", "R15, B15", (functions, passing("lambda"), Step("lambda:InvokeFunction")))
    yield Way(
        "function, invoked by another account", "R16", (functions, passing("lambda"), Step("lambda:AddPermission"))
    )
    triggered = (functions, passing("lambda"), Step("lambda:CreateEventSourceMapping"))
    yield Way("function, triggered", "R17, B16", triggered)
    yield Way("Glue endpoint", "R19, B18", (Step("glue:CreateDevEndpoint"), passing("glue")))
    yield Way("CloudFormation stack", "R21, B20", (Step("cloudformation:CreateStack"), passing("cloudformation")))
    yield Way("Data Pipeline", "R22, B21", (Step("datapipeline:CreatePipeline"), passing("datapipeline")))
    yield Way("CodeStar project from a template", "R23", (Step("codestar:CreateProjectFromTemplate"),))
    yield Way("CodeStar project", "R24", (Step("codestar:CreateProject"), passing("codestar")))
    yield Way("CodeStar team", "R25", (Step("codestar:CreateProject"), Step("codestar:AssociateTeamMember")))
    notebook = Step("sagemaker:CreateNotebookInstance")
    yield Way("SageMaker notebook", "R27, B sageNotebook", (notebook, passing("sagemaker")))
    yield Way("SageMaker training", "B sageTraining", (Step("sagemaker:CreateTrainingJob"), passing("sagemaker")))
    yield Way("SageMaker processing", "B sageProcessing", (Step("sagemaker:CreateProcessingJob"), passing("sagemaker")))
    yield Way("CodeBuild project", "B codeBuildProject", (Step("codebuild:CreateProject"), passing("codebuild")))
    task = Step("ecs:RegisterTaskDefinition")
    yield Way("task definition, run", "H", (task, passing("ecs-tasks"), Step("ecs:RunTask")))
    yield Way(
        "task definition, in a service", "H", (task, passing("ecs-tasks"), Step("ecs:CreateService", "*", STAMPED))
    )
    yield Way("task with another command", "H", (Step("ecs:RunTask"), passing("ecs-tasks")))
    yield Way("command in a running task", "H", (Step("ecs:ExecuteCommand"),))
    for service in (
        "apprunner:CreateService",
        "batch:RegisterJobDefinition",
        "bedrock-agentcore:CreateCodeInterpreter",
    ):
        yield Way(service, "D", (Step(service), passing(service.partition(":")[0])))
    for service in ("elasticmapreduce:RunJobFlow", "emr-serverless:StartJobRun", "braket:CreateJob", "omics:StartRun"):
        yield Way(service, "D", (Step(service), passing(service.partition(":")[0])))
    for service in ("gamelift:CreateBuild", "imagebuilder:CreateImage", "kinesisanalytics:CreateApplication"):
        yield Way(service, "D", (Step(service), passing(service.partition(":")[0])))
    cluster = Step("eks:CreateCluster", "*", STAMPED)
    yield Way("cluster with a role that was not named", "F", (cluster, passing("eks")))
    yield Way("named role to another service", "F", (passing("lambda", PASSED_ROLES[0]),))
    pods = Step("eks:CreatePodIdentityAssociation", "*", MANAGED)
    yield Way("role for pods of a cluster", "H", (pods, passing("pods.eks")))
    yield Way("nodes of a cluster", "H", (Step("eks:CreateNodegroup", "*", {**MANAGED, **STAMPED}), passing("eks")))
    yield Way("database with a role", "H", (Step("rds:AddRoleToDBInstance", "*", MANAGED), passing("rds")))


def _what_has_rights() -> Iterator[Way]:
    """What exists already, and acts with rights of its own."""
    yield Way("code of a function", "R18, B17", (Step("lambda:UpdateFunctionCode"),))
    yield Way("layer of a function", "R26", (Step("lambda:UpdateFunctionConfiguration"),))
    yield Way("key of a Glue endpoint", "R20, B19", (Step("glue:UpdateDevEndpoint"),))
    yield Way("stack of CloudFormation", "B cfUpdateStack", (Step("cloudformation:UpdateStack"),))
    url = Step("sagemaker:CreatePresignedNotebookInstanceUrl")
    yield Way("open notebook of SageMaker", "R28, B sageUpdateURL", (url,))
    key = Step("ec2-instance-connect:SendSSHPublicKey", MACHINE)
    yield Way("key for a machine", "B instanceConnect", (key,))
    yield Way("command on a machine", "B ssm-command", (Step("ssm:SendCommand", MACHINE),))
    yield Way("session on a machine", "B ssm-session", (Step("ssm:StartSession", MACHINE),))
    taken = (
        Step("ec2:CreateTags", MACHINE, {**STAMPED, **WITH_PROFILE}),
        Step("ec2:StopInstances", MACHINE, {**MANAGED, **WITH_PROFILE}),
        Step("ec2:ModifyInstanceAttribute", MACHINE, {**MANAGED, **WITH_PROFILE, "ec2:Attribute": "UserData"}),
    )
    yield Way("start-up script of a person's machine, tagged first", "D, H, F", taken)
    yield Way("password of a Windows machine", "H", (Step("ec2:GetPasswordData", MACHINE),))
    disk = Step("ec2:CreateSnapshot", f"{EC2}volume/vol-1")
    yield Way("copy of a disk", "H", (disk,))
    entry = Step("eks:CreateAccessEntry", "*", MANAGED)
    yield Way("administrator of a cluster", "H", (entry, Step("eks:AssociateAccessPolicy", "*", MANAGED)))
    yield Way("groups of a cluster's user", "H", (Step("eks:UpdateAccessEntry", "*", MANAGED),))


def _secrets() -> Iterator[Way]:
    secret = f"arn:aws:secretsmanager:eu-west-1:{ACCOUNT}:secret:"
    yield Way("secret of a person", "H", (Step("secretsmanager:GetSecretValue", f"{secret}prod/admin"),))
    yield Way("policy of a secret", "H", (Step("secretsmanager:PutResourcePolicy", f"{secret}prod/admin"),))
    yield Way("tags of a master password", "F", (Step("secretsmanager:TagResource", f"{secret}rds!db-1", STAMPED),))
    yield Way("parameter of SSM", "H", (Step("ssm:GetParameter"),))
    yield Way("grant of a key to itself", "H", (Step("kms:CreateGrant", "*", {"kms:GrantIsForAWSResource": "false"}),))
    yield Way("policy of a key", "H", (Step("kms:PutKeyPolicy"),))
    yield Way("decryption", "H", (Step("kms:Decrypt"),))
    yield Way("policy of a bucket", "H", (Step("s3:PutBucketPolicy", "arn:aws:s3:::state"),))
    yield Way("access list of a bucket", "H", (Step("s3:PutBucketAcl", "arn:aws:s3:::state"),))
    yield Way("object of a bucket", "H", (Step("s3:GetObject", "arn:aws:s3:::state/terraform.tfstate"),))


def _links() -> Iterator[Way]:
    """What the rights of links could be bent to."""
    yield Way("user without a boundary", "F", (Step("iam:CreateUser", IN_PATH),))
    wide = {"iam:PermissionsBoundary": EVERYTHING_POLICY}
    yield Way("user with AdministratorAccess as its boundary", "F", (Step("iam:CreateUser", IN_PATH, wide),))
    similar = {"iam:PermissionsBoundary": f"arn:aws:iam::aws:policy/x:{ACCOUNT}:policy/fractal-cloud/boundary2"}
    yield Way("user with a boundary of nearly that name", "F", (Step("iam:CreateUser", IN_PATH, similar),))
    yield Way("bounded user outside the path", "F", (Step("iam:CreateUser", ADMIN, BOUND),))
    yield Way("role without a boundary", "F", (Step("iam:CreateRole", ROLE_IN_PATH),))
    yield Way("inline policy of an unbounded user in the path", "F", (Step("iam:PutUserPolicy", IN_PATH),))
    yield Way("inline policy of an unbounded role in the path", "F", (Step("iam:PutRolePolicy", ROLE_IN_PATH),))
    attached = {**BOUND, "iam:PolicyARN": EVERYTHING_POLICY}
    yield Way("policy attached to a bounded user", "F", (Step("iam:AttachUserPolicy", IN_PATH, attached),))
    yield Way("boundary of a user removed", "F", (Step("iam:DeleteUserPermissionsBoundary", IN_PATH, BOUND),))
    yield Way("boundary of a role removed", "F", (Step("iam:DeleteRolePermissionsBoundary", ROLE_IN_PATH, BOUND),))
    yield Way("boundary of a user replaced", "F", (Step("iam:PutUserPermissionsBoundary", IN_PATH, BOUND),))
    yield Way("new version of the boundary", "F", (Step("iam:CreatePolicyVersion", BOUNDARY),))
    yield Way("older version of the boundary", "F", (Step("iam:SetDefaultPolicyVersion", BOUNDARY),))
    removed = (Step("iam:DeletePolicy", BOUNDARY), Step("iam:CreatePolicy", BOUNDARY))
    yield Way("boundary made anew", "F", removed)
    yield Way("password for a bounded user", "F", (Step("iam:CreateLoginProfile", IN_PATH, BOUND),))
    yield Way("trust of a bounded role", "F", (Step("iam:UpdateAssumeRolePolicy", ROLE_IN_PATH, BOUND),))
    tagged = {**BOUND, "aws:TagKeys": "team", "aws:RequestTag/team": "admins"}
    yield Way("tag of a bounded user that others trust", "F", (Step("iam:TagUser", IN_PATH, tagged),))
    yield Way("bounded role passed on", "F", (passing("lambda", ROLE_IN_PATH),))
    other = f"arn:aws:secretsmanager:eu-west-1:{ACCOUNT}:secret:"
    yield Way("secret of another name replaced", "F", (Step("secretsmanager:PutSecretValue", f"{other}prod/admin"),))
    yield Way("secret of a link read", "F", (Step("secretsmanager:GetSecretValue", f"{other}fractal-cloud/a"),))


WAYS: Final = (*_iam(), *_passing_roles(), *_what_has_rights(), *_secrets(), *_links())
