"""How the tags of a type are reached where its schema does not say it, and which services the tagging API leaves out.

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
    property of the schema that carries tags in the create call, with what the schema wants in it; empty where none.
    """

    service: str
    client: str
    list_call: str
    tag_call: str
    untag_call: str
    parameter: str
    property: str
    at_creation: str = ""


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
    ),
}

# Not served by the Resource Groups Tagging API: their tags change through Cloud Control or their own service.
WITHOUT_TAGGING_API: Final = frozenset({"IAM", "AutoScaling", "Organizations", "SSO", "Budgets", "CE"})
