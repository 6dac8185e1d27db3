"""Claims of storage in a cluster under their short names."""

from fractal_cloud.offers.kubernetes.claim import KubernetesPersistentVolumeClaim as persistent_volume_claim

__all__ = ["persistent_volume_claim"]
