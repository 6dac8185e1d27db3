"""What the status of an object means, for the kinds of which it is known; of all others nothing is concluded. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.kubernetes.any_kind.tables import READY
from fractal_cloud.offers.kubernetes.kinds import Object
from fractal_cloud.offers.kubernetes.objects import SETTLED, State


def state_of(kind: str, item: Object) -> State:
    """Whether the cluster is still at work on an object; ``kind``: in whichever version, as ``apps/Deployment``."""
    judge = _STATES.get(kind)
    if judge is not None:
        return judge(item)
    return _ready(item) if kind in READY else SETTLED


def _status(item: Object) -> Mapping[str, Any]:
    return item.get("status") or {}


def _conditions(item: Object) -> dict[str, Mapping[str, Any]]:
    return {str(one.get("type")): one for one in _status(item).get("conditions") or []}


def _said(one: Mapping[str, Any]) -> str:
    reason, message = one.get("reason"), one.get("message")
    return ": ".join(str(part) for part in (reason, message) if part)


def _at_work(item: Object, detail: str) -> State:
    is_new = item["metadata"].get("generation", 1) <= 1
    return (Condition.CREATING if is_new else Condition.CHANGING), detail


def _is_seen(item: Object) -> bool:
    return bool(_status(item).get("observedGeneration", 0) >= item["metadata"].get("generation", 0))


def _deployment(item: Object) -> State:
    spec, status, conditions = item.get("spec") or {}, _status(item), _conditions(item)
    for kind, bad in (("Progressing", "False"), ("ReplicaFailure", "True")):
        one = conditions.get(kind, {})
        if one.get("status") == bad:
            return Condition.BROKEN, f"the rollout failed ({one.get('reason')}): {one.get('message')}"
    wanted = spec.get("replicas", 1)
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    is_done = updated >= wanted and status.get("replicas", 0) <= updated and available >= wanted
    if _is_seen(item) and is_done:
        return SETTLED
    return _at_work(item, f"{available} of {wanted} replicas are available")


def _stateful_set(item: Object) -> State:
    """Pods follow one another: those above the partition have the newest template in the end, and none is left over.

    What ``kubectl rollout status`` asks, and that no pod more is there than declared, which ``replicas`` counts.
    """
    spec, status = item.get("spec") or {}, _status(item)
    wanted, ready, updated = spec.get("replicas", 1), status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    there = status.get("replicas", 0)
    if not _is_seen(item) or ready < wanted or there > wanted:
        return _at_work(item, f"{ready} of {wanted} replicas are ready" + (f", {there} are there" * (there > wanted)))
    strategy = spec.get("updateStrategy") or {}
    due = wanted - ((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    if strategy.get("type") == "OnDelete":
        is_new = status.get("updateRevision") == status.get("currentRevision")
        return SETTLED if is_new else (Condition.SETTLED, "pods get the newest template when somebody deletes them")
    return SETTLED if updated >= due else _at_work(item, f"{updated} of {due} replicas have the newest template")


def _daemon_set(item: Object) -> State:
    spec, status = item.get("spec") or {}, _status(item)
    wanted, available = status.get("desiredNumberScheduled", 0), status.get("numberAvailable", 0)
    waits_for_people = (spec.get("updateStrategy") or {}).get("type") == "OnDelete"
    is_updated = status.get("updatedNumberScheduled", 0) >= wanted
    if not _is_seen(item) or available < wanted or not (is_updated or waits_for_people):
        return _at_work(item, f"{available} of {wanted} nodes run it")
    return SETTLED if is_updated else (Condition.SETTLED, "pods get the newest template when somebody deletes them")


def _replicas(item: Object) -> State:
    wanted, status = (item.get("spec") or {}).get("replicas", 1), _status(item)
    failure = _conditions(item).get("ReplicaFailure", {})
    if failure.get("status") == "True":
        return Condition.BROKEN, f"its pods cannot be made ({_said(failure)})"
    ready, there = status.get("readyReplicas", 0), status.get("replicas", 0)
    if _is_seen(item) and ready >= wanted and there <= wanted:
        return SETTLED
    return _at_work(item, f"{ready} of {wanted} replicas are ready")


def _job(item: Object) -> State:
    """Done once it is complete; who depends on it waits until then. One that is suspended waits for people."""
    spec, status, conditions = item.get("spec") or {}, _status(item), _conditions(item)
    for kind in ("Failed", "FailureTarget"):
        if conditions.get(kind, {}).get("status") == "True":
            return Condition.BROKEN, f"the job failed ({_said(conditions[kind])})"
    if conditions.get("Complete", {}).get("status") == "True":
        return SETTLED
    if spec.get("suspend"):
        return Condition.SETTLED, "is suspended"
    done, wanted = status.get("succeeded", 0), spec.get("completions") or spec.get("parallelism", 1)
    return _at_work(item, f"{done} of {wanted} completions are done")


def _claim(item: Object) -> State:
    """One that waits for its first pod is no error, and nothing here says which: so a wait is only said."""
    phase = _status(item).get("phase", "Pending")
    if phase == "Lost":
        return Condition.BROKEN, "its volume is lost"
    return SETTLED if phase == "Bound" else (Condition.SETTLED, "is not bound to a volume yet")


def _volume(item: Object) -> State:
    status = _status(item)
    if status.get("phase") == "Failed":
        return Condition.BROKEN, f"its reclamation failed: {status.get('message', '')}".rstrip(": ")
    return SETTLED


def _service(item: Object) -> State:
    balancer = _status(item).get("loadBalancer") or {}
    if (item.get("spec") or {}).get("type") != "LoadBalancer" or balancer.get("ingress"):
        return SETTLED
    return Condition.CREATING, "the cluster has not given it an outside address yet"


def _definition(item: Object) -> State:
    conditions = _conditions(item)
    names = conditions.get("NamesAccepted", {})
    if names.get("status") == "False":
        return Condition.BROKEN, f"its names are not accepted ({_said(names)})"
    if conditions.get("Established", {}).get("status") == "True":
        return SETTLED
    return Condition.CREATING, "its kind is not served yet"


def _api_service(item: Object) -> State:
    available = _conditions(item).get("Available", {})
    if available.get("status") == "False":
        return Condition.CHANGING, f"is not available ({_said(available)})"
    return SETTLED


def _ready(item: Object) -> State:
    ready = _conditions(item).get("Ready", {})
    if ready.get("status") == "False":
        return Condition.CHANGING, f"is not ready ({_said(ready)})"
    return SETTLED


_STATES: Final[Mapping[str, Callable[[Object], State]]] = {
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "ReplicationController": _replicas,
    "Service": _service,
    "apiextensions.k8s.io/CustomResourceDefinition": _definition,
    "apiregistration.k8s.io/APIService": _api_service,
    "apps/DaemonSet": _daemon_set,
    "apps/Deployment": _deployment,
    "apps/ReplicaSet": _replicas,
    "apps/StatefulSet": _stateful_set,
    "batch/Job": _job,
}
