"""How tags of a type are reached and compared where its schema does not say it, and what the tagging API leaves out.

Sources: for the adapters, the service's API reference, since the schemas say ``taggable: false``; for the tagging API,
https://docs.aws.amazon.com/resourcegroupstagging/latest/APIReference/supported-services.html , where IAM's roles,
users, policies and instance profiles are not listed (IAM is served for nothing but its own calls).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Adapter:
    """The service's own calls for tags, by their names in botocore.

    ``names``: the parameter that names the resource in them, and the property that it holds. ``at_creation``: the
    property of the schema that carries tags in the create call, and ``kind`` what stands beside them there; empty where
    none. ``list_filter``: the filter by which the listing finds one resource, where it takes filters.
    ``removes_pairs``: a removal names keys and values.
    """

    service: str
    client: str
    list_call: str
    tag_call: str
    untag_call: str
    parameter: str
    property: str
    at_creation: str = ""
    kind: str = ""
    list_filter: str = ""
    parameter_is_list: bool = False
    removes_pairs: bool = False


def actions(adapter: Adapter) -> tuple[str, ...]:
    """The permissions that an adapter's calls need."""
    calls = (adapter.list_call, adapter.tag_call, adapter.untag_call)
    return tuple(f"{adapter.service}:{''.join(word.capitalize() for word in one.split('_'))}" for one in calls)


# IAM: ListPolicyTags, TagPolicy, UntagPolicy (https://docs.aws.amazon.com/IAM/latest/APIReference/API_TagPolicy.html)
# and the same of instance profiles. EC2: CreateTags and DeleteTags on the template's id; TagSpecifications at creation
# (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateLaunchTemplate.html).
ADAPTERS: Final[Mapping[str, Adapter]] = {
    "AWS::IAM::ManagedPolicy": Adapter(
        "iam", "iam", "list_policy_tags", "tag_policy", "untag_policy", "PolicyArn", "PolicyArn"
    ),
    "AWS::IAM::InstanceProfile": Adapter(
        "iam",
        "iam",
        "list_instance_profile_tags",
        "tag_instance_profile",
        "untag_instance_profile",
        "InstanceProfileName",
        "InstanceProfileName",
    ),
    "AWS::EC2::LaunchTemplate": Adapter(
        "ec2",
        "ec2",
        "describe_tags",
        "create_tags",
        "delete_tags",
        "Resources",
        "LaunchTemplateId",
        at_creation="TagSpecifications",
        kind="launch-template",
        list_filter="resource-id",
        parameter_is_list=True,
        removes_pairs=True,
    ),
}

# What puts the first tags on a resource that has none, so that there is nothing a patch could test: single tags, and
# never a set. Where the tagging API serves a type, it does; IAM has calls of its own
# (https://docs.aws.amazon.com/IAM/latest/APIReference/API_TagRole.html).
FIRST_TAGS: Final[Mapping[str, Adapter]] = {
    "AWS::IAM::Role": Adapter("iam", "iam", "list_role_tags", "tag_role", "untag_role", "RoleName", "RoleName"),
}

# Keys of tags that differ in case alone are one key, spelled as it was written last; everywhere else they are two.
# IAM: https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html#case-sensitivity , users and roles, and nothing
# else of it. Kendra, Kendra Intelligent Ranking, Q Business: the data type `Tag` in the API reference of each («Keys
# are not case sensitive»). Lex says so of its V1 alone, of which CloudFormation has no types.
_CASELESS_TYPES: Final = frozenset({"AWS::IAM::Role", "AWS::IAM::User"})
_CASELESS_SERVICES: Final = frozenset({"Kendra", "KendraRanking", "QBusiness"})


def has_caseless_keys(type_name: str) -> bool:
    """Whether AWS compares the keys of this type's tags without regard to case (T8)."""
    return type_name in _CASELESS_TYPES or type_name.split("::")[1] in _CASELESS_SERVICES


# Not served by the Resource Groups Tagging API: their tags change through Cloud Control or their own service.
WITHOUT_TAGGING_API: Final = frozenset({"IAM", "AutoScaling", "Organizations", "SSO", "Budgets", "CE"})

# What a person types where the tagging API does not serve a type: how tags are taken off and put on, over the outputs
# of the resource. Sources: the AWS CLI's reference of each service, https://docs.aws.amazon.com/cli/latest/reference/
_BOTH_PAIRS: Final = "Key=managed-by,Value=fractal-cloud Key=fractal-cloud,Value=reconcile"


def _iam(noun: str, option: str, output: str) -> tuple[str, str]:
    at = f"--{option}={{{output}}}"
    return f"aws iam untag-{noun} {at} --tag-keys managed-by", f"aws iam tag-{noun} {at} --tags {_BOTH_PAIRS}"


def _by_arn(service: str, options: str, keys: str = "tag-keys", tags: str = "tags") -> tuple[str, str]:
    at = f"aws {service}"
    return f"{at} untag-resource {options} --{keys} managed-by", f"{at} tag-resource {options} --{tags} {_BOTH_PAIRS}"


_GROUP: Final = "ResourceId={resourceId},ResourceType=auto-scaling-group"
_GROUP_TAGS: Final = (
    f"aws autoscaling delete-tags --region={{region}} --tags {_GROUP},Key=managed-by,Value=fractal-cloud",
    (
        "aws autoscaling create-or-update-tags --region={region} --tags "
        f"{_GROUP},Key=managed-by,Value=fractal-cloud,PropagateAtLaunch=false "
        f"{_GROUP},Key=fractal-cloud,Value=reconcile,PropagateAtLaunch=false"
    ),
)

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "AWS::IAM::Role": _iam("role", "role-name", "RoleName"),
    "AWS::IAM::User": _iam("user", "user-name", "UserName"),
    "AWS::IAM::ManagedPolicy": _iam("policy", "policy-arn", "PolicyArn"),
    "AWS::IAM::InstanceProfile": _iam("instance-profile", "instance-profile-name", "InstanceProfileName"),
    "AWS::IAM::OIDCProvider": _iam("open-id-connect-provider", "open-id-connect-provider-arn", "Arn"),
    "AWS::IAM::SAMLProvider": _iam("saml-provider", "saml-provider-arn", "Arn"),
    "AWS::IAM::ServerCertificate": _iam("server-certificate", "server-certificate-name", "ServerCertificateName"),
    "AWS::IAM::VirtualMFADevice": _iam("mfa-device", "serial-number", "SerialNumber"),
    "AWS::AutoScaling::AutoScalingGroup": _GROUP_TAGS,
    "AWS::CE::AnomalyMonitor": _by_arn("ce", "--resource-arn={MonitorArn}", "resource-tag-keys", "resource-tags"),
    "AWS::CE::AnomalySubscription": _by_arn(
        "ce", "--resource-arn={SubscriptionArn}", "resource-tag-keys", "resource-tags"
    ),
    "AWS::CE::CostCategory": _by_arn("ce", "--resource-arn={Arn}", "resource-tag-keys", "resource-tags"),
    "AWS::Organizations::Account": _by_arn("organizations", "--resource-id={resourceId}"),
    "AWS::Organizations::OrganizationalUnit": _by_arn("organizations", "--resource-id={resourceId}"),
    "AWS::Organizations::Policy": _by_arn("organizations", "--resource-id={resourceId}"),
    "AWS::SSO::PermissionSet": _by_arn("sso-admin", "--instance-arn={InstanceArn} --resource-arn={PermissionSetArn}"),
}
