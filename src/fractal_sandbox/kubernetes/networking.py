"""Services: the addresses and ports the server gives them, and keeps for them.

Allocation happens when a Service is written, as on the real server; the address outside is a controller's.
"""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from fractal_sandbox.kubernetes.kinds import Object

__all__ = ["Addresses", "complete_service"]

_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")


class Addresses:
    """OperatorActions out cluster addresses, node ports and addresses outside; none of them twice."""

    def __init__(self) -> None:
        self._hosts = count(10)
        self._ports = count(30001)
        self._outside = count(1)

    def cluster_ip(self) -> str:
        number = next(self._hosts)
        return f"10.96.{number // 250}.{number % 250 + 1}"

    def node_port(self) -> int:
        return next(self._ports)

    def outside_ip(self) -> str:
        number = next(self._outside)
        return f"203.0.{113 + number // 250}.{number % 250 + 1}"  # an address range for documentation


def complete_service(item: Object, before: Object | None, addresses: Addresses) -> None:
    """Fill a Service in: with what it had before, else with new addresses and ports."""
    spec: dict[str, Any] = item.setdefault("spec", {})
    old: dict[str, Any] = (before or {}).get("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        timeout = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        timeout.setdefault("timeoutSeconds", 10800)
    for port in spec.get("ports", []):
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port")
    if spec["type"] == "ExternalName":
        _drop_unchanged(spec, old, ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"))
    else:
        _complete_cluster_ip(spec, old, addresses)
    _complete_node_ports(spec, old, addresses)


def _complete_cluster_ip(spec: Object, old: Object, addresses: Addresses) -> None:
    if not spec.get("clusterIP") and spec.get("clusterIPs"):
        spec["clusterIP"] = spec["clusterIPs"][0]
    if not spec.get("clusterIP"):
        kept = old.get("clusterIP", "") if old.get("type") != "ExternalName" else ""
        spec["clusterIP"] = kept or addresses.cluster_ip()
        spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("internalTrafficPolicy", "Cluster")


def _complete_node_ports(spec: Object, old: Object, addresses: Addresses) -> None:
    old_ports = {(port.get("port"), port.get("protocol")): port for port in old.get("ports", [])}
    if spec["type"] in _WITH_NODE_PORTS:
        spec.setdefault("externalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        else:
            _drop_unchanged(spec, old, ("allocateLoadBalancerNodePorts",))
        for port in spec.get("ports", []):
            if not port.get("nodePort"):
                kept = old_ports.get((port.get("port"), port["protocol"]), {}).get("nodePort")
                port["nodePort"] = kept or addresses.node_port()
        return
    if old.get("type") in _WITH_NODE_PORTS:
        _drop_unchanged(spec, old, ("externalTrafficPolicy", "allocateLoadBalancerNodePorts"))
        for port in spec.get("ports", []):
            kept = old_ports.get((port.get("port"), port["protocol"]), {}).get("nodePort")
            if kept is not None and port.get("nodePort") == kept:
                del port["nodePort"]


def _drop_unchanged(spec: Object, old: Object, fields: tuple[str, ...]) -> None:
    """Drop what only the type before needed, where nobody changed it."""
    for name in fields:
        if name in spec and name in old and spec[name] == old[name]:
            del spec[name]
