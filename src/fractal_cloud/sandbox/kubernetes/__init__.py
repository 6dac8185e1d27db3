"""The Kubernetes of the sandbox: a small API server with state, which defaults, validates and fails on demand."""

from fractal_cloud.sandbox.kubernetes.cloud import KubernetesCloud

__all__ = ["KubernetesCloud"]
