"""The component types of Kubernetes and OpenShift; cloud.py alone knows the SDK, and nothing here decides."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.offers.offer import Provider, RealmsInAFile, Session


def _connect() -> Session:
    from fractal_cloud.offers.kubernetes.cloud import KubernetesSession

    return KubernetesSession()


def _entry() -> type[RealmEntry]:
    from fractal_cloud.offers.kubernetes.realm_entry import KubernetesRealm

    return KubernetesRealm


def _connect_to(entries: Sequence[Any]) -> Session:
    from fractal_cloud.offers.kubernetes.cloud import KubernetesSession
    from fractal_cloud.offers.listed_realms import through_one

    return through_one(KubernetesSession(), entries)


def _is_at_hand() -> bool:
    named = os.environ.get("KUBECONFIG") or os.environ.get("KUBERNETES_SERVICE_HOST")
    return bool(named) or (Path.home() / ".kube" / "config").exists()


PROVIDER = Provider(
    name="kubernetes",
    title="Kubernetes and OpenShift",
    connect=_connect,
    packages=("kubernetes",),
    is_at_hand=_is_at_hand,
    realms=RealmsInAFile(_entry, _connect_to),
)
