"""What the real API server fills into kinds of which nothing else is stood in for; each in place.

Amounts are written in their one spelling wherever the published schema has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fractal_sandbox.kubernetes.kinds import Object
from fractal_sandbox.kubernetes.published import Node
from fractal_sandbox.kubernetes.quantities import canonical

__all__ = ["MORE", "TEMPLATES", "with_canonical_amounts"]

# Where a kind describes pods.
TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "PodTemplate": ("template",),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
}


def with_canonical_amounts(value: Any, node: Node) -> Any:
    """Return a value with its amounts in their one spelling."""
    if isinstance(value, dict):
        return {name: with_canonical_amounts(one, node.child(name)) for name, one in value.items()}
    if isinstance(value, list):
        return [with_canonical_amounts(one, node.items) for one in value]
    is_amount = node.name == "Quantity" and isinstance(value, str | int | float) and not isinstance(value, bool)
    return canonical(str(value)) if is_amount else value


def _filled(values: Mapping[str, Any]) -> Callable[[Object], None]:
    """Return what puts these values into an object's spec where nothing stands there."""

    def fill(item: Object) -> None:
        spec = item.setdefault("spec", {})
        for name, value in values.items():
            spec.setdefault(name, value)

    return fill


def _job(item: Object) -> None:
    _fill_job(item.setdefault("spec", {}))
    uid = {"controller-uid": "sandbox", "job-name": item["metadata"]["name"]}
    template = item["spec"].setdefault("template", {})
    template["metadata"] = {**(template.get("metadata") or {})}
    template["metadata"]["labels"] = {**uid, **(template["metadata"].get("labels") or {})}
    item["spec"].setdefault("selector", {"matchLabels": {"controller-uid": "sandbox"}})


def _fill_job(spec: Object) -> None:
    for name, value in (("backoffLimit", 6), ("completions", 1), ("parallelism", 1), ("completionMode", "NonIndexed")):
        spec.setdefault(name, value)
    spec.setdefault("suspend", False)


def _cron_job(item: Object) -> None:
    values = {"concurrencyPolicy": "Allow", "suspend": False}
    _filled({**values, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1})(item)


def _stateful_set(item: Object) -> None:
    _filled({"replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10})(item)
    strategy = item["spec"].setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    for claim in item["spec"].get("volumeClaimTemplates") or []:
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}}
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _daemon_set(item: Object) -> None:
    _filled({"revisionHistoryLimit": 10})(item)
    strategy = item["spec"].setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def _replication_controller(item: Object) -> None:
    _filled({"replicas": 1})(item)
    template = item["spec"].get("template") or {}
    item["spec"].setdefault("selector", dict((template.get("metadata") or {}).get("labels") or {}))


def _volume(item: Object) -> None:
    _filled({"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"})(item)
    if "hostPath" in item["spec"]:
        item["spec"]["hostPath"].setdefault("type", "")


def _storage_class(item: Object) -> None:
    item.setdefault("reclaimPolicy", "Delete")
    item.setdefault("volumeBindingMode", "Immediate")


def _priority_class(item: Object) -> None:
    item.setdefault("preemptionPolicy", "PreemptLowerPriority")
    if not item.get("globalDefault"):
        item.pop("globalDefault", None)


def _binding(item: Object) -> None:
    item["roleRef"].setdefault("apiGroup", "rbac.authorization.k8s.io")
    for subject in item.get("subjects") or []:
        is_account = subject.get("kind") == "ServiceAccount"
        if not is_account:
            subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


def _limits(item: Object) -> None:
    for limit in (item.get("spec") or {}).get("limits") or []:
        if limit.get("type") == "Container" and "default" in limit:
            limit["defaultRequest"] = {**limit["default"], **(limit.get("defaultRequest") or {})}


def _webhooks(item: Object) -> None:
    for hook in item.get("webhooks") or []:
        values = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}
        for name, value in {**values, "namespaceSelector": {}, "objectSelector": {}}.items():
            hook.setdefault(name, value)
        for rule in hook.get("rules") or []:
            rule.setdefault("scope", "*")


def _ports(lists: Callable[[Object], Iterator[Any]]) -> Callable[[Object], None]:
    def fill(item: Object) -> None:
        for ports in lists(item):
            for port in ports or []:
                port.setdefault("protocol", "TCP")
                port.setdefault("name", "")

    return fill


def _driver(item: Object) -> None:
    _filled({"fsGroupPolicy": "ReadWriteOnceWithFSType", "storageCapacity": False, "requiresRepublish": False})(item)
    item["spec"].setdefault("volumeLifecycleModes", ["Persistent"])


MORE: Final[Mapping[str, Callable[[Object], None]]] = {
    "CSIDriver": _driver,
    "ClusterRoleBinding": _binding,
    "CronJob": _cron_job,
    "DaemonSet": _daemon_set,
    "EndpointSlice": _ports(lambda item: iter([item.get("ports")])),
    "Endpoints": _ports(lambda item: (subset.get("ports") for subset in item.get("subsets") or [])),
    "HorizontalPodAutoscaler": _filled({"minReplicas": 1}),
    "Job": _job,
    "LimitRange": _limits,
    "MutatingWebhookConfiguration": _webhooks,
    "PersistentVolume": _volume,
    "PriorityClass": _priority_class,
    "ReplicaSet": _filled({"replicas": 1}),
    "ReplicationController": _replication_controller,
    "RoleBinding": _binding,
    "StatefulSet": _stateful_set,
    "StorageClass": _storage_class,
    "ValidatingWebhookConfiguration": _webhooks,
}
