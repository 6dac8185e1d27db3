"""The component types of Kubernetes and OpenShift; cloud.py alone knows the SDK, and nothing here decides."""

import os
from pathlib import Path

from fractal_cloud.offers.offer import Provider, Session


def _connect() -> Session:
    from fractal_cloud.offers.kubernetes.cloud import KubernetesSession

    return KubernetesSession()


def _is_at_hand() -> bool:
    named = os.environ.get("KUBECONFIG") or os.environ.get("KUBERNETES_SERVICE_HOST")
    return bool(named) or (Path.home() / ".kube" / "config").exists()


PROVIDER = Provider(
    name="kubernetes",
    title="Kubernetes and OpenShift",
    connect=_connect,
    packages=("kubernetes",),
    is_at_hand=_is_at_hand,
)
