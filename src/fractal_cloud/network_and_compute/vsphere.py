"""Component types of the category NetworkAndCompute at VMware vSphere.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.vsphere.vm import VsphereVm as vm

__all__ = ["vm"]
