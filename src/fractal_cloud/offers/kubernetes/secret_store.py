"""Secrets that are kept as Secrets of a cluster: one of the agent's kubeconfig, or the one it runs in (A8)."""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Mapping
from typing import Any

from fractal_cloud.model.errors import CloudError, Denied, SecretUnavailable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.kinds import SECRET
from fractal_cloud.offers.secret_stores import SecretStore


class KubernetesSecretStore(SecretStore):
    """``secret``: namespace/name. ``key``: of that Secret. ``context``: of the kubeconfig; without it, the current."""

    required = ("secret", "key")
    optional = ("context",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clusters: dict[str, Any] = {}

    def read(self, where: Mapping[str, str]) -> bytes:
        """The value of the key as it is now."""
        namespace, _, name = where["secret"].partition("/")
        if not namespace or not name or "/" in name:
            raise SecretUnavailable(f"its binding says secret: {where['secret']!r}, which is not namespace/name")
        try:
            found = Kubernetes(self._cluster(where.get("context", "")), Scope("kubernetes", "", namespace)).find(
                SECRET, name
            )
        except Denied as error:
            raise SecretUnavailable(f"the cluster refuses Secret {where['secret']!r}: {error.cause}") from None
        except CloudError as error:
            raise SecretUnavailable(
                f"Secret {where['secret']!r} cannot be read: {error.cause}", is_passing=True
            ) from None
        if found is None:
            raise SecretUnavailable(f"there is no Secret {where['secret']!r}")
        return _value_of(found, where)

    def _cluster(self, context: str) -> Any:
        """The way into a cluster; found once, and kept."""
        from fractal_cloud.offers.kubernetes.cloud import KubernetesSession

        with self._lock:
            if context not in self._clusters:
                self._clusters[context] = KubernetesSession().enter(context)
            return self._clusters[context]


def _value_of(found: Mapping[str, Any], where: Mapping[str, str]) -> bytes:
    try:
        return base64.b64decode(found["data"][where["key"]], validate=True)
    except (KeyError, TypeError, binascii.Error, ValueError):
        raise SecretUnavailable(f"Secret {where['secret']!r} has no key {where['key']!r}") from None
