"""Aruba Cloud's networks, by their short names."""

from fractal_cloud.offers.aruba.security_group import ArubaSecurityGroup as security_group
from fractal_cloud.offers.aruba.subnet import ArubaSubnet as subnet
from fractal_cloud.offers.aruba.vpc import ArubaVpc as vpc

__all__ = ["security_group", "subnet", "vpc"]
