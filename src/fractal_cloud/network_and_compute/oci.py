"""Component types of the category NetworkAndCompute at Oracle Cloud (OCI).

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.oci.instance import OciInstance as instance
from fractal_cloud.offers.oci.subnet import OciSubnet as subnet
from fractal_cloud.offers.oci.vcn import OciVcn as vcn

__all__ = ["instance", "subnet", "vcn"]
