"""Clusters that are declared as components: which types there are, and how an agent enters one.

A host is known here by its natural identity alone. Where it answers, and by which authority it is known, is asked of
the vendor whose cluster it is, with this agent's own credentials of that vendor (A6); never of what a component
published. Nothing of a vendor is imported before such a cluster is declared.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.model.errors import Denied, RegistrationError, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.wire import Host
from fractal_cloud.offers.cluster_access import Access, check_access
from fractal_cloud.offers.offer import Session
from fractal_cloud.offers.refusals import describe_unexpected

EKS: Final = "NetworkAndCompute.PaaS.AwsEks"
AKS: Final = "NetworkAndCompute.PaaS.AzureAks"
GKE: Final = "NetworkAndCompute.PaaS.GcpGke"
KAAS: Final = "NetworkAndCompute.PaaS.ArubaKaas"
HOSTS: Final[Mapping[str, tuple[str, ...]]] = {
    EKS: ("clusterArn", "clusterName", "region", "endpoint", "certificateAuthorityData"),
    AKS: ("id", "name", "fqdn"),
    GKE: ("project", "location", "clusterName", "clusterId", "endpoint", "certificateAuthorityData"),
    KAAS: ("id", "kaasUri", "managementIp"),
}
"""The types of clusters, each with the outputs that it has once it can be entered; one that is made anew has others.

They distinguish one incarnation of a cluster from the next, and nothing else: no agent gets them.
"""


class Vendors:
    """The sessions of vendors whose clusters are declared, opened when needed. Safe to share by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}

    def access(self, host: Host) -> Access:
        """How a declared cluster is entered now; raises an error of the closed set, saying what is missing."""
        from fractal_cloud.offers.registry import installed

        try:
            registry = installed(host.vendor)
            offer = registry.get(host.type)
            if offer is None or offer.cluster_addresses is None:
                raise Denied(f"nothing that is installed here knows how clusters of type {host.type} are entered")
            session = self._session(host.vendor, registry)
            cloud = session.at(Scope(host.vendor, host.realm, host.place))
            access = offer.enter(cloud, host.resource)
        except (ModuleNotFoundError, RegistrationError) as missing:
            raise Denied(f"{_needs(host)}: {missing}") from missing
        except Denied as error:
            raise Denied(f"{_needs(host)}: {error.message}", code=error.code) from error
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise Unreadable(
                f"what {host.vendor} says of it cannot be understood: {describe_unexpected(error)}"
            ) from error
        if access is None:
            raise Unreadable(f"{host.vendor} has no cluster {host.resource!r} in {host.realm!r} {host.place!r}")
        check_access(access, offer.cluster_addresses)
        return access

    def _session(self, vendor: str, registry: Any) -> Session:
        with self._lock:
            found = self._sessions.get(vendor)
            if found is None:
                found = self._sessions[vendor] = registry.provider(vendor).connect()
            return found


def _needs(host: Host) -> str:
    where = f"{host.vendor} {host.realm!r}"
    return f"the agent that enters the cluster {host.resource!r} needs read access to it in {where}"


def name_of(host: Host) -> str:
    """What a cluster is called in messages until it was entered."""
    return host.resource
