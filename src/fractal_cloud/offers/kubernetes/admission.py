"""What the cluster itself refuses the agent, whatever its role grants: admission policies in Kubernetes' own language.

RBAC cannot see what an object holds. These policies can: they concern the agent's service account alone, and deny what
its offers never write and what would lead to more rights (A7): pods that run as somebody, mount something or reach the
node, secrets that the server fills with a token, addresses that catch other people's traffic. What somebody else put
into an object stays allowed as it was. From Kubernetes 1.30 on; which kinds the agent may write is RBAC's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fractal_cloud.offers.kubernetes.ambassador import HOST
from fractal_cloud.offers.kubernetes.kinds import SECRET, Object, ObjectKind
from fractal_cloud.offers.kubernetes.linked import LINK, SECRET_PREFIX
from fractal_cloud.offers.kubernetes.service import SERVICE
from fractal_cloud.offers.kubernetes.virtual_machine import VIRTUAL_MACHINE
from fractal_cloud.offers.kubernetes.workload import DEPLOYMENT

ACCOUNT: Final = "fractal-cloud-agent"
HOME: Final = "fractal-cloud-agent"
_API: Final = "admissionregistration.k8s.io/v1"
_TEMPLATE: Final = "spec.template.spec"
# Of a pod: whose rights it has, what it is given, and how it reaches the node it runs on.
_OF_PODS: Final = (
    *("serviceAccountName", "serviceAccount", "automountServiceAccountToken", "imagePullSecrets"),
    *("volumes", "initContainers", "resourceClaims"),
    *("hostNetwork", "hostPID", "hostIPC", "hostUsers", "shareProcessNamespace", "hostAliases"),
    *("nodeName", "runtimeClassName", "priorityClassName"),
)
_OF_CONTAINERS: Final = ("securityContext", "volumeMounts", "volumeDevices", "envFrom")
_OF_MACHINES: Final = ("accessCredentials", "nodeSelector")
_OF_DEVICES: Final = ("hostDevices", "gpus", "filesystems", "downwardMetrics")
_DISKS: Final = ("containerDisk", "persistentVolumeClaim")
Validation = tuple[str, str]
"""A condition that a write of the agent must fulfil, and what is said where it does not."""


def admission(*, with_links: bool) -> Iterator[Object]:
    """The policies and their bindings; those for secrets only where the agent may write any."""
    yield from _policy(DEPLOYMENT, _workloads(with_links=with_links))
    yield from _policy(VIRTUAL_MACHINE, _machines())
    yield from _policy(SERVICE, [_unchanged("spec", "externalIPs")])
    yield from _policy(HOST, [_unchanged("spec.tlsSecret", "namespace", "spec")])
    if with_links:
        yield from _policy(SECRET, _secrets(), ("CREATE", "UPDATE", "DELETE"))


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


def _unchanged(path: str, name: str, parent: str = "") -> Validation:
    """That a field is absent, or was there before with the same value; ``parent``: where the path itself may lack."""
    here, before = f"object.{path}", f"oldObject.{path}"
    word = path.rpartition(".")[2]
    is_absent = f"!has({here}.{name})"
    was_there = f"has({before}.{name})"
    if parent:
        is_absent = f"!has(object.{parent}.{word}) || {is_absent}"
        was_there = f"has(oldObject.{parent}.{word}) && {was_there}"
    expression = f"{is_absent} || (oldObject != null && {was_there} && {here}.{name} == {before}.{name})"
    return expression, f"may not set {path}.{name}"


def _workloads(*, with_links: bool) -> Iterator[Validation]:
    yield from (_unchanged(_TEMPLATE, name) for name in _OF_PODS)
    # The server itself fills in an empty one.
    expression, message = _unchanged(_TEMPLATE, "securityContext")
    yield f"{expression} || object.{_TEMPLATE}.securityContext == {{}}", message
    for name in _OF_CONTAINERS:
        same = _in_old_container(f"has(o.{name}) && o.{name} == c.{name}")
        yield _each_container(f"!has(c.{name}) || {same}"), f"may not set {name} of a container"
    allowed = ["!has(e.valueFrom)", _in_old_container("has(o.env) && o.env.exists(p, p == e)")]
    message = "may take no environment variable from elsewhere"
    if with_links:
        is_of_a_link = f"e.valueFrom.secretKeyRef.name.startsWith('{SECRET_PREFIX}')"
        allowed.insert(1, f"(has(e.valueFrom.secretKeyRef) && {is_of_a_link})")
        message += f" but from Secrets of links ({SECRET_PREFIX}…)"
    yield _each_container(f"!has(c.env) || c.env.all(e, {' || '.join(allowed)})"), message


def _each_container(condition: str) -> str:
    return f"object.{_TEMPLATE}.containers.all(c, {condition})"


def _in_old_container(condition: str) -> str:
    return f"(oldObject != null && oldObject.{_TEMPLATE}.containers.exists(o, o.name == c.name && {condition}))"


def _machines() -> Iterator[Validation]:
    yield from (_unchanged(_TEMPLATE, name) for name in _OF_MACHINES)
    yield from (_unchanged(f"{_TEMPLATE}.domain.devices", name, f"{_TEMPLATE}.domain") for name in _OF_DEVICES)
    yield _unchanged("spec", "dataVolumeTemplates")
    disk = " || ".join(f"has(v.{name})" for name in _DISKS)
    yield _each_of("volumes", disk), f"may give a machine no volumes but {' and '.join(_DISKS)}"
    yield _each_of("networks", "has(v.pod)"), "may join a machine to no network but the pods'"


def _each_of(name: str, condition: str) -> str:
    """That every entry of a list fulfils a condition, or stood in it before."""
    here, before = f"object.{_TEMPLATE}.{name}", f"oldObject.{_TEMPLATE}.{name}"
    was_there = f"(oldObject != null && has({before}) && {before}.exists(w, w == v))"
    return f"!has({here}) || {here}.all(v, {condition} || {was_there})"


def _secrets() -> Iterator[Validation]:
    is_deletion = "request.operation == 'DELETE'"
    is_ours = f"has(oldObject.metadata.labels) && '{LINK}' in oldObject.metadata.labels"
    yield f"oldObject == null || ({is_ours})", "may not change or delete Secrets that no link made"
    is_named = f"object.metadata.name.startsWith('{SECRET_PREFIX}')"
    is_marked = f"has(object.metadata.labels) && '{LINK}' in object.metadata.labels"
    yield f"{is_deletion} || ({is_named} && {is_marked})", f"may make Secrets of links only ({SECRET_PREFIX}…)"
    is_plain = "!has(object.type) || object.type == 'Opaque'"
    yield f"{is_deletion} || {is_plain}", "may make no Secret that the server fills: only Opaque ones"
