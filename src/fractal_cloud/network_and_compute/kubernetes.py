"""Services, network policies and machines of a cluster under their short names."""

from fractal_cloud.offers.kubernetes.network_policy import KubernetesNetworkPolicy as network_policy
from fractal_cloud.offers.kubernetes.policy_rules import KubernetesNetworkPolicyRule as network_policy_rule
from fractal_cloud.offers.kubernetes.service import KubernetesService as service
from fractal_cloud.offers.kubernetes.virtual_machine import KubernetesVirtualMachine as virtual_machine

__all__ = ["network_policy", "network_policy_rule", "service", "virtual_machine"]
