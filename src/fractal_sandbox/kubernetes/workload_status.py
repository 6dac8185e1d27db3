"""What controllers say of workloads that a Deployment is not: StatefulSets, DaemonSets, Jobs, what guards and scales.

Pure: an object in, the object with its status out, as the documented controllers leave it when they are done, and while
they are at it. No pods are made; every template runs at once, and every Job succeeds.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from fractal_sandbox.kubernetes.conditions import condition, with_status
from fractal_sandbox.kubernetes.kinds import Object
from fractal_sandbox.kubernetes.networking import Addresses
from fractal_sandbox.kubernetes.store import now

__all__ = [
    "pending_daemon_set",
    "pending_job",
    "pending_replicas",
    "pending_stateful_set",
    "ready_autoscaler",
    "ready_budget",
    "ready_daemon_set",
    "ready_job",
    "ready_replicas",
    "ready_stateful_set",
]

_NODES: Final = 1
"""A cluster here has one node, on which everything runs."""


def _observed(item: Object) -> Object:
    """Kinds of the core group have no generation, as on a real server, but for a few."""
    generation = item["metadata"].get("generation")
    return {} if generation is None else {"observedGeneration": generation}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:10]


def _revision(item: Object) -> str:
    """The ControllerRevision that a template's state is kept in; its name shows whether two are the same."""
    return f"{item['metadata']['name']}-{_digest(item['spec']['template'])}"


def _without_zeros(status: Object, *kept: str) -> Object:
    return {name: value for name, value in status.items() if value != 0 or name in kept}


# StatefulSets: pod by pod in the order of their numbers, the highest first where they are replaced


def _left_old(item: Object) -> int:
    """How many pods keep the template they have: all where people delete them, else those below the partition."""
    spec, replicas = item["spec"], item["spec"].get("replicas", 1)
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return int(replicas)
    return int(min((strategy.get("rollingUpdate") or {}).get("partition") or 0, replicas))


def _stateful_set(item: Object, *, replicas: int, ready: int, updated: int) -> Object:
    """A status in which so many pods have the newest template, and the others the one before."""
    newest = _revision(item)
    before = (item.get("status") or {}).get("currentRevision", newest)
    old = replicas - updated if newest != before else replicas
    status = {
        **_observed(item),
        "replicas": replicas,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": old,
        "updatedReplicas": updated if newest != before else replicas,
        "currentRevision": before,
        "updateRevision": newest,
        "collisionCount": 0,
    }
    return with_status(item, _without_zeros(status, "replicas", "availableReplicas", "collisionCount"))


def ready_stateful_set(item: Object, _: Addresses) -> Object:
    replicas, newest = item["spec"].get("replicas", 1), _revision(item)
    before = (item.get("status") or {}).get("currentRevision", newest)
    left_old = 0 if newest == before else _left_old(item)
    if not left_old:  # all are of the newest template, which is the current one from now on
        item = with_status(item, {**(item.get("status") or {}), "currentRevision": newest})
    return _stateful_set(item, replicas=replicas, ready=replicas, updated=replicas - left_old)


def pending_stateful_set(item: Object, *, is_new: bool) -> Object:
    """In order, one pod waits for the one before it; in parallel all are there, and none is ready."""
    wanted = item["spec"].get("replicas", 1)
    if is_new:
        is_parallel = item["spec"].get("podManagementPolicy") == "Parallel"
        return _stateful_set(item, replicas=wanted if is_parallel else min(wanted, 1), ready=0, updated=0)
    there = (item.get("status") or {}).get("replicas", 0)
    return _stateful_set(item, replicas=there, ready=max(min(there, wanted) - 1, 0), updated=0)


# DaemonSets: a pod for each node


def _daemon_set(item: Object, *, available: int, updated: int) -> Object:
    status = {
        **_observed(item),
        "currentNumberScheduled": _NODES,
        "desiredNumberScheduled": _NODES,
        "numberMisscheduled": 0,
        "numberReady": available,
        "numberAvailable": available,
        "numberUnavailable": _NODES - available,
        "updatedNumberScheduled": updated,
    }
    return with_status(item, _without_zeros(status, "numberMisscheduled", "numberReady"))


def ready_daemon_set(item: Object, _: Addresses) -> Object:
    """Where people delete the pods, those that are there keep their template."""
    is_by_hand = (item["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"
    is_first = not (item.get("status") or {}).get("currentNumberScheduled")
    return _daemon_set(item, available=_NODES, updated=0 if is_by_hand and not is_first else _NODES)


def pending_daemon_set(item: Object, *, is_new: bool) -> Object:
    del is_new
    return _daemon_set(item, available=0, updated=0)


# Jobs


def _is_over(item: Object) -> bool:
    found = (item.get("status") or {}).get("conditions") or []
    return any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in found)


def pending_job(item: Object, *, is_new: bool) -> Object:
    """One that runs; one that is suspended has no pods, and has not begun."""
    del is_new
    if _is_over(item):
        return item
    if item["spec"].get("suspend"):
        return with_status(item, {"conditions": [condition(item, "Suspended", "True", "JobSuspended")]})
    begun = (item.get("status") or {}).get("startTime") or now()
    return with_status(item, {"active": item["spec"].get("parallelism", 1), "startTime": begun})


def ready_job(item: Object, _: Addresses) -> Object:
    if _is_over(item) or item["spec"].get("suspend"):
        return pending_job(item, is_new=False)
    begun = (item.get("status") or {}).get("startTime") or now()
    status = {
        "startTime": begun,
        "completionTime": now(),
        "succeeded": item["spec"].get("completions", 1),
        "conditions": [condition(item, "Complete", "True", "CompletionsReached", "Reached expected number")],
    }
    return with_status(item, status)


# ReplicaSets and ReplicationControllers


def ready_replicas(item: Object, _: Addresses) -> Object:
    wanted = item["spec"].get("replicas", 1)
    counts = dict.fromkeys(("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"), wanted)
    return with_status(item, _without_zeros({**_observed(item), **counts}, "replicas"))


def pending_replicas(item: Object, *, is_new: bool) -> Object:
    del is_new
    return with_status(item, {**_observed(item), "replicas": item["spec"].get("replicas", 1)})


# What guards pods, and what scales them: there are no pods to count


def ready_budget(item: Object, _: Addresses) -> Object:
    counts = dict.fromkeys(("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0)
    allowed = condition(item, "DisruptionAllowed", "False", "InsufficientPods")
    return with_status(item, {**_observed(item), **counts, "conditions": [allowed]})


def ready_autoscaler(item: Object, _: Addresses) -> Object:
    """What it scales is not looked for, as where nothing measures: it does nothing, and says so."""
    failed = condition(item, "AbleToScale", "False", "FailedGetScale", "nothing is measured here")
    conditions = {} if item["apiVersion"] == "autoscaling/v1" else {"conditions": [failed]}
    return with_status(item, {"currentReplicas": 0, "desiredReplicas": 0, **conditions})
