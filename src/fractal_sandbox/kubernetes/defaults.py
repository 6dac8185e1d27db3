"""What the real API server fills into built-in kinds, and what it leaves out: no declaration names these fields.

Each function completes an object of one kind in place, given what was there before (None: it is new). Custom resources
have no defaults. What is refused stands in `validating.py`; what controllers write, in `controllers.py`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

from fractal_sandbox.kubernetes.kinds import Kind, Object
from fractal_sandbox.kubernetes.more_defaults import MORE, TEMPLATES, with_canonical_amounts
from fractal_sandbox.kubernetes.networking import Addresses, complete_service
from fractal_sandbox.kubernetes.quantities import canonical

__all__ = ["complete"]

# Fields that Go leaves out when they are empty; an empty map elsewhere means something (`securityContext: {}`).
_DROPPED_EMPTY: Final = frozenset(
    {"labels", "annotations", "nodeSelector", "matchLabels", "data", "stringData", "binaryData", "requests", "limits"}
)
_DROPPED_FALSE: Final = frozenset(
    {"hostNetwork", "hostPID", "hostIPC", "paused", "readOnly", "stdin", "stdinOnce", "tty", "publishNotReadyAddresses"}
)
_DROPPED_ZERO: Final = frozenset({"minReadySeconds", "initialDelaySeconds", "hostPort", "nodePort", "port.hostPort"})
# Maps whose keys and values are the user's own.
_OPAQUE: Final = frozenset({"labels", "annotations", "data", "stringData", "binaryData", "matchLabels", "nodeSelector"})


def complete(kind: Kind, item: Object, before: Object | None, addresses: Addresses) -> Object:
    """Return a new object as the server would keep it."""
    if kind.is_custom:
        metadata = {key: value for key, value in item["metadata"].items() if value not in ({}, None)}
        return {**item, "metadata": metadata}
    item = _tidied(item)
    if kind.kind == "Service":
        complete_service(item, before, addresses)
    elif kind.kind in _COMPLETERS:
        _COMPLETERS[kind.kind](item)
    else:
        item = with_canonical_amounts(item, kind.node)
        if kind.kind in MORE:
            MORE[kind.kind](item)
        if kind.kind in TEMPLATES:
            _complete_template(item, TEMPLATES[kind.kind])
    return item


def _complete_template(item: Object, path: tuple[str, ...]) -> None:
    template = item
    for name in path:
        template = template.setdefault(name, {})
    template.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    _complete_pod_spec(template.setdefault("spec", {}))


def _tidied(value: Any, key: str = "") -> Any:
    """Drop what Go would not write: nulls, empty lists, and the empty values of some fields."""
    if isinstance(value, list):
        return [_tidied(inner) for inner in value]
    if not isinstance(value, dict) or key in _OPAQUE:
        return value
    return {
        name: _tidied(inner, name)
        for name, inner in value.items()
        if not (
            inner is None
            or inner == []
            or (inner == {} and name in _DROPPED_EMPTY)
            or (inner is False and name in _DROPPED_FALSE)
            or (inner == 0 and inner is not False and name in _DROPPED_ZERO)
        )
    }


def _complete_deployment(item: Object) -> None:
    spec = item.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    _complete_pod_spec(template.setdefault("spec", {}))


def _complete_pod(item: Object) -> None:
    spec = item.setdefault("spec", {})
    _complete_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)


def _complete_pod_spec(spec: Object) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if "serviceAccountName" in spec:
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif "serviceAccount" in spec:
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        if isinstance(container, dict):
            _complete_container(container)
    for volume in spec.get("volumes", []):
        for source in ("secret", "configMap", "projected", "downwardAPI"):
            if source in volume:
                volume[source].setdefault("defaultMode", 420)
        if "hostPath" in volume:
            volume["hostPath"].setdefault("type", "")


def _complete_container(container: Object) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    _canonical_resources(container.setdefault("resources", {}))
    for port in container.get("ports", []):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", []):
        if variable.get("value") == "":
            del variable["value"]
        reference = variable.get("valueFrom", {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _complete_probe(container[name])


def _complete_probe(probe: Object) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(name):
            probe[name] = value
    if "httpGet" in probe:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _pull_policy(image: str) -> str:
    name = image.partition("@")[0].rpartition("/")[2]
    tag = "digest" if "@" in image else name.partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _canonical_resources(resources: Object) -> None:
    for name in ("requests", "limits"):
        if isinstance(resources.get(name), dict):
            resources[name] = {key: canonical(value) for key, value in resources[name].items()}


def _complete_claim(item: Object) -> None:
    spec = item.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("storageClassName", "standard")  # by admission, wherever a class is marked as the default
    _canonical_resources(spec.setdefault("resources", {}))


def _complete_network_policy(item: Object) -> None:
    spec = item.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in [*spec.get("ingress", []), *spec.get("egress", [])]:
        for port in rule.get("ports", []):
            port.setdefault("protocol", "TCP")


def _complete_secret(item: Object) -> None:
    item.setdefault("type", "Opaque")
    plain = item.pop("stringData", None) or {}
    if plain:
        data = dict(item.get("data") or {})
        data.update({key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()})
        item["data"] = data
    for key, value in (item.get("data") or {}).items():
        item["data"] = {**item["data"], key: _same_bytes(value)}


def _same_bytes(text: str) -> str:
    """Return base64 as Go writes it: whatever line breaks came along are gone."""
    try:
        return base64.b64encode(base64.b64decode(text)).decode()
    except (binascii.Error, TypeError):
        return text  # refused by validation


def _complete_namespace(item: Object) -> None:
    item.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    metadata = item["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}


def _complete_definition(item: Object) -> None:
    spec = item.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if "kind" in names:
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})


_COMPLETERS: Final[dict[str, Callable[[Object], None]]] = {
    "Deployment": _complete_deployment,
    "Pod": _complete_pod,
    "PersistentVolumeClaim": _complete_claim,
    "NetworkPolicy": _complete_network_policy,
    "Secret": _complete_secret,
    "Namespace": _complete_namespace,
    "CustomResourceDefinition": _complete_definition,
}
