"""Workloads: a Deployment with one container of ours; containers that others put beside it are left alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.referable import SensitiveText, texts_of
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.kubernetes import ports
from fractal_cloud.offers.kubernetes.containers import (
    LINKED,
    EnvironmentName,
    container_of,
    entries_of,
    env_of_links,
    flat_linked,
    linked_names,
    plain_env,
    put_linked,
    with_env,
)
from fractal_cloud.offers.kubernetes.kinds import Object, ObjectKind, Port, Quantity, label_name
from fractal_cloud.offers.kubernetes.objects import OUTPUTS, SETTLED, ObjectComponent, ObjectOffer, State
from fractal_cloud.offers.kubernetes.tags import glass
from fractal_cloud.offers.link_types import WorkloadSource
from fractal_cloud.offers.offer import LinkFields, Wanted

DEPLOYMENT: Final = ObjectKind("apps", "v1", "Deployment", "deployments")

SELECTED_BY: Final = "app.kubernetes.io/name"


class KubernetesWorkload(ObjectComponent, WorkloadSource):
    """A container that runs in a cluster, as often as you say: a Deployment."""

    type = "CustomWorkloads.CaaS.KubernetesWorkload"

    image: str = parameter(description="Image of its container.", min_length=1, examples=["nginx:1.29"])
    replicas: int = parameter(
        default=1, ge=0, description="How many of it run. Leave it to an autoscaler with ignoreDrift: [replicas]."
    )
    container_port: Port | None = parameter(default=None, description="The port it listens on.")
    env: Mapping[EnvironmentName, SensitiveText] | None = parameter(
        default=None,
        lines=True,
        holds_secrets=True,
        description="Its environment, whole: another plain value is drift, values from secrets and links are not.",
    )
    cpu: Quantity | None = parameter(
        default=None, compare="quantity", description="CPU it asks for, such as 500m or 2."
    )
    memory: Quantity | None = parameter(
        default=None, compare="quantity", description="Memory it asks for, such as 512Mi or 1Gi."
    )
    command: list[str] | None = parameter(
        default=None, lines=True, description="What it runs instead of the image's entry point."
    )
    linked_env: dict[str, str] | None = parameter(
        default=None, linked=True, description="Environment variables that its links bring; nobody declares them."
    )

    _check_name = field_validator("name")(label_name)


class KubernetesWorkloadOffer(ObjectOffer[KubernetesWorkload]):
    """How Deployments are read and changed."""

    component = KubernetesWorkload
    title = "Workload"
    object_kind = DEPLOYMENT
    vendor_type = "apps/v1/Deployment"
    outputs: ClassVar[Mapping[str, str]] = {
        **OUTPUTS,
        "selector": "labels of its pods, by which services and policies choose them",
        "containerPorts": "all ports of its container, other people's too",
        "readyReplicas": "how many are ready",
        "updatedReplicas": "how many run what is declared now",
        LINKED: "environment variables that its links brought",
    }
    glass = glass(DEPLOYMENT)

    def new(self, wanted: Wanted[KubernetesWorkload]) -> Object:
        """A Deployment whose pods are chosen by their name, with one container."""
        labels = {SELECTED_BY: wanted.component.name}
        containers = [{"name": "main"}]
        template = {"metadata": {"labels": dict(labels)}, "spec": {"containers": containers}}
        return {"spec": {"selector": {"matchLabels": labels}, "template": template}}

    def actual(self, item: Object) -> dict[str, Any]:
        """The container's fields, and how many there are."""
        container = container_of(item)
        requests = (container.get("resources") or {}).get("requests") or {}
        there = container.get("ports") or []
        return {
            "replicas": item["spec"].get("replicas"),
            "image": container.get("image"),
            "containerPort": _number(there, 0 if there else None),
            "env": plain_env(container, without=linked_names(item)),
            "cpu": requests.get("cpu"),
            "memory": requests.get("memory"),
            "command": container.get("command"),
            LINKED: flat_linked(item),
        }

    def as_declared(self, sighting: Sighting, declared: Mapping[str, Any], published: Mapping[str, Any]) -> Sighting:
        """With the port that is declared, or was ours before: other people's ports may stand first."""
        there: list[Object] = sighting.outputs["containerPorts"]
        index = ports.find(there, "containerPort", declared, published)
        if index == 0:
            return sighting
        return replace(sighting, actual={**sighting.actual, "containerPort": _number(there, index)})

    def apply(self, item: Object, wanted: Wanted[KubernetesWorkload], names: Collection[str]) -> None:
        """Write into the container what is declared."""
        self._apply(item, wanted, names, {})

    def correct(
        self, item: Object, sighting: Sighting, wanted: Wanted[KubernetesWorkload], names: Collection[str]
    ) -> None:
        """The same, into the port that was taken for ours."""
        self._apply(item, wanted, names, sighting.actual)

    def _apply(
        self,
        item: Object,
        wanted: Wanted[KubernetesWorkload],
        names: Collection[str],
        seen: Mapping[str, Any],
    ) -> None:
        declared = wanted.component
        container = container_of(item)
        if "replicas" in names:
            item["spec"]["replicas"] = declared.replicas
        if "image" in names:
            container["image"] = declared.image
        if "command" in names:
            container["command"] = declared.command
        if "containerPort" in names:
            there = container.get("ports") or []
            index = ports.still(there, "containerPort", seen, declared.name)
            ours = {**(there[index] if index is not None else {}), "containerPort": declared.container_port}
            container["ports"] = [ours if at == index else port for at, port in enumerate(there)]
            if index is None:
                container["ports"].append(ours)
        for name, value in (("cpu", declared.cpu), ("memory", declared.memory)):
            if name in names:
                resources = container.get("resources") or {}
                container["resources"] = {**resources, "requests": {**(resources.get("requests") or {}), name: value}}
        if "env" in names:
            container["env"] = with_env(container, texts_of(declared.env), keep=linked_names(item))
        if LINKED in names:
            put_linked(item, entries_of(declared.linked_env or {}))

    def linked_parameters(self, links: Sequence[LinkFields]) -> Mapping[str, Any]:
        """What its links published, as environment variables."""
        return {LINKED: env_of_links(links)}

    def state(self, item: Object, beside: Any) -> State:
        """What `kubectl rollout status` would say."""
        del beside
        spec, status = item["spec"], item.get("status") or {}
        conditions = {one["type"]: one for one in status.get("conditions") or []}
        for kind, bad in (("Progressing", "False"), ("ReplicaFailure", "True")):
            one = conditions.get(kind, {})
            if one.get("status") == bad:
                return Condition.BROKEN, f"the rollout failed ({one.get('reason')}): {one.get('message')}"
        wanted = spec.get("replicas", 1)
        updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
        is_seen = status.get("observedGeneration", 0) >= item["metadata"].get("generation", 0)
        is_done = updated >= wanted and status.get("replicas", 0) <= updated and available >= wanted
        if is_seen and is_done and conditions.get("Available", {}).get("status") != "False":
            return SETTLED
        was_ready = conditions.get("Progressing", {}).get("reason") == "NewReplicaSetAvailable"
        is_new = item["metadata"].get("generation", 1) <= 1 and not was_ready
        detail = f"{available} of {wanted} replicas are available"
        return (Condition.CREATING if is_new else Condition.CHANGING), detail

    def shown(self, item: Object, beside: Any) -> dict[str, Any]:
        """What others need to reach its pods, and how many there are."""
        del beside
        status = item.get("status") or {}
        linked = sorted(linked_names(item))
        return {
            "selector": item["spec"]["selector"].get("matchLabels") or {},
            "containerPorts": container_of(item).get("ports") or [],
            "readyReplicas": status.get("readyReplicas", 0),
            "updatedReplicas": status.get("updatedReplicas", 0),
            **({LINKED: linked} if linked else {}),
        }


def _number(there: Sequence[Object], index: int | None) -> int | None:
    return there[index].get("containerPort") if index is not None else None
