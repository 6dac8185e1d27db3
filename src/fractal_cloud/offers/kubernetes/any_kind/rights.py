"""The rights for kinds that are declared by their own names: what RBAC grants, and what admission refuses all the same.

Kinds through which an agent would get more rights than it was given are refused here, with the reason (A7): whoever
wants those grants them by hand. Pods are described by many kinds: for all of them counts what counts for Deployments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.kubernetes.admission_of_pods import Validation, at_template, workloads
from fractal_cloud.offers.kubernetes.any_kind import catalogue
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import KindFacts
from fractal_cloud.offers.kubernetes.any_kind.tables import POD_TEMPLATES
from fractal_cloud.offers.kubernetes.kinds import Object, ObjectKind

ALL_VERBS: Final = ("get", "list", "watch", "create", "patch", "delete")
_DEPLOYMENT: Final = "apps/Deployment"
_STATEFUL_SET: Final = "apps/StatefulSet"
_NAMESPACE: Final = "Namespace"
_SECRET: Final = "Secret"
_CONFINES: Final = "it is what confines the agent itself"
_LEADS: Final = "it leads what is sent to a service anywhere, past network policies and into other namespaces"
REFUSED: Final[Mapping[str, str]] = {
    "Endpoints": _LEADS,
    "Node": "a node is given work and secrets of everybody",
    "PersistentVolume": "a volume can be any folder of a node",
    "Pod": "the server itself gives every pod an account and its token: declare a Deployment or a Job",
    "admissionregistration.k8s.io/MutatingAdmissionPolicy": "it changes what everybody writes",
    "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding": "it changes what everybody writes",
    "admissionregistration.k8s.io/MutatingWebhookConfiguration": "it sees and changes what everybody writes",
    "admissionregistration.k8s.io/ValidatingAdmissionPolicy": _CONFINES,
    "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": _CONFINES,
    "admissionregistration.k8s.io/ValidatingWebhookConfiguration": "it sees what everybody writes, Secrets too",
    "apiregistration.k8s.io/APIService": "it is sent the requests of everybody",
    "apps/ControllerRevision": "pods are made of what it holds, and no policy for pods sees that",
    "certificates.k8s.io/CertificateSigningRequest": "a certificate makes whoever has it somebody else",
    "certificates.k8s.io/ClusterTrustBundle": "others trust whoever it names",
    "certificates.k8s.io/PodCertificateRequest": "a certificate makes whoever has it somebody else",
    "discovery.k8s.io/EndpointSlice": _LEADS,
}


def kinds_of(types: Sequence[str]) -> list[KindFacts]:
    """The kinds that rights are asked for. Raises ``PolicyOptionError`` for one that none are printed for."""
    return [_kind(component_type) for component_type in types]


def _kind(component_type: str) -> KindFacts:
    kind = catalogue.find(component_type)
    if kind is None:
        raise PolicyOptionError(
            f"--type {component_type!r} is no built-in kind: grant get, list, watch, create, patch and delete on what "
            "its definition calls it by hand"
        )
    why = REFUSED.get(kind.name.unversioned)
    if why is not None:
        raise PolicyOptionError(f"--type {component_type!r} leads to more rights, for {why}: grant it by hand")
    return kind


def rules(kinds: Iterable[KindFacts], *, is_namespaced: bool) -> Iterator[Object]:
    """What the agent does with the objects of these kinds, in a namespace or in none."""
    for kind in kinds:
        if kind.is_namespaced is is_namespaced:
            yield _rule(kind.object_kind(), ALL_VERBS)
        if not is_namespaced and kind.name.unversioned == _NAMESPACE:
            yield from _seen_before_it_goes()


def _seen_before_it_goes() -> Iterator[Object]:
    """What is listed before a namespace is deleted: every kind that may lie in it, but no Secrets."""
    found: dict[str, set[str]] = {}
    for name in catalogue.names():
        kind = catalogue.find(name)
        if kind is not None and kind.is_namespaced and "list" in kind.verbs and kind.name.unversioned != _SECRET:
            found.setdefault(kind.name.group, set()).add(kind.plural)
    for group, plurals in sorted(found.items()):
        yield {"apiGroups": [group], "resources": sorted(plurals), "verbs": ["list"]}


def _rule(kind: ObjectKind, verbs: Sequence[str]) -> Object:
    return {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": list(verbs)}


def validations(
    kinds: Iterable[KindFacts], *, with_links: bool, secrets: Sequence[str], accounts: Sequence[str]
) -> Iterator[tuple[ObjectKind, list[Validation]]]:
    """What admission holds every write of the agent against, for the kinds of which it is held against something."""
    for kind in kinds:
        name = kind.name.unversioned
        if name in POD_TEMPLATES and name != _DEPLOYMENT:  # those stand there anyway
            claims = "spec.volumeClaimTemplates" if name == _STATEFUL_SET else ""
            of_pods = workloads(with_links=with_links, secrets=secrets, accounts=accounts, claims=claims)
            yield kind.object_kind(), at_template(of_pods, POD_TEMPLATES[name])
        if name == _SECRET:
            filled = "['kubernetes.io/service-account-token', 'bootstrap.kubernetes.io/token']"
            rule = f"!has(object.type) || !(object.type in {filled})"
            yield kind.object_kind(), [(rule, "may make no Secret that the server fills or takes for a key")]
