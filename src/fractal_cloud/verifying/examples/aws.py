"""What is tried on AWS. All of it is free but the machine, which is tried only on request."""

from __future__ import annotations

from typing import Any, Final

from fractal_cloud.offers.aws.ec2 import AwsEc2Instance
from fractal_cloud.offers.aws.ecs_cluster import AwsEcsCluster
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.aws.security_group import AwsSecurityGroup
from fractal_cloud.offers.aws.subnet import AwsSubnet
from fractal_cloud.offers.aws.vpc import AwsVpc
from fractal_cloud.verifying.example import Declaration, Place, VerificationExample

_HTTPS: Final = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "10.0.0.0/8"}
_SSH: Final = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIp": "10.1.0.0/16"}


def _vpc(at: Place, **parameters: Any) -> Declaration:
    return at.declare(AwsVpc, "vpc", region=at["region"], cidrBlock="10.255.0.0/24", **parameters)


def _subnet(at: Place, **parameters: Any) -> Declaration:
    return at.declare(AwsSubnet, "subnet", vpc=at.name("vpc"), cidrBlock="10.255.0.0/28", **parameters)


EXAMPLES: Final = (
    VerificationExample(
        AwsVpc,
        lambda at: [_vpc(at, enableDnsSupport=True, enableDnsHostnames=True)],
        needs=("region",),
        changes={"enableDnsHostnames": False},
    ),
    VerificationExample(
        AwsSubnet,
        lambda at: [_vpc(at), _subnet(at, mapPublicIpOnLaunch=False)],
        needs=("region",),
        changes={"mapPublicIpOnLaunch": True},
    ),
    VerificationExample(
        AwsSecurityGroup,
        lambda at: [
            _vpc(at),
            at.declare(
                AwsSecurityGroup,
                "group",
                vpc=at.name("vpc"),
                description="fractal verify",
                ingress=[_HTTPS],
                egress=[_HTTPS],
            ),
        ],
        needs=("region",),
        changes={"ingress": [_HTTPS, _SSH], "egress": [_SSH]},
    ),
    VerificationExample(
        AwsS3,
        lambda at: [
            at.declare(
                AwsS3,
                "bucket",
                region=at["region"],
                sseAlgorithm="AES256",
                blockPublicAccess=True,
                objectOwnership="BucketOwnerEnforced",
            )
        ],
        needs=("region",),
        changes={"sseAlgorithm": "aws:kms", "objectOwnership": "BucketOwnerPreferred"},
    ),
    VerificationExample(
        AwsEcsCluster,
        lambda at: [at.declare(AwsEcsCluster, "cluster", region=at["region"], containerInsights="disabled")],
        needs=("region",),
        changes={"containerInsights": "enabled"},
        cost="free; a minute of Container Insights on an empty cluster",
    ),
    VerificationExample(
        AwsEc2Instance,
        lambda at: [
            _vpc(at),
            _subnet(at),
            at.declare(
                AwsEc2Instance,
                "machine",
                subnet=at.name("subnet"),
                imageId=at["imageId"],
                instanceType="t3.nano",
                state="running",
            ),
        ],
        needs=("region", "imageId"),
        changes={"state": "stopped"},
        cost="a t3.nano and its disk for about ten minutes: less than 0.01 USD",
        on_request=True,
        minutes=10.0,
    ),
)
