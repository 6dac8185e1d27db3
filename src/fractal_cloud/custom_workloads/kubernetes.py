"""What runs people's own programs in a cluster, under short names."""

from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload as workload

__all__ = ["workload"]
