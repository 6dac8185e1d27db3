"""What the controllers of a cluster would do: status, addresses, volumes, and the end of what is being deleted.

They run right after each write, in the same moment, as a write of their own with a version of its own. Where a knob
says so, an object stays at work for a while first. Everything happens under the cloud's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fractal_sandbox.fault_injection import Countdown, Knobs
from fractal_sandbox.kubernetes import workload_status
from fractal_sandbox.kubernetes.conditions import condition, with_status
from fractal_sandbox.kubernetes.kinds import CRD, DEPLOYMENT, NAMESPACE, Kind, Kinds, Object
from fractal_sandbox.kubernetes.networking import Addresses
from fractal_sandbox.kubernetes.rollouts import Rollouts
from fractal_sandbox.kubernetes.store import Store

__all__ = ["Controllers"]


@dataclass
class _Work:
    kind: Kind
    namespace: str
    name: str
    countdown: Countdown
    is_new: bool


class Controllers:
    """Brings the status of objects after their spec, at once or when their time has come."""

    def __init__(self, store: Store, kinds: Kinds, knobs: Knobs, addresses: Addresses) -> None:
        self._store = store
        self._kinds = kinds
        self._knobs = knobs
        self._addresses = addresses
        self._rollouts = Rollouts(store)
        self.reset()

    def reset(self) -> None:
        self._working: dict[str, _Work] = {}
        self._dying: dict[str, _Work] = {}
        self._hidden: dict[str, Countdown] = {}

    # What happened to objects

    def created(self, kind: Kind, item: Object) -> None:
        hidden = self._knobs.countdown("late_visibility", kind.singular)
        if hidden is not None:
            self._hidden[item["metadata"]["uid"]] = hidden
        if kind == CRD:
            self._kinds.define(item)
        self._work(kind, item, self._knobs.countdown("slow_creation", kind.singular), is_new=True)

    def modified(self, kind: Kind, item: Object, before: Object) -> None:
        if kind == CRD:
            self._kinds.define(item)
        if item["metadata"].get("generation") != before["metadata"].get("generation") or _spec(item) != _spec(before):
            self._work(kind, item, self._knobs.countdown("slow_modification", kind.singular), is_new=False)

    def deleted(self, kind: Kind, item: Object) -> bool:
        """Begin a deletion; return whether the object has to stay for a while."""
        uid = item["metadata"]["uid"]
        if uid in self._dying:
            return True
        countdown = self._knobs.countdown("slow_deletion", kind.singular)
        if countdown is None:
            return False
        self._dying[uid] = _Work(kind, *_place(item), countdown, is_new=False)
        return True

    def removed(self, kind: Kind, item: Object) -> None:
        """Clean up after an object that is gone: a namespace's content, a definition's objects."""
        for memory in (self._working, self._dying, self._hidden):
            memory.pop(item["metadata"]["uid"], None)
        if kind == DEPLOYMENT:
            self._rollouts.forget(item)
        if kind == NAMESPACE:
            for resource, inside in self._store.all_in(item["metadata"]["name"]):
                self._store.remove(resource, inside)
        if kind == CRD:
            for gone in self._kinds.undefine(item["metadata"]["name"]):
                for custom in self._store.items(gone):
                    self._store.remove(gone.resource, custom)

    @property
    def is_awaited(self) -> bool:
        """Whether anything happens by itself after some time."""
        return bool(self._working or self._dying)

    def settle(self) -> None:
        """Carry on with everything whose time has come."""
        for uid, work in list(self._working.items()):
            if work.countdown.is_over:
                del self._working[uid]
                item = self._store.get(work.kind, work.namespace, work.name)
                if item is not None and item["metadata"]["uid"] == uid:
                    self._reconcile(work.kind, item)
        for uid, work in list(self._dying.items()):
            if work.countdown.is_over:
                del self._dying[uid]
                item = self._store.get(work.kind, work.namespace, work.name)
                if item is not None and not item["metadata"].get("finalizers"):
                    self.removed(work.kind, self._store.remove(work.kind.resource, item))

    # How answers show them

    def is_hidden(self, item: Object) -> bool:
        countdown = self._hidden.get(item["metadata"]["uid"])
        return countdown is not None and not countdown.is_over

    def count_read(self, item: Object) -> None:
        """Count a read of an object, or one in which it would have shown were it not hidden."""
        uid = item["metadata"]["uid"]
        if self.is_hidden(item):
            self._hidden[uid].count_read()
            return
        for memory in (self._working, self._dying):
            if uid in memory:
                memory[uid].countdown.count_read()

    # Status

    def _work(self, kind: Kind, item: Object, countdown: Countdown | None, *, is_new: bool) -> None:
        if countdown is None:
            self._working.pop(item["metadata"]["uid"], None)
            self._reconcile(kind, item)
            return
        self._working[item["metadata"]["uid"]] = _Work(kind, *_place(item), countdown, is_new)
        if kind.resource in _PENDING:
            self._write(kind, item, _PENDING[kind.resource](self._rolled(kind, item), is_new=is_new))

    def _reconcile(self, kind: Kind, item: Object) -> None:
        if item["metadata"].get("deletionTimestamp"):
            return
        if kind.resource in _READY:
            self._write(kind, item, _READY[kind.resource](self._rolled(kind, item), self._addresses))

    def _rolled(self, kind: Kind, item: Object) -> Object:
        return self._rollouts.rolled(item) if kind == DEPLOYMENT else item

    def _write(self, kind: Kind, item: Object, changed: Object) -> None:
        if changed != item:
            self._store.replace(kind.resource, changed)


def _place(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _spec(item: Object) -> Object:
    return {key: value for key, value in item.items() if key not in ("metadata", "status")}


def _pending_deployment(item: Object, *, is_new: bool) -> Object:
    wanted = item["spec"]["replicas"]
    old = item.get("status", {})
    status = {
        "observedGeneration": item["metadata"]["generation"],
        **(
            {}
            if is_new
            else {key: old[key] for key in ("replicas", "readyReplicas", "availableReplicas") if key in old}
        ),
        "unavailableReplicas": wanted,
        "conditions": [
            condition(item, "Available", "False", "MinimumReplicasUnavailable"),
            condition(item, "Progressing", "True", "ReplicaSetUpdated"),
        ],
    }
    return with_status(item, {key: value for key, value in status.items() if value != 0})


def _ready_deployment(item: Object, _: Addresses) -> Object:
    wanted = item["spec"]["replicas"]
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    status = {
        "observedGeneration": item["metadata"]["generation"],
        **(dict.fromkeys(counts, wanted) if wanted else {}),
        "conditions": [
            condition(item, "Available", "True", "MinimumReplicasAvailable"),
            condition(item, "Progressing", "True", "NewReplicaSetAvailable"),
        ],
    }
    return with_status(item, status)


def _ready_service(item: Object, addresses: Addresses) -> Object:
    given = item.get("status", {}).get("loadBalancer", {})
    if item["spec"]["type"] != "LoadBalancer":
        given = {}
    elif not given:
        given = {"ingress": [{"ip": addresses.outside_ip()}]}
    return with_status(item, {"loadBalancer": given})


def _pending_claim(item: Object, *, is_new: bool) -> Object:
    return with_status(item, {"phase": "Pending"}) if is_new else item


def _ready_claim(item: Object, _: Addresses) -> Object:
    spec = {**item["spec"]}
    spec.setdefault("volumeName", f"pvc-{item['metadata']['uid']}")
    status = {
        "phase": "Bound",
        "accessModes": spec.get("accessModes", []),
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
    }
    return {**item, "spec": spec, "status": status}


def _runs(item: Object) -> bool:
    spec: dict[str, Any] = item.get("spec") or {}
    strategy = spec.get("runStrategy")
    return bool(spec.get("running")) if strategy is None else strategy in ("Always", "RerunOnFailure", "Once")


def _pending_machine(item: Object, *, is_new: bool) -> Object:
    changing = "Starting" if _runs(item) else "Stopping"
    shown = "Provisioning" if is_new else changing
    return with_status(item, {"created": not is_new, "ready": False, "printableStatus": shown})


def _ready_machine(item: Object, _: Addresses) -> Object:
    if not _runs(item):
        return with_status(item, {"printableStatus": "Stopped"})
    ready = condition(item, "Ready", "True", "GuestReady")
    return with_status(item, {"created": True, "ready": True, "printableStatus": "Running", "conditions": [ready]})


def _ready_namespace(item: Object, _: Addresses) -> Object:
    return with_status(item, {"phase": "Active"})


def _ready_definition(item: Object, _: Addresses) -> Object:
    names = item["spec"]["names"]
    status = {
        "acceptedNames": names,
        "storedVersions": [version["name"] for version in item["spec"]["versions"] if version.get("storage")],
        "conditions": [
            condition(item, "NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            condition(item, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    }
    return with_status(item, status)


_READY: Final[dict[str, Callable[[Object, Addresses], Object]]] = {
    "customresourcedefinitions.apiextensions.k8s.io": _ready_definition,
    "daemonsets.apps": workload_status.ready_daemon_set,
    "deployments.apps": _ready_deployment,
    "horizontalpodautoscalers.autoscaling": workload_status.ready_autoscaler,
    "jobs.batch": workload_status.ready_job,
    "namespaces": _ready_namespace,
    "persistentvolumeclaims": _ready_claim,
    "poddisruptionbudgets.policy": workload_status.ready_budget,
    "replicasets.apps": workload_status.ready_replicas,
    "replicationcontrollers": workload_status.ready_replicas,
    "services": _ready_service,
    "statefulsets.apps": workload_status.ready_stateful_set,
    "virtualmachines.kubevirt.io": _ready_machine,
}
"""How the controllers leave a kind's objects, by its resource: a custom kind may have the name of another."""
_PENDING: Final[dict[str, Any]] = {
    "daemonsets.apps": workload_status.pending_daemon_set,
    "deployments.apps": _pending_deployment,
    "jobs.batch": workload_status.pending_job,
    "persistentvolumeclaims": _pending_claim,
    "replicasets.apps": workload_status.pending_replicas,
    "replicationcontrollers": workload_status.pending_replicas,
    "statefulsets.apps": workload_status.pending_stateful_set,
    "virtualmachines.kubevirt.io": _pending_machine,
}
