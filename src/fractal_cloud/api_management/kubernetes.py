"""Component types of the category APIManagement at Kubernetes and OpenShift.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.kubernetes.ambassador import Ambassador as ambassador

__all__ = ["ambassador"]
