"""Services: ports in front of the pods that a selector chooses; ports that are not declared are left alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.kubernetes import ports
from fractal_cloud.offers.kubernetes.container_model import Nested, Protocol, unique
from fractal_cloud.offers.kubernetes.kinds import (
    ContainerName,
    Labels,
    Object,
    ObjectKind,
    Port,
    PortName,
    Selected,
    service_name,
)
from fractal_cloud.offers.kubernetes.nested import as_far_as_declared, with_declared
from fractal_cloud.offers.kubernetes.objects import OUTPUTS, SETTLED, ObjectComponent, ObjectOffer, State
from fractal_cloud.offers.kubernetes.tags import glass
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.offers.offer import Wanted

SERVICE: Final = ObjectKind("", "v1", "Service", "services")
ALL: Final = "allPorts"


class KubernetesServicePort(Nested):
    """One port of a Service."""

    port: Port = Field(description="The port it listens on.")
    name: ContainerName | None = Field(default=None, description="Its name; needed where there are several ports.")
    target_port: Port | PortName | None = Field(
        default=None, description="Port of the pods, a number or a name; the same as `port` if not given."
    )
    protocol: Protocol | None = Field(default=None, description="TCP if not given.")
    node_port: Port | None = Field(default=None, description="Port on every node; the cluster chooses if not given.")
    app_protocol: str | None = Field(default=None, description="What is spoken there, such as grpc or https.")


class KubernetesService(ObjectComponent):
    """A stable name and address for the pods of a workload."""

    type = "NetworkAndCompute.CaaS.KubernetesService"

    port: Port | None = parameter(default=None, description="The port it listens on; instead of `ports`.")
    target_port: Port | str | None = parameter(
        default=None, description="Port of the pods, a number or a name; the same as `port` if not given."
    )
    protocol: Protocol | None = parameter(default=None, compare="caseless", description="TCP if not given.")
    port_name: ContainerName | None = parameter(default=None, description="The port's name; main if not given.")
    ports: Annotated[list[KubernetesServicePort], unique("port", "protocol"), unique("name")] | None = parameter(
        default=None, min_length=1, description="Several ports; those of others are left alone."
    )
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
    cluster_ip: Literal["None"] | None = parameter(
        default=None,
        declared_as="clusterIP",
        immutable=True,
        description="None: it has no address of its own, and its name leads to the pods themselves (headless).",
    )
    session_affinity: Literal["None", "ClientIP"] | None = parameter(
        default=None, description="ClientIP: who comes from one address is led to the same pod."
    )

    _check_name = field_validator("name")(service_name)

    @model_validator(mode="after")
    def _selects_once(self) -> Self:
        if self.workload is not None and self.selector is not None:
            raise ValueError("workload and selector both say which pods are meant: give one of them")
        return self

    @model_validator(mode="after")
    def _says_its_ports_once(self) -> Self:
        if self.ports is None:
            if self.port is None:
                raise ValueError("it has no port: give port, or several as ports")
            return self
        given = next((name for name in _OF_ONE_PORT if getattr(self, _OF_ONE_PORT[name]) is not None), None)
        if given is not None:
            raise ValueError(f"{given} and ports both say which ports it has: give it in ports")
        if len(self.ports) > 1 and any(one.name is None for one in self.ports):
            raise ValueError("several ports are known by their names: give each one a name")
        return self


_OF_ONE_PORT: Final = {
    "port": "port",
    "targetPort": "target_port",
    "protocol": "protocol",
    "portName": "port_name",
}
"""The parameters that speak of the one port, with their names in Python."""


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
        ALL: "all its ports, other people's too, in the server's order",
        "nodePort": "its port on every node, where it has one",
        "loadBalancerIngress": "addresses or names at which the world reaches it",
    }
    glass = glass(SERVICE)

    def actual(self, item: Object) -> dict[str, Any]:
        """A port or all of them, the type, and which pods are meant."""
        spec = item["spec"]
        selector, there = spec.get("selector") or {}, spec.get("ports") or []
        several = {"ports": [dict(port) for port in there]} if len(there) > 1 else {}
        return {
            **_shown(there, None if several else 0),
            **several,
            "selector": selector,
            "workload": selector,
            "serviceType": spec.get("type"),
            "clusterIP": "None" if spec.get("clusterIP") == "None" else None,
            "sessionAffinity": spec.get("sessionAffinity"),
        }

    def as_declared(self, sighting: Sighting, declared: Mapping[str, Any], published: Mapping[str, Any]) -> Sighting:
        """With the ports that are declared, or were ours before: other people's ports may stand first."""
        sighting = super().as_declared(sighting, declared, published)
        there: list[Object] = sighting.outputs[ALL]
        if isinstance(declared.get("ports"), list):
            # What was published under that name before there was the other was everybody's.
            before = published.get("ports") if ALL in published else None
            ours = as_far_as_declared("ports", there, declared["ports"], before)
            return replace(sighting, actual={**sighting.actual, "ports": ours})
        index = ports.find(there, "port", declared, published)
        outputs = {name: value for name, value in sighting.outputs.items() if name not in ("port", "nodePort")}
        actual = {**sighting.actual, **_shown(there, index)}
        return replace(sighting, actual=actual, outputs={**outputs, **_reached(there, index)})

    def apply(self, item: Object, wanted: Wanted[KubernetesService], names: Collection[str]) -> None:
        """Write the ports and the rest into a new Service."""
        self._apply(item, wanted, names, {}, None)

    def correct(
        self, item: Object, sighting: Sighting, wanted: Wanted[KubernetesService], names: Collection[str]
    ) -> None:
        """Write the ports that were taken for ours, and the rest; where none was, it is added beside the others."""
        there = item["spec"].get("ports") or []
        index = None
        if wanted.component.ports is None:
            index = ports.still(there, "port", sighting.actual, sighting.name)
        self._apply(item, wanted, names, sighting.actual, index)

    def _apply(
        self,
        item: Object,
        wanted: Wanted[KubernetesService],
        names: Collection[str],
        seen: Mapping[str, Any],
        index: int | None,
    ) -> None:
        declared, spec = wanted.component, item["spec"]
        if "ports" in names and declared.ports is not None:
            given = [port.declared() for port in declared.ports]
            there = [_without_target(port) for port in spec.get("ports") or []]
            merged = with_declared("ports", there, given, seen.get("ports"))
            spec["ports"] = [{**port, "targetPort": port.get("targetPort", port["port"])} for port in merged]
        elif declared.ports is None:
            _put_port(spec, declared, names, index)
        if "serviceType" in names:
            spec["type"] = declared.service_type
        if "clusterIP" in names:
            spec["clusterIP"] = declared.cluster_ip
        if "sessionAffinity" in names:
            spec["sessionAffinity"] = declared.session_affinity
            if declared.session_affinity == "None":
                spec.pop("sessionAffinityConfig", None)
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
            ALL: there,
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
        "portName": port.get("name"),
    }


def _put_port(spec: Object, declared: KubernetesService, names: Collection[str], index: int | None) -> None:
    """Write the one port; where none was taken for it, beside those of others."""
    values = {
        "port": declared.port,
        "targetPort": declared.target_port,
        "protocol": declared.protocol,
        "name": declared.port_name,
    }
    changed = {"name" if name == "portName" else name for name in names if name in _OF_ONE_PORT}
    if index is None and changed:
        ours = {"name": ports.NAME, **{name: value for name, value in values.items() if value is not None}}
        spec["ports"] = [*(spec.get("ports") or []), ours]
    elif index is not None and changed:
        spec["ports"][index] = _changed(spec["ports"][index], values, changed)


def _without_target(port: Object) -> Object:
    """A port whose target may follow it: where it is the port itself, nobody chose it."""
    return {name: value for name, value in port.items() if name != "targetPort" or value != port["port"]}


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
