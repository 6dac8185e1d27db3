"""Component types of the category NetworkAndCompute at Hetzner Cloud.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.hetzner.firewall import HetznerFirewall as firewall
from fractal_cloud.offers.hetzner.firewall import HetznerFirewallRule as firewall_rule
from fractal_cloud.offers.hetzner.load_balancer import HetznerLoadBalancer as load_balancer
from fractal_cloud.offers.hetzner.network import HetznerNetwork as network
from fractal_cloud.offers.hetzner.network import HetznerRoute as route
from fractal_cloud.offers.hetzner.network import HetznerSubnet as subnet
from fractal_cloud.offers.hetzner.server import HetznerServer as server
from fractal_cloud.offers.hetzner.services import HetznerLoadBalancerService as load_balancer_service

__all__ = [
    "firewall",
    "firewall_rule",
    "load_balancer",
    "load_balancer_service",
    "network",
    "route",
    "server",
    "subnet",
]
