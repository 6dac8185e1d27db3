"""Workloads: a Deployment whose main container is declared flat, and other containers beside it; what somebody else
puts there is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Self

from pydantic import field_validator, model_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.referable import SensitiveText, texts_of
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.kubernetes import ports
from fractal_cloud.offers.kubernetes.container_model import (
    MAIN,
    Amounts,
    Containers,
    KubernetesEnvFrom,
    KubernetesProbe,
    KubernetesSecurityContext,
    Mounts,
    Ports,
    PullPolicy,
    Seconds,
    Values,
    check_environment,
)
from fractal_cloud.offers.kubernetes.containers import (
    LINKED,
    container_of,
    entries_of,
    env_of_links,
    linked_names,
    put_field,
    put_linked,
)
from fractal_cloud.offers.kubernetes.kinds import (
    Annotations,
    ContainerName,
    EnvironmentName,
    Labels,
    Object,
    ObjectKind,
    Port,
    Quantity,
    label_name,
)
from fractal_cloud.offers.kubernetes.nested import as_far_as_declared, with_declared
from fractal_cloud.offers.kubernetes.objects import OUTPUTS, SETTLED, ObjectComponent, ObjectOffer, State
from fractal_cloud.offers.kubernetes.pod_model import (
    KubernetesPodSecurityContext,
    KubernetesStrategy,
    KubernetesToleration,
    Volumes,
)
from fractal_cloud.offers.kubernetes.pods import (
    ALONE,
    NESTED,
    OF_MAIN,
    SELECTED_BY,
    actual_of,
    as_container,
    of_main,
    put_containers,
    put_in_pod,
)
from fractal_cloud.offers.kubernetes.tags import glass
from fractal_cloud.offers.link_types import WorkloadSource
from fractal_cloud.offers.offer import LinkFields, Wanted

__all__ = ["DEPLOYMENT", "SELECTED_BY", "KubernetesWorkload", "KubernetesWorkloadOffer"]

DEPLOYMENT: Final = ObjectKind("apps", "v1", "Deployment", "deployments")


class KubernetesWorkload(ObjectComponent, WorkloadSource):
    """A container that runs in a cluster, as often as you say, with others beside it if need be: a Deployment."""

    type = "CustomWorkloads.CaaS.KubernetesWorkload"

    image: str = parameter(description="Image of its container.", min_length=1, examples=["nginx:1.29"])
    replicas: int = parameter(
        default=1, ge=0, description="How many of it run. Leave it to an autoscaler with ignoreDrift: [replicas]."
    )
    container_name: ContainerName | None = parameter(
        default=None, description=f"What its container is called; {MAIN} if not given."
    )
    container_port: Port | None = parameter(default=None, description="The port it listens on.")
    ports: Ports | None = parameter(
        default=None, description="The ports it listens on, with their names; instead of `containerPort`."
    )
    env: Mapping[EnvironmentName, SensitiveText] | None = parameter(
        default=None,
        lines=True,
        holds_secrets=True,
        description="Its environment, whole: another plain value is drift, values from secrets and links are not.",
    )
    env_value_from: Values | None = parameter(
        default=None,
        description="Environment variables whose value is a key of a Secret or ConfigMap, or a field of the pod.",
    )
    env_from: list[KubernetesEnvFrom] | None = parameter(
        default=None, description="Secrets and ConfigMaps of which every key becomes an environment variable, whole."
    )
    cpu: Quantity | None = parameter(
        default=None, compare="quantity", description="CPU it asks for, such as 500m or 2."
    )
    memory: Quantity | None = parameter(
        default=None, compare="quantity", description="Memory it asks for, such as 512Mi or 1Gi."
    )
    requests: Amounts | None = parameter(
        default=None, description="What else it asks for, such as ephemeral-storage; beside `cpu` and `memory`."
    )
    limits: Amounts | None = parameter(
        default=None, description="What it may use at most: cpu, memory, ephemeral-storage, …."
    )
    command: list[str] | None = parameter(
        default=None, lines=True, description="What it runs instead of the image's entry point."
    )
    args: list[str] | None = parameter(default=None, lines=True, description="Arguments, instead of the image's.")
    working_dir: str | None = parameter(default=None, description="The folder it starts in.")
    image_pull_policy: PullPolicy | None = parameter(default=None, description="When the image is pulled.")
    liveness_probe: KubernetesProbe | None = parameter(
        default=None, description="Where this check fails, the container is started anew."
    )
    readiness_probe: KubernetesProbe | None = parameter(
        default=None, description="Where this check fails, the pod gets no traffic."
    )
    startup_probe: KubernetesProbe | None = parameter(
        default=None, description="The other two checks begin once this one succeeded."
    )
    security_context: KubernetesSecurityContext | None = parameter(
        default=None, description="Under which rights its container runs."
    )
    volume_mounts: Mounts | None = parameter(default=None, description="Where its container sees volumes.")
    volumes: Volumes | None = parameter(
        default=None, description="Volumes of its pods: empty folders, ConfigMaps, Secrets, claims of storage."
    )
    containers: Containers | None = parameter(
        default=None, lines=True, description="Further containers in its pods, by name; those of others are left alone."
    )
    init_containers: Containers | None = parameter(
        default=None, lines=True, description="Containers that run one after the other before the others start."
    )
    service_account_name: str | None = parameter(default=None, description="Service account its pods run as.")
    automount_service_account_token: bool | None = parameter(
        default=None, description="Whether its containers get that account's token."
    )
    image_pull_secrets: list[str] | None = parameter(
        default=None, description="Names of the Secrets with which images are pulled."
    )
    pod_security_context: KubernetesPodSecurityContext | None = parameter(
        default=None, description="Under which rights all containers of a pod run."
    )
    pod_labels: Labels | None = parameter(
        default=None,
        description=f"Labels of its pods, beside `{SELECTED_BY}`, which is its name: only these are compared.",
    )
    pod_annotations: Annotations | None = parameter(
        default=None, lines=True, description="Annotations of its pods: only these are compared."
    )
    node_selector: Labels | None = parameter(default=None, description="Labels of the nodes it may run on.")
    tolerations: list[KubernetesToleration] | None = parameter(
        default=None, description="Taints of nodes that do not keep it away, whole."
    )
    termination_grace_period_seconds: Seconds | None = parameter(
        default=None, description="How long a pod gets to end; 30 if not given."
    )
    strategy: KubernetesStrategy | None = parameter(default=None, description="How a change is rolled out.")
    linked_env: dict[str, str] | None = parameter(
        default=None, linked=True, description="Environment variables that its links bring; nobody declares them."
    )

    _check_name = field_validator("name")(label_name)

    @field_validator("requests")
    @classmethod
    def _asks_once(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for name in ALONE:
            if name in (value or {}):
                raise ValueError(f"{name} has a parameter of its own: declare `{name}` beside `requests`")
        return value

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        ports_given = {one.container_port for one in self.ports or []}
        if self.ports is not None and self.container_port not in {None, *ports_given}:
            raise ValueError("containerPort is none of ports: leave it out")
        check_environment(self.env, self.env_value_from)
        if (self.pod_labels or {}).get(SELECTED_BY, self.name) != self.name:
            raise ValueError(f"the label {SELECTED_BY} of its pods is its name: services and policies find them by it")
        _check_names(self)
        return self


def _check_names(declared: KubernetesWorkload) -> None:
    """Containers and volumes are found by their names, so each has its own."""
    main = declared.container_name or MAIN
    names = [main, *(one.name for one in [*(declared.containers or []), *(declared.init_containers or [])])]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two containers are called {twice!r}: give each its own name")


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
        containers = [{"name": wanted.component.container_name or MAIN}]
        template = {"metadata": {"labels": dict(labels)}, "spec": {"containers": containers}}
        return {"spec": {"selector": {"matchLabels": labels}, "template": template}}

    def actual(self, item: Object) -> dict[str, Any]:
        """The containers' fields, and those of the pods."""
        return actual_of(item)

    def as_declared(self, sighting: Sighting, declared: Mapping[str, Any], published: Mapping[str, Any]) -> Sighting:
        """As far as it is declared: with the container and the port that are, as other people's may stand first."""
        sighting = super().as_declared(sighting, declared, published)
        actual = _with_main(sighting.actual, declared.get("containerName"))
        there: list[Object] = actual["ports"] or []
        found = {
            name: as_far_as_declared(name, actual[name], declared[name], published.get(name))
            for name in NESTED & declared.keys() & actual.keys()
            if declared[name] is not None
        }
        index = ports.find(there, "containerPort", declared, published)
        port = there[index].get("containerPort") if index is not None else None
        return replace(
            sighting,
            actual={**actual, **found, "containerPort": port},
            outputs={**sighting.outputs, "containerPorts": there},
        )

    def apply(self, item: Object, wanted: Wanted[KubernetesWorkload], names: Collection[str]) -> None:
        """Write into a new Deployment what is declared."""
        self._apply(item, wanted, names, {})

    def correct(
        self, item: Object, sighting: Sighting, wanted: Wanted[KubernetesWorkload], names: Collection[str]
    ) -> None:
        """The same, into the containers and entries that were taken for ours."""
        self._apply(item, wanted, names, sighting.actual)

    def _apply(
        self,
        item: Object,
        wanted: Wanted[KubernetesWorkload],
        names: Collection[str],
        seen: Mapping[str, Any],
    ) -> None:
        declared = wanted.component
        main, linked = container_of(item, declared.container_name), linked_names(item)
        values = _values_of(declared)
        for name in (name for name in values if name in names):
            value = values[name]
            if name in OF_MAIN:
                put_field(main, name, value, seen.get(name), linked)
            elif name in ALONE:
                resources = main.get("resources") or {}
                main["resources"] = {**resources, "requests": {**(resources.get("requests") or {}), name: value}}
            elif name in ("containers", "initContainers"):
                put_containers(item, name, value, seen.get(name), linked)
            elif name in ("replicas", "strategy"):
                item["spec"][name] = with_declared(name, item["spec"].get(name) or {}, value)
            elif name == "containerName":
                main["name"] = value
            elif name in NESTED:
                put_in_pod(item, name, value, seen.get(name))
        if "containerPort" in names and declared.container_port is not None:
            _put_port(main, declared.container_port, seen, declared.name)
        if LINKED in names:
            put_linked(item, entries_of(declared.linked_env or {}), declared.container_name)

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


def _with_main(actual: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    """The actual values with the container of this name as the main one, wherever it stands."""
    if name is None or actual["containerName"] == name or all(one["name"] != name for one in actual["containers"]):
        return actual
    main = next(one for one in actual["containers"] if one["name"] == name)
    others = [one for one in actual["containers"] if one is not main]
    return {**actual, **of_main(main), "containers": [as_container(actual), *others]}


def _values_of(declared: KubernetesWorkload) -> dict[str, Any]:
    """The declared values by parameter, as JSON; what a link or a port brings is written apart."""
    given = declared.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"env", "linked_env"})
    given = {"replicas": declared.replicas, **{name: value for name, value in given.items() if value is not None}}
    # After the values that are taken from elsewhere, of which plain ones may speak.
    return given if declared.env is None else {**given, "env": texts_of(declared.env)}


def _put_port(main: Object, number: int, seen: Mapping[str, Any], name: str) -> None:
    there = main.get("ports") or []
    index = ports.still(there, "containerPort", seen, name)
    ours = {**(there[index] if index is not None else {}), "containerPort": number}
    main["ports"] = [ours if at == index else port for at, port in enumerate(there)]
    if index is None and all(port.get("containerPort") != number for port in there):
        main["ports"].append(ours)
