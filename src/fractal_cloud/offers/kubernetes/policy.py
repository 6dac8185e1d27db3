"""The rights the agent needs in a cluster: RBAC for what it may ask for, admission policies for what it may write.

RBAC sees kinds and names, never what an object holds. Whoever may create a Deployment in a namespace could have it run
as any service account, mount any Secret or take over the node. So the rights are given namespace by namespace, and
``admission`` refuses the agent whatever its offers never write (A7). That it changes only what is managed, its own
patches make sure of: they test the labels in the same request (S16). What each type needs stands on its offer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import yaml

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.kubernetes.admission import ACCOUNT, HOME, admission
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import KindFacts
from fractal_cloud.offers.kubernetes.any_kind.rights import kinds_of, rules
from fractal_cloud.offers.kubernetes.kinds import MAPPING, NAMESPACE, SECRET, Object, ObjectKind
from fractal_cloud.offers.kubernetes.objects import ObjectOffer
from fractal_cloud.offers.policy import PLAIN, PolicyOptions, every_match
from fractal_cloud.offers.registry import installed

NAME: Final = ACCOUNT
# What declarations mean where they name none.
DEFAULT: Final = ("default",)
# What links make beside network policies; without them, links that need a secret or a gateway wait and say why.
MADE_BY_LINKS: Final = (SECRET, MAPPING)
# The cluster's own: whoever may create a workload there has the cluster.
_OF_THE_CLUSTER: Final = ("kube-", "openshift-")
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SECRET: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_ALL: Final = ("get", "list", "watch", "create", "patch", "delete")
_UNWATCHED: Final = tuple(verb for verb in _ALL if verb != "watch")
_RBAC: Final = "rbac.authorization.k8s.io"


def policy(options: PolicyOptions = PLAIN) -> str:
    """Documents for `kubectl apply`, for the service account ``fractal-cloud-agent`` in the namespace of that name."""
    options.check(
        "kubernetes", ("with_links", "with_generated_secrets", "namespaces", "secrets", "types", "service_accounts")
    )
    return "---\n".join(yaml.safe_dump(one, sort_keys=False, width=120) for one in documents(options))


def documents(options: PolicyOptions = PLAIN) -> list[Object]:
    """What is printed, document by document."""
    namespaces = options.namespaces or DEFAULT
    every_match(namespaces, "namespaces", _LABEL, "name of a namespace")
    every_match(options.secrets, "secrets", _SECRET, "Secret as NAMESPACE/NAME")
    every_match(options.service_accounts, "service_accounts", _SECRET, "service account as NAMESPACE/NAME")
    for one in (*namespaces, *_by_namespace(options.secrets)):
        if one.startswith(_OF_THE_CLUSTER) or one == HOME:
            raise PolicyOptionError(
                f"namespace {one!r} holds credentials of more than the agent's own work: choose one that holds nothing "
                "but what the agent may reach"
            )
    kinds = kinds_of(options.types)
    offers = [offer for offer in installed("kubernetes").of_provider("kubernetes") if isinstance(offer, ObjectOffer)]
    return [
        *_bound("Cluster", "", _everywhere(offers, kinds)),
        *(one for name in namespaces for one in _bound("", name, _inside(offers, kinds, options))),
        *(
            one
            for place, names in _by_namespace(options.secrets).items()
            for one in _bound("", place, iter([_named_secrets(names)]), f"{NAME}-secrets")
        ),
        *admission(
            with_links=options.with_links,
            with_generated_secrets=options.with_generated_secrets,
            secrets=options.secrets,
            service_accounts=options.service_accounts,
            kinds=kinds,
        ),
    ]


def _by_namespace(secrets: Sequence[str]) -> dict[str, list[str]]:
    """The names of the Secrets that declarations may refer to (A8), by their namespaces."""
    found: dict[str, list[str]] = {}
    for one in secrets:
        place, _, name = one.partition("/")
        found.setdefault(place, []).append(name)
    return found


def _named_secrets(names: Sequence[str]) -> Object:
    """Reading by name is the one right to secrets that RBAC can restrict."""
    return {"apiGroups": [""], "resources": [SECRET.plural], "resourceNames": list(names), "verbs": ["get"]}


def _everywhere(offers: Sequence[ObjectOffer[Any]], kinds: Sequence[KindFacts]) -> Iterator[Object]:
    """What lies in no namespace, or is looked for in all of them: only ever read."""
    yield {"apiGroups": [""], "resources": [NAMESPACE.plural], "resourceNames": ["kube-system"], "verbs": ["get"]}
    for offer in offers:
        yield from (_rule(kind, (verb,)) for kind, verb in offer.also_reads.items() if not kind.is_namespaced)
        yield from (_rule(kind, ("list",)) for kind in offer.listed_everywhere)
    yield from rules(kinds, is_namespaced=False)


def _inside(offers: Sequence[ObjectOffer[Any]], kinds: Sequence[KindFacts], options: PolicyOptions) -> Iterator[Object]:
    """What the agent does in a namespace."""
    for offer in offers:
        yield _rule(offer.object_kind, _ALL)
        yield from (_rule(kind, (verb,)) for kind, verb in offer.also_reads.items() if kind.is_namespaced)
    yield from rules(kinds, is_namespaced=True)
    if options.with_links:
        yield from (_rule(kind, _UNWATCHED) for kind in MADE_BY_LINKS)
    if options.with_generated_secrets:
        yield _rule(SECRET, ("get", "create", "delete"))


def _rule(kind: ObjectKind, verbs: Sequence[str]) -> Object:
    return {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": list(verbs)}


def _bound(scope: str, namespace: str, rules: Iterator[Object], name: str = NAME) -> tuple[Object, Object]:
    """A role of a namespace or (`Cluster`) of the cluster, and its binding to the agent."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    role = {"apiVersion": f"{_RBAC}/v1", "kind": f"{scope}Role", "metadata": dict(metadata), "rules": list(rules)}
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{scope}RoleBinding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _RBAC, "kind": f"{scope}Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": HOME}],
    }
    return role, binding
