"""Networks and machines, by provider. Only names: what a component is stands beside its offer."""

from fractal_cloud.network_and_compute import aws, azure, gcp, hetzner, kubernetes, oci, vsphere

__all__ = ["aws", "azure", "gcp", "hetzner", "kubernetes", "oci", "vsphere"]
