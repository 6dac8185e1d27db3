"""How a workload's parameters lie in its Deployment, both ways: the main container's, its pods', its rollout's.

Which of them are declared, and what is to be written, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from fractal_cloud.offers.kubernetes.containers import (
    LINKED,
    MARK,
    container_of,
    declarable,
    flat_linked,
    linked_names,
    put_field,
)
from fractal_cloud.offers.kubernetes.kinds import Object
from fractal_cloud.offers.kubernetes.nested import with_declared

SELECTED_BY: Final = "app.kubernetes.io/name"
"""The label by which a Deployment of ours, and services and policies in front of it, find its pods."""
ALONE: Final = ("cpu", "memory")
"""What the main container asks for has parameters of its own."""
OF_MAIN: Final = (
    *("image", "command", "args", "workingDir", "ports", "env", "envValueFrom", "envFrom", "requests", "limits"),
    *("livenessProbe", "readinessProbe", "startupProbe", "securityContext", "volumeMounts", "imagePullPolicy"),
)
"""Parameters that are fields of the main container."""
OF_POD: Final[Mapping[str, str]] = {
    "podSecurityContext": "securityContext",
    **{
        name: name
        for name in (
            *("serviceAccountName", "automountServiceAccountToken", "nodeSelector", "tolerations", "volumes"),
            "terminationGracePeriodSeconds",
        )
    },
}
"""Parameters that are fields of the pods, with the field."""
OF_METADATA: Final[Mapping[str, str]] = {"podLabels": "labels", "podAnnotations": "annotations"}
NESTED: Final = frozenset(
    {*OF_MAIN, *OF_POD, *OF_METADATA, "containers", "initContainers", "strategy", "imagePullSecrets"}
) - {"image", "command", "env"}
"""Parameters of which an object holds more than is declared."""


def actual_of(item: Object) -> dict[str, Any]:
    """The parameters of a workload, as an object shows them."""
    linked = linked_names(item)
    template = item["spec"]["template"]
    pod, metadata = template["spec"], template.get("metadata") or {}
    main = container_of(item)
    others = [declarable(one, linked) for one in pod["containers"] if one is not main]
    annotations = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != MARK}
    return {
        "replicas": item["spec"].get("replicas"),
        "strategy": item["spec"].get("strategy"),
        **of_main(declarable(main, linked)),
        **{name: pod.get(field) for name, field in OF_POD.items()},
        "podLabels": metadata.get("labels") or {},
        "podAnnotations": annotations,
        "imagePullSecrets": [str(one.get("name", "")) for one in pod.get("imagePullSecrets") or []],
        "containers": others,
        "initContainers": [declarable(one) for one in pod.get("initContainers") or []],
        LINKED: flat_linked(item),
    }


def of_main(container: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that the main container comes to."""
    requests, ports = container["requests"], container.get("ports") or []
    return {
        "containerName": container["name"],
        **{name: container.get(name) for name in OF_MAIN},
        **{name: requests.get(name) for name in ALONE},
        "requests": {name: amount for name, amount in requests.items() if name not in ALONE},
        "ports": ports,
        "containerPort": ports[0].get("containerPort") if ports else None,
    }


def as_container(actual: Mapping[str, Any]) -> dict[str, Any]:
    """The main container's parameters, as those of any other container."""
    found = {name: actual[name] for name in OF_MAIN if actual.get(name) is not None}
    alone = {name: actual[name] for name in ALONE if actual.get(name) is not None}
    return {"name": actual["containerName"], **found, "requests": {**(actual["requests"] or {}), **alone}}


def put_in_pod(item: Object, name: str, value: Any, seen: Any) -> None:
    """Write a parameter of the pods, or of their metadata, into an object."""
    template = item["spec"]["template"]
    if name in OF_METADATA:
        metadata, field = template.setdefault("metadata", {}), OF_METADATA[name]
        metadata[field] = with_declared(name, metadata.get(field) or {}, value, _not_ours(seen))
    elif name == "imagePullSecrets":
        there = [one.get("name") for one in template["spec"].get(name) or []]
        template["spec"][name] = [{"name": one} for one in with_declared(name, there, value, seen)]
    else:
        pod, field = template["spec"], OF_POD[name]
        pod[field] = with_declared(name, pod.get(field) or ([] if isinstance(value, list) else {}), value, seen)


def _not_ours(seen: Any) -> Any:
    """Labels without the one that must stay, whatever was declared."""
    return {key: text for key, text in seen.items() if key != SELECTED_BY} if isinstance(seen, Mapping) else seen


def put_containers(item: Object, name: str, declared: list[Any], seen: Any, linked: Collection[str]) -> None:
    """Write further containers, or those that run first, field by field; those of others stay as they are."""
    pod = item["spec"]["template"]["spec"]
    there = {one.get("name"): one for one in pod.get(name) or []}
    before = {one["name"]: one for one in seen or [] if isinstance(one, Mapping)}
    names = [one["name"] for one in declared]
    for container in declared:
        target = there.setdefault(container["name"], {"name": container["name"]})
        known = before.get(container["name"], {})
        for field, value in container.items():
            put_field(target, field, value, known.get(field), linked)
    left = before.keys() - set(names)
    kept = [one for key, one in there.items() if key not in left]
    pod[name] = kept if name == "containers" else _in_turn(kept, names)


def _in_turn(containers: list[Object], names: list[str]) -> list[Object]:
    """Containers with the declared ones in the declared order, where they stand among those of others."""
    by_name = {one.get("name"): one for one in containers}
    turn = iter(by_name[name] for name in names)
    return [next(turn) if one.get("name") in names else one for one in containers]
