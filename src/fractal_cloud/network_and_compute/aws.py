"""Networks and machines of AWS under their short names."""

from fractal_cloud.offers.aws.security_group import AwsSecurityGroup as security_group
from fractal_cloud.offers.aws.subnet import AwsSubnet as subnet
from fractal_cloud.offers.aws.vpc import AwsVpc as vpc

__all__ = ["security_group", "subnet", "vpc"]
