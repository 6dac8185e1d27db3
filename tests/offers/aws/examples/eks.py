"""The example of EKS clusters: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fractal_cloud.offers.aws.eks import AwsEks
from fractal_cloud.testing import Found, Obstacle
from tests.offers.aws.example import REGION, AwsActions, Clients, Example, component
from tests.offers.aws.examples.security_group import GROUP, OTHER_GROUP
from tests.offers.aws.examples.subnet import SUBNET_A, SUBNET_B
from tests.offers.aws.examples.vpc import VPC
from tests.world import subnet

_LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")


def _edit_eks(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    eks = clients("eks")
    if name == "version":
        eks.update_cluster_version(name=resource_id, version=value)
        return
    if name == "logging":
        off = [one for one in _LOG_TYPES if one not in value]
        change: dict[str, Any] = {
            "logging": {"clusterLogging": [{"types": value, "enabled": True}, {"types": off, "enabled": False}]}
        }
    elif name == "deletionProtection":
        change = {name: value}
    else:
        change = {"resourcesVpcConfig": {{"securityGroups": "securityGroupIds"}.get(name, name): value}}
    eks.update_cluster_config(name=resource_id, **change)


class EksActions(AwsActions):
    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        """AWS raises a version only by one at a time."""
        if parameter != "version":
            super().edit(resource_id, parameter, value)
            return
        here = self._clients("eks").describe_cluster(name=resource_id)["cluster"]["version"]
        for minor in range(int(here.partition(".")[2]) + 1, int(value.partition(".")[2]) + 1):
            super().edit(resource_id, parameter, f"1.{minor}")

    def find(self, name: str) -> list[Found]:
        eks = self._clients("eks")
        try:
            cluster = eks.describe_cluster(name=name)["cluster"]
        except eks.exceptions.ResourceNotFoundException:
            return []
        return [Found(name, cluster["tags"], cluster["arn"])]

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._clients("eks").tag_resource(resourceArn=found.handle, tags=dict(tags))

    def untag(self, found: Found, *keys: str) -> None:
        self._clients("eks").untag_resource(resourceArn=found.handle, tagKeys=list(keys))

    def delete(self, found: Found) -> None:
        self._clients("eks").delete_cluster(name=found.resource_id)


def _protected_cluster(clients: Clients, found: Found) -> Obstacle:
    def protect(value: bool) -> None:
        clients("eks").update_cluster_config(name=found.resource_id, deletionProtection=value)

    protect(True)
    return Obstacle((found.resource_id, "deletionProtection"), lambda: protect(False))


EXAMPLE = Example(
    kind=AwsEks,
    components=[
        VPC,
        SUBNET_A,
        SUBNET_B,
        GROUP,
        OTHER_GROUP,
        component(
            AwsEks,
            "platform",
            version="1.31",
            roleArn="arn:aws:iam::123456789012:role/eks",
            subnets=["part-a", "part-b"],
            securityGroups=["web"],
            endpointPublicAccess=True,
            endpointPrivateAccess=False,
            publicAccessCidrs=["0.0.0.0/0"],
            logging=["api"],
            deletionProtection=False,
        ),
    ],
    changes={
        "version": "1.33",
        "securityGroups": ["other"],
        "endpointPublicAccess": False,
        "endpointPrivateAccess": True,
        "publicAccessCidrs": ["10.0.0.0/8"],
        "logging": ["api", "audit"],
        "deletionProtection": True,
    },
    immutable_changes={"roleArn": "arn:aws:iam::123456789012:role/other", "subnets": ["part-a", "part-c"]},
    foreign_edit=_edit_eks,
    operator=EksActions,
    only_up=frozenset({"version"}),
    more_parents=(subnet("part-c", cidrBlock="10.0.4.0/24", availabilityZone=f"{REGION}c"),),
    hazards={"deletion protection": ("Failed", _protected_cluster)},
    effects=29,
)
