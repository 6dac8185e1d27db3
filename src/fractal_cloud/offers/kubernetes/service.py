"""Services: one port in front of the pods that a selector chooses; further ports are left alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.kubernetes.kinds import SERVICE, Labels, Object, Port, Selected, service_name
from fractal_cloud.offers.kubernetes.objects import OUTPUTS, SETTLED, ObjectComponent, ObjectOffer, State
from fractal_cloud.offers.kubernetes.tags import glass
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.offers.offer import Wanted


class KubernetesService(ObjectComponent):
    """A stable name and address for the pods of a workload."""

    type = "NetworkAndCompute.CaaS.KubernetesService"

    port: Port = parameter(description="The port it listens on.")
    target_port: Port | str | None = parameter(
        None, description="Port of the pods, a number or a name; the same as `port` if not given."
    )
    protocol: Literal["TCP", "UDP", "SCTP"] | None = parameter(None, description="TCP if not given.")
    workload: Selected | None = parameter(
        None,
        reference=(KubernetesWorkload.type, "selector"),
        description="The workload in front of which it stands; instead of `selector`.",
    )
    selector: Labels | None = parameter(None, description="Labels of the pods it stands for; instead of `workload`.")
    service_type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = parameter(
        "ClusterIP", description="Who reaches it: the cluster, everybody who reaches a node, or the world."
    )

    _check_name = field_validator("name")(service_name)

    @model_validator(mode="after")
    def _selects_once(self) -> Self:
        if self.workload is not None and self.selector is not None:
            raise ValueError("workload and selector both say which pods are meant: give one of them")
        return self


class KubernetesServiceOffer(ObjectOffer[KubernetesService]):
    """How Services are read and changed."""

    component = KubernetesService
    title = "Service"
    object_kind = SERVICE
    outputs: ClassVar[Mapping[str, str]] = {
        **OUTPUTS,
        "clusterIP": "its address inside the cluster",
        "host": "its name inside the cluster: name.namespace.svc",
        "nodePort": "its port on every node, where it has one",
        "loadBalancerIngress": "addresses or names at which the world reaches it",
    }
    glass = glass(SERVICE)

    def actual(self, item: Object) -> dict[str, Any]:
        """The first port, the type, and which pods are meant."""
        spec = item["spec"]
        first = _first(spec)
        selector = spec.get("selector") or {}
        return {
            "port": first.get("port"),
            "targetPort": first.get("targetPort", first.get("port")),
            "protocol": first.get("protocol"),
            "selector": selector,
            "workload": selector,
            "serviceType": spec.get("type"),
        }

    def apply(self, item: Object, wanted: Wanted[KubernetesService], names: Collection[str]) -> None:
        """Write the first port and the rest."""
        declared, spec = wanted.component, item["spec"]
        values = {"port": declared.port, "targetPort": declared.target_port, "protocol": declared.protocol}
        changed = {name: value for name, value in values.items() if name in names}
        if changed:
            spec["ports"] = [{**_first(spec), **changed}, *(spec.get("ports") or [])[1:]]
        if "serviceType" in names:
            spec["type"] = declared.service_type
        for name, pods in (("selector", declared.selector), ("workload", declared.workload)):
            if name in names and isinstance(pods, dict):
                spec["selector"] = dict(pods)

    def state(self, item: Object, beside: Any) -> State:
        """A load balancer takes its time."""
        del beside
        if item["spec"].get("type") != "LoadBalancer" or ingress_of(item):
            return SETTLED
        return Condition.CREATING, "the cluster has not given it an outside address yet"

    def shown(self, item: Object, beside: Any) -> dict[str, Any]:
        """Where it is reached."""
        del beside
        metadata, first = item["metadata"], _first(item["spec"])
        ingress = ingress_of(item)
        return {
            "host": f"{metadata['name']}.{metadata['namespace']}.svc",
            "port": first.get("port"),
            **({"clusterIP": item["spec"]["clusterIP"]} if item["spec"].get("clusterIP") else {}),
            **({"nodePort": first["nodePort"]} if first.get("nodePort") else {}),
            **({"loadBalancerIngress": ingress} if ingress else {}),
        }


def _first(spec: Object) -> Object:
    ports: list[Object] = spec.get("ports") or [{}]
    return ports[0]


def ingress_of(item: Object) -> list[str]:
    """The addresses of a Service's load balancer."""
    entries = ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return [one.get("ip") or one.get("hostname") or "" for one in entries]
