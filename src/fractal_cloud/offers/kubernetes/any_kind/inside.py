"""What would go along with an object that is deleted: everything in a namespace, every object of a defined kind.

A deletion of either is refused while anything is left that somebody put there: ours goes first, by its own component.
What a cluster itself puts into every namespace, and what belongs to another object, does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.kubernetes.any_kind.discovery import DEFINITIONS, kinds_served
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import DEFINED
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.kinds import Object, ObjectKind

NAMESPACE: Final = "Namespace"
DEFINITION: Final = "apiextensions.k8s.io/CustomResourceDefinition"
_SHOWN: Final = 5
_OF_THE_CLUSTER: Final = frozenset(
    {
        *(("configmaps", "kube-root-ca.crt"), ("configmaps", "openshift-service-ca.crt")),
        *(("serviceaccounts", one) for one in ("default", "builder", "deployer")),
    }
)
_PASSING: Final = frozenset({"events", "endpoints", "endpointslices", "leases", "podmetrics", "controllerrevisions"})


def check_nothing_goes_along(cloud: Kubernetes, kind: str, sighting: Sighting) -> None:
    """Raise ``Conflict`` where something would go along with it that somebody put there."""
    if kind == NAMESPACE:
        found = list(_in_namespace(cloud, sighting.name))
    elif kind == DEFINITION:
        found = list(_of_definition(cloud, sighting.name))
    else:
        return
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise Conflict(
            f"{', '.join(found[:_SHOWN])}{more} would be deleted with it: it is deleted once they are gone; delete or "
            "move them first"
        )


def _in_namespace(cloud: Kubernetes, namespace: str) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for kind, verbs in kinds_served(cloud):
        if not kind.is_namespaced or "list" not in verbs or kind.plural in _PASSING:
            continue
        for head in cloud.heads(kind, namespace):
            metadata = head["metadata"]
            named = (kind.plural, str(metadata["name"]))
            uid = str(metadata.get("uid"))
            if (kind.plural, uid) not in seen and named not in _OF_THE_CLUSTER and not _is_passing(metadata, kind):
                seen.add((kind.plural, uid))  # the same object in another version or group
                yield f"{kind.plural.removesuffix('s')} {named[1]!r}"


def _is_passing(metadata: Object, kind: ObjectKind) -> bool:
    """Whether an object goes anyway: with its owner, or because it is being deleted; or is the cluster's own token."""
    annotations: dict[str, Any] = metadata.get("annotations") or {}
    is_token = kind.plural == "secrets" and annotations.get("kubernetes.io/service-account.name") == "default"
    return bool(metadata.get("ownerReferences") or metadata.get("deletionTimestamp") or is_token)


def _of_definition(cloud: Kubernetes, name: str) -> Iterator[str]:
    spec = (cloud.find(DEFINITIONS, name) or {}).get("spec") or {}
    served = [str(one["name"]) for one in spec.get("versions") or () if one.get("served")]
    for version in served[:1]:
        plural = str(spec["names"]["plural"])
        everywhere = ObjectKind(str(spec["group"]), version, plural, plural, DEFINED, is_namespaced=False)
        for head in cloud.heads(everywhere):
            metadata = head["metadata"]
            place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
            yield f"{plural} {place + metadata['name']!r}"
