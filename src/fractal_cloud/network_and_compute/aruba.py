"""Component types of the category NetworkAndCompute at Aruba Cloud.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.aruba.cloud_server import ArubaCloudServer as cloud_server
from fractal_cloud.offers.aruba.kaas import ArubaKaas as kaas
from fractal_cloud.offers.aruba.kaas import ArubaNodePool as node_pool
from fractal_cloud.offers.aruba.security_group import ArubaSecurityGroup as security_group
from fractal_cloud.offers.aruba.security_rules import ArubaSecurityRule as security_rule
from fractal_cloud.offers.aruba.subnet import ArubaSubnet as subnet
from fractal_cloud.offers.aruba.vpc import ArubaVpc as vpc

__all__ = ["cloud_server", "kaas", "node_pool", "security_group", "security_rule", "subnet", "vpc"]
