"""Machines, clusters and networks of Google Cloud under their short names."""

from fractal_cloud.offers.gcp.firewall import GcpFirewall as firewall
from fractal_cloud.offers.gcp.gke import GcpGke as gke
from fractal_cloud.offers.gcp.network import GcpVpc as vpc
from fractal_cloud.offers.gcp.subnet import GcpSubnet as subnet
from fractal_cloud.offers.gcp.vm import GcpVm as vm

__all__ = ["firewall", "gke", "subnet", "vm", "vpc"]
