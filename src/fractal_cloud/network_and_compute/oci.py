"""Networks and machines of Oracle Cloud under their short names."""

from fractal_cloud.offers.oci.instance import OciInstance as instance
from fractal_cloud.offers.oci.subnet import OciSubnet as subnet
from fractal_cloud.offers.oci.vcn import OciVcn as vcn

__all__ = ["instance", "subnet", "vcn"]
