"""Machines of VMware vSphere under their short names."""

from fractal_cloud.offers.vsphere.vm import VsphereVm as vm

__all__ = ["vm"]
