"""Component types of the category Storage at Kubernetes and OpenShift.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.kubernetes.claim import KubernetesPersistentVolumeClaim as persistent_volume_claim

__all__ = ["persistent_volume_claim"]
