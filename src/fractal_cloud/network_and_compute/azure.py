"""Component types of the category NetworkAndCompute at Azure.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.azure.aks import AzureAks as aks
from fractal_cloud.offers.azure.nsg import AzureNsg as nsg
from fractal_cloud.offers.azure.nsg_rules import AzureSecurityRule as security_rule
from fractal_cloud.offers.azure.subnet import AzureSubnet as subnet
from fractal_cloud.offers.azure.vm import AzureVm as vm
from fractal_cloud.offers.azure.vnet import AzureVnet as vnet

__all__ = ["aks", "nsg", "security_rule", "subnet", "vm", "vnet"]
