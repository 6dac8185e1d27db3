"""Services: one port in front of the pods that a selector chooses; further ports are left alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import field_validator, model_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.kubernetes import ports
from fractal_cloud.offers.kubernetes.kinds import Labels, Object, ObjectKind, Port, Selected, service_name
from fractal_cloud.offers.kubernetes.objects import OUTPUTS, SETTLED, ObjectComponent, ObjectOffer, State
from fractal_cloud.offers.kubernetes.tags import glass
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.offers.offer import Wanted

SERVICE: Final = ObjectKind("", "v1", "Service", "services")


class KubernetesService(ObjectComponent):
    """A stable name and address for the pods of a workload."""

    type = "NetworkAndCompute.CaaS.KubernetesService"

    port: Port = parameter(description="The port it listens on.")
    target_port: Port | str | None = parameter(
        default=None, description="Port of the pods, a number or a name; the same as `port` if not given."
    )
    protocol: Literal["TCP", "UDP", "SCTP"] | None = parameter(default=None, description="TCP if not given.")
    workload: Selected[KubernetesWorkload] | None = parameter(
        default=None,
        reference=(KubernetesWorkload.type, "selector"),
        description="The workload in front of which it stands; instead of `selector`.",
    )
    selector: Labels | None = parameter(
        default=None, description="Labels of the pods it stands for; instead of `workload`."
    )
    service_type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = parameter(
        default="ClusterIP", description="Who reaches it: the cluster, everybody who reaches a node, or the world."
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
    vendor_type = "v1/Service"
    outputs: ClassVar[Mapping[str, str]] = {
        **OUTPUTS,
        "clusterIP": "its address inside the cluster",
        "host": "its name inside the cluster: name.namespace.svc",
        "ports": "all its ports, other people's too, in the server's order",
        "nodePort": "its port on every node, where it has one",
        "loadBalancerIngress": "addresses or names at which the world reaches it",
    }
    glass = glass(SERVICE)

    def actual(self, item: Object) -> dict[str, Any]:
        """A port, the type, and which pods are meant."""
        spec = item["spec"]
        selector = spec.get("selector") or {}
        return {
            **_shown(spec.get("ports") or [], 0),
            "selector": selector,
            "workload": selector,
            "serviceType": spec.get("type"),
        }

    def as_declared(self, sighting: Sighting, declared: Mapping[str, Any], published: Mapping[str, Any]) -> Sighting:
        """With the port that is declared, or was ours before: other people's ports may stand first."""
        there: list[Object] = sighting.outputs["ports"]
        index = ports.find(there, "port", declared, published)
        if index == 0:
            return sighting
        outputs = {name: value for name, value in sighting.outputs.items() if name not in ("port", "nodePort")}
        actual = {**sighting.actual, **_shown(there, index)}
        return replace(sighting, actual=actual, outputs={**outputs, **_reached(there, index)})

    def apply(self, item: Object, wanted: Wanted[KubernetesService], names: Collection[str]) -> None:
        """Write the port and the rest into a new Service."""
        self._apply(item, wanted, names, None)

    def correct(
        self, item: Object, sighting: Sighting, wanted: Wanted[KubernetesService], names: Collection[str]
    ) -> None:
        """Write the port that was taken for ours, and the rest; where none was, it is added beside the others."""
        there = item["spec"].get("ports") or []
        self._apply(item, wanted, names, ports.still(there, "port", sighting.actual, sighting.name))

    def _apply(
        self, item: Object, wanted: Wanted[KubernetesService], names: Collection[str], index: int | None
    ) -> None:
        declared, spec = wanted.component, item["spec"]
        values = {"port": declared.port, "targetPort": declared.target_port, "protocol": declared.protocol}
        if index is None and values.keys() & set(names):
            ours = {"name": ports.NAME, **{name: value for name, value in values.items() if value is not None}}
            spec["ports"] = [*(spec.get("ports") or []), ours]
        elif index is not None and values.keys() & set(names):
            spec["ports"][index] = _changed(spec["ports"][index], values, names)
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
        metadata, there = item["metadata"], item["spec"].get("ports") or []
        ingress = ingress_of(item)
        return {
            "host": f"{metadata['name']}.{metadata['namespace']}.svc",
            "ports": there,
            **_reached(there, 0),
            **({"clusterIP": item["spec"]["clusterIP"]} if item["spec"].get("clusterIP") else {}),
            **({"loadBalancerIngress": ingress} if ingress else {}),
        }


def _at(there: Sequence[Object], index: int | None) -> Object:
    return there[index] if index is not None and index < len(there) else {}


def _shown(there: Sequence[Object], index: int | None) -> dict[str, Any]:
    """The parameters that one port comes to; empty where it is not there."""
    port = _at(there, index)
    return {
        "port": port.get("port"),
        "targetPort": port.get("targetPort", port.get("port")),
        "protocol": port.get("protocol"),
    }


def _reached(there: Sequence[Object], index: int | None) -> dict[str, Any]:
    port = _at(there, index)
    return {"port": port.get("port"), **({"nodePort": port["nodePort"]} if port.get("nodePort") else {})}


def _changed(port: Object, values: Mapping[str, Any], names: Collection[str]) -> Object:
    """A port with what drifted. The target follows the port where nobody chose another: the server would keep it."""
    changed = {**port, **{name: value for name, value in values.items() if name in names}}
    follows = values["targetPort"] is None and port.get("targetPort", port["port"]) == port["port"]
    return {**changed, "targetPort": changed["port"]} if "port" in names and follows else changed


def ingress_of(item: Object) -> list[str]:
    """The addresses of a Service's load balancer."""
    entries = ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return [one.get("ip") or one.get("hostname") or "" for one in entries]
