"""Objects that belong to a component without being one: what links make (secrets, policies, Mappings).

They carry the same tags as any other object of ours, and the same guard: whoever takes ``managed-by`` off one has it to
themselves. What to put into them is the business of whoever calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.tags import stamp
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.kinds import Object, ObjectKind
from fractal_cloud.offers.kubernetes.patching import difference
from fractal_cloud.offers.kubernetes.tags import guard, labels_of, protocol_of


def keep(cloud: Kubernetes, kind: ObjectKind, name: str, content: Mapping[str, Any], live_system_id: str) -> None:
    """Have an object with this content (``spec``, ``data``, …): made where there is none, changed where it differs.

    One writing call, or none. Keys of ``content`` are kept whole; everything else in the object is left alone. Raises
    ``Conflict`` where the object is in other hands.
    """
    there = cloud.find(kind, name)
    if there is None:
        metadata = {"name": name, "namespace": cloud.namespace, "labels": labels_of(stamp(live_system_id))}
        cloud.create(kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **content})
        return
    _check_is_ours(there, kind, name, live_system_id)
    changed: Object = {**deepcopy(there), **content}
    operations = difference(there, changed)
    if operations:
        cloud.patch(kind, name, [*guard(there["metadata"]["uid"], protocol_of(there)), *operations])


def drop(cloud: Kubernetes, kind: ObjectKind, name: str, live_system_id: str) -> None:
    """Have no such object any more; absent is success, and what is in other hands is left there."""
    there = cloud.find(kind, name)
    if there is None or there["metadata"].get("deletionTimestamp"):
        return
    tags = protocol_of(there)
    if tags.is_managed and tags.owner == live_system_id:
        cloud.delete(kind, name, there["metadata"]["uid"], there["metadata"]["resourceVersion"])


def _check_is_ours(there: Object, kind: ObjectKind, name: str, live_system_id: str) -> None:
    tags = protocol_of(there)
    if not tags.is_managed or tags.owner != live_system_id:
        whose = tags.owner if tags.is_managed else tags.managed_by
        raise Conflict(f"{kind.kind} {name!r} is in other hands ({whose or 'nobody is named'}): it is left as it is")
