"""Component types of the category NetworkAndCompute at Kubernetes and OpenShift.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.kubernetes.network_policy import KubernetesNetworkPolicy as network_policy
from fractal_cloud.offers.kubernetes.policy_rules import KubernetesNetworkPolicyRule as network_policy_rule
from fractal_cloud.offers.kubernetes.service import KubernetesService as service
from fractal_cloud.offers.kubernetes.service import KubernetesServicePort as service_port
from fractal_cloud.offers.kubernetes.virtual_machine import KubernetesVirtualMachine as virtual_machine

__all__ = ["network_policy", "network_policy_rule", "service", "service_port", "virtual_machine"]
