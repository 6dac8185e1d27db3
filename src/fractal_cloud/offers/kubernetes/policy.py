"""The rights the agent needs in a cluster, as RBAC. That it changes only what is managed, its own patches make sure of.

RBAC knows no conditions on labels; but every change tests them in the same request, which the cluster refuses if a
person was faster (S16). Whoever wants less gives a Role in some namespaces instead: `docs/providers/kubernetes.md`.
What each type needs stands on its offer.
"""

from __future__ import annotations

from typing import Final

import yaml

from fractal_cloud.offers.kubernetes.kinds import MAPPING, NAMESPACE, SECRET, Object, ObjectKind
from fractal_cloud.offers.kubernetes.objects import ObjectOffer
from fractal_cloud.offers.registry import installed

NAME: Final = "fractal-cloud-agent"
# What links make beside network policies; without them, links that need a secret or a gateway wait and say why.
MADE_BY_LINKS: Final = (SECRET, MAPPING)
_ALL: Final = ["get", "list", "watch", "create", "patch", "delete"]


def policy() -> str:
    """A ClusterRole and the binding to the service account ``fractal-cloud-agent`` in the namespace of that name."""
    return "---\n".join(yaml.safe_dump(one, sort_keys=False) for one in (_role(), _binding()))


def _role() -> Object:
    home = {"apiGroups": [""], "resources": [NAMESPACE.plural], "resourceNames": ["kube-system"], "verbs": ["get"]}
    offers = [offer for offer in installed("kubernetes").of_provider("kubernetes") if isinstance(offer, ObjectOffer)]
    rules = [
        *(_rule(kind, _ALL) for kind in (*(offer.object_kind for offer in offers), *MADE_BY_LINKS)),
        *(_rule(kind, [verb]) for offer in offers for kind, verb in offer.also_reads.items()),
        home,
    ]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": NAME},
        "rules": rules,
    }


def _rule(kind: ObjectKind, verbs: list[str]) -> Object:
    return {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": list(verbs)}


def _binding() -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAME}],
    }
