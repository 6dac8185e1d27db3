"""Component types of the category NetworkAndCompute at Google Cloud.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.gcp.firewall import GcpFirewall as firewall
from fractal_cloud.offers.gcp.gke import GcpGke as gke
from fractal_cloud.offers.gcp.network import GcpVpc as vpc
from fractal_cloud.offers.gcp.subnet import GcpSubnet as subnet
from fractal_cloud.offers.gcp.vm import GcpVm as vm

__all__ = ["firewall", "gke", "subnet", "vm", "vpc"]
