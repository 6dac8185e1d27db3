"""The clusters that the sandbox's vendors keep for people (EKS, AKS, GKE, KaaS), each an API server of its own.

A vendor opens one when a cluster is made, with its own way of authenticating callers, and closes it when it is deleted:
from then on nobody answers at its address. All are reached over TLS, below one path of the sandbox's port.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from fractal_sandbox.calls import Actor, CallLog
from fractal_sandbox.certificates import authority
from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.http_server import ConnectionCut, Environ, StartResponse
from fractal_sandbox.owned_resources import Owned

if TYPE_CHECKING:
    from fractal_sandbox.kubernetes.cloud import KubernetesCloud
    from fractal_sandbox.monitor import Finding

__all__ = ["CLUSTERS", "PATH", "Clusters", "address", "certificate", "kubeconfig"]

PATH: Final = "/api-servers"
Authenticate = Callable[[str], Actor | None]
"""Who a bearer token says it is; None where the vendor would refuse it."""


class Clusters:
    """All of them, in one process; each has a monitor of its own, and they share knobs and the record of calls."""

    name = "clusters"

    def __init__(self) -> None:
        self.knobs = Knobs()
        self.calls = CallLog()
        self._lock = threading.Lock()
        self._open: dict[str, KubernetesCloud] = {}
        self._closed: list[KubernetesCloud] = []

    @property
    def monitor(self) -> _Monitors:
        return _Monitors(self)

    def all(self) -> dict[str, KubernetesCloud]:
        """Those that are open, by their keys."""
        with self._lock:
            return dict(self._open)

    def open(self, key: str, authenticate: Authenticate) -> None:
        """Have an empty cluster answer at the address of a key."""
        from fractal_sandbox.kubernetes.cloud import KubernetesCloud

        made = KubernetesCloud(authenticate=authenticate, beside=(self.knobs, self.calls))
        with self._lock:
            self._open[key] = made

    def close(self, key: str) -> None:
        """Nobody answers there any more."""
        with self._lock:
            gone = self._open.pop(key, None)
            self._closed += [gone] if gone is not None else []

    def watched(self) -> list[KubernetesCloud]:
        """Those that are open and those that were closed: what was done in one that is gone was done all the same."""
        with self._lock:
            return [*self._open.values(), *self._closed]

    def owned_resources(self) -> list[Owned]:
        """The owned objects of every cluster that is open; each says which cluster it is in."""
        return [
            replace(one, cloud=f"{self.name}/{key}")
            for key, cluster in self.all().items()
            for one in cluster.owned_resources()
        ]

    def reset(self) -> None:
        """Close all of them."""
        with self._lock:
            self._open.clear()
            self._closed.clear()
        self.knobs.reset()
        self.calls.clear()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        _, key, *rest = environ["PATH_INFO"].split("/", 2)
        found = self.all().get(key)
        if found is None or environ["wsgi.url_scheme"] != "https":
            raise ConnectionCut
        return found({**environ, "PATH_INFO": f"/{''.join(rest)}"}, start_response)


class _Monitors:
    """What the monitors of all clusters saw."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters

    def as_json(self) -> dict[str, Any]:
        seen = [cluster.monitor.as_json() for cluster in self._clusters.watched()]
        return {name: [one for each in seen for one in each[name]] for name in ("violations", "lostRaces")}

    @property
    def violations(self) -> list[Finding]:
        return [one for cluster in self._clusters.watched() for one in cluster.monitor.violations]

    @property
    def lost_races(self) -> list[Finding]:
        return [one for cluster in self._clusters.watched() for one in cluster.monitor.lost_races]


CLUSTERS: Final = Clusters()


def address(host: str, key: str) -> str:
    """Where a cluster answers, without its scheme; ``host``: name and port of the sandbox."""
    return f"{host}{PATH}/{key}"


def certificate() -> str:
    """What a client must trust, as vendors return it: PEM in base64."""
    return base64.b64encode(authority().certificate.encode()).decode()


def kubeconfig(name: str, server: str, user: dict[str, Any]) -> str:
    """A kubeconfig with one context, as a vendor's API hands it out: in base64."""
    import json

    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": f"https://{server}", "certificate-authority-data": certificate()}}
        ],
        "users": [{"name": f"user-of-{name}", "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"user-of-{name}"}}],
        "current-context": name,
    }
    return base64.b64encode(json.dumps(content).encode()).decode()
