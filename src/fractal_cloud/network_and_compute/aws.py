"""Component types of the category NetworkAndCompute at AWS.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.aws.ec2 import AwsEc2Instance as ec2
from fractal_cloud.offers.aws.eks import AwsEks as eks
from fractal_cloud.offers.aws.rules import AwsSecurityGroupRule as security_group_rule
from fractal_cloud.offers.aws.security_group import AwsSecurityGroup as security_group
from fractal_cloud.offers.aws.subnet import AwsSubnet as subnet
from fractal_cloud.offers.aws.vpc import AwsVpc as vpc

__all__ = ["ec2", "eks", "security_group", "security_group_rule", "subnet", "vpc"]
