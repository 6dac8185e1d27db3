"""What the cluster itself refuses the agent, whatever its role grants: admission policies in Kubernetes' own language.

RBAC cannot see what an object holds. These policies can: they concern the agent's service account alone, and deny what
its offers never write and what would lead to more rights (A7): pods that run as somebody, mount something or reach the
node, secrets that the server fills with a token, addresses that catch other people's traffic. What somebody else put
into an object stays allowed as it was. From Kubernetes 1.30 on; which kinds the agent may write is RBAC's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fractal_cloud.offers.generated_secrets import LABEL
from fractal_cloud.offers.kubernetes.admission_of_pods import TEMPLATE, Validation, unchanged, workloads
from fractal_cloud.offers.kubernetes.ambassador import HOST
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import KindFacts
from fractal_cloud.offers.kubernetes.any_kind.rights import validations
from fractal_cloud.offers.kubernetes.generated_secrets import PREFIX
from fractal_cloud.offers.kubernetes.kinds import SECRET, Object, ObjectKind
from fractal_cloud.offers.kubernetes.linked import LINK, SECRET_PREFIX
from fractal_cloud.offers.kubernetes.service import SERVICE
from fractal_cloud.offers.kubernetes.virtual_machine import VIRTUAL_MACHINE
from fractal_cloud.offers.kubernetes.workload import DEPLOYMENT

ACCOUNT: Final = "fractal-cloud-agent"
HOME: Final = "fractal-cloud-agent"
_API: Final = "admissionregistration.k8s.io/v1"
_OF_MACHINES: Final = ("accessCredentials", "nodeSelector")
_OF_DEVICES: Final = ("hostDevices", "gpus", "filesystems", "downwardMetrics")
_DISKS: Final = ("containerDisk", "persistentVolumeClaim")


def admission(
    *,
    with_links: bool,
    with_generated_secrets: bool = False,
    secrets: Sequence[str] = (),
    service_accounts: Sequence[str] = (),
    kinds: Sequence[KindFacts] = (),
) -> Iterator[Object]:
    """The policies and their bindings; those for secrets of links only where the agent may write any.

    ``secrets``, ``service_accounts``: what pods may be given beside what is harmless, each as NAMESPACE/NAME.
    ``kinds``: what is declared by its own name, beside the types with classes.
    """
    yield from _policy(DEPLOYMENT, workloads(with_links=with_links, secrets=secrets, accounts=service_accounts))
    yield from _policy(VIRTUAL_MACHINE, _machines())
    yield from _policy(SERVICE, [unchanged("spec", "externalIPs")])
    yield from _policy(HOST, [unchanged("spec.tlsSecret", "namespace", "spec")])
    others = dict(validations(kinds, with_links=with_links, secrets=secrets, accounts=service_accounts))
    for kind, conditions in others.items():
        yield from _policy(kind, conditions)
    makes = {SECRET_PREFIX: (LINK, "links")} if with_links else {}
    makes |= {PREFIX: (LABEL, "its own making")} if with_generated_secrets else {}
    if makes and SECRET not in others:
        yield from _policy(SECRET, _secrets(makes), ("CREATE", "UPDATE", "DELETE"))


def _policy(
    kind: ObjectKind, validations: Iterable[Validation], operations: tuple[str, ...] = ("CREATE", "UPDATE")
) -> tuple[Object, Object]:
    name = f"{ACCOUNT}-{kind.plural}"
    rule = {
        "apiGroups": [kind.group],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": [kind.plural],
    }
    is_agent = f"request.userInfo.username == 'system:serviceaccount:{HOME}:{ACCOUNT}'"
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "is-the-agent", "expression": is_agent}],
        "validations": [
            {"expression": expression, "message": f"the agent of Fractal Cloud {message}", "reason": "Forbidden"}
            for expression, message in validations
        ],
    }
    policy = {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    binding = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return policy, binding


def _machines() -> Iterator[Validation]:
    yield from (unchanged(TEMPLATE, name) for name in _OF_MACHINES)
    yield from (unchanged(f"{TEMPLATE}.domain.devices", name, f"{TEMPLATE}.domain") for name in _OF_DEVICES)
    yield unchanged("spec", "dataVolumeTemplates")
    disk = " || ".join(f"has(v.{name})" for name in _DISKS)
    yield _each_of("volumes", disk), f"may give a machine no volumes but {' and '.join(_DISKS)}"
    yield _each_of("networks", "has(v.pod)"), "may join a machine to no network but the pods'"


def _each_of(name: str, condition: str) -> str:
    """That every entry of a list fulfils a condition, or stood in it before."""
    here, before = f"object.{TEMPLATE}.{name}", f"oldObject.{TEMPLATE}.{name}"
    was_there = f"(oldObject != null && has({before}) && {before}.exists(w, w == v))"
    return f"!has({here}) || {here}.all(v, {condition} || {was_there})"


def _secrets(makes: Mapping[str, tuple[str, str]]) -> Iterator[Validation]:
    """What becomes of Secrets. ``makes``: by the beginnings of names, the label that such a Secret bears, and whose."""
    is_deletion = "request.operation == 'DELETE'"
    are_ours = " || ".join(f"'{label}' in oldObject.metadata.labels" for label, _ in makes.values())
    is_ours = f"has(oldObject.metadata.labels) && ({are_ours})"
    yield f"oldObject == null || ({is_ours})", "may not change or delete Secrets that it did not make"
    are_named = " || ".join(
        f"(object.metadata.name.startsWith('{prefix}') && '{label}' in object.metadata.labels)"
        for prefix, (label, _) in makes.items()
    )
    only = " and ".join(f"of {whose} ({prefix}…)" for prefix, (_, whose) in makes.items())
    is_named = f"has(object.metadata.labels) && ({are_named})"
    yield f"{is_deletion} || ({is_named})", f"may make Secrets {only} only"
    is_plain = "!has(object.type) || object.type == 'Opaque'"
    yield f"{is_deletion} || {is_plain}", "may make no Secret that the server fills: only Opaque ones"
