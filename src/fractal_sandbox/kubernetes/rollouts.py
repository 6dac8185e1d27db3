"""What a Deployment leaves behind as it changes: a ReplicaSet per template, and the number of its revision.

Real controllers write both, so a Deployment carries an annotation nobody declared, and `kubectl rollout undo` finds its
way back. No pods are made. Runs under the cloud's lock.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from fractal_sandbox.kubernetes.kinds import REPLICA_SET, Object
from fractal_sandbox.kubernetes.store import Store

__all__ = ["Rollouts"]

_REVISION: Final = "deployment.kubernetes.io/revision"


class Rollouts:
    """Keeps the ReplicaSets of Deployments."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def rolled(self, deployment: Object) -> Object:
        """Return a Deployment with the revision of its template, whose ReplicaSet is there from now on."""
        namespace = deployment["metadata"]["namespace"]
        owned = self._owned(deployment)
        latest = max((int(one["metadata"]["annotations"][_REVISION]) for one in owned), default=0)
        name = f"{deployment['metadata']['name']}-{_digest(deployment)}"
        current = next((one for one in owned if one["metadata"]["name"] == name), None)
        if current is None:
            current = self._store.add(REPLICA_SET, _replica_set(deployment, name, latest + 1))
        elif int(current["metadata"]["annotations"][_REVISION]) < latest:
            metadata = {**current["metadata"], "annotations": {_REVISION: str(latest + 1)}}  # an old one is back
            current = self._store.replace(REPLICA_SET.resource, {**current, "metadata": metadata})
        for one in self._store.items(REPLICA_SET, namespace):
            if _is_owned(one, deployment):
                replicas = deployment["spec"]["replicas"] if one["metadata"]["name"] == name else 0
                if one["spec"]["replicas"] != replicas:
                    scaled = {**one, "spec": {**one["spec"], "replicas": replicas}, "status": {"replicas": replicas}}
                    self._store.replace(REPLICA_SET.resource, scaled)
        revision = current["metadata"]["annotations"][_REVISION]
        annotations = {**(deployment["metadata"].get("annotations") or {}), _REVISION: revision}
        return {**deployment, "metadata": {**deployment["metadata"], "annotations": annotations}}

    def forget(self, deployment: Object) -> None:
        """Remove what a deleted Deployment leaves behind, as the garbage collector does."""
        for one in self._owned(deployment):
            self._store.remove(REPLICA_SET.resource, one)

    def _owned(self, deployment: Object) -> list[Object]:
        found = self._store.items(REPLICA_SET, deployment["metadata"]["namespace"])
        return [one for one in found if _is_owned(one, deployment)]


def _is_owned(item: Object, deployment: Object) -> bool:
    owners = item["metadata"].get("ownerReferences", [])
    return any(owner["uid"] == deployment["metadata"]["uid"] for owner in owners)


def _digest(deployment: Object) -> str:
    template = json.dumps(deployment["spec"]["template"], sort_keys=True)
    return hashlib.sha256(template.encode()).hexdigest()[:10]


def _replica_set(deployment: Object, name: str, revision: int) -> Object:
    metadata, spec = deployment["metadata"], deployment["spec"]
    mark = {"pod-template-hash": name.rpartition("-")[2]}
    template = spec["template"]
    labels = {**template["metadata"].get("labels", {}), **mark}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {_REVISION: str(revision)},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            "generation": 1,
        },
        "spec": {
            "replicas": spec["replicas"],
            "selector": {"matchLabels": {**spec["selector"].get("matchLabels", {}), **mark}},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
        "status": {"replicas": spec["replicas"]},
    }
