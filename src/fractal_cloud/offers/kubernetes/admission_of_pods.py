"""What the agent's own workloads may be given, in the language of admission policies (A7).

Allowed is what gives no more rights than running a container does: empty folders, ConfigMaps and claims of the
namespace, security contexts that take rights away, further containers under the same conditions. Service accounts and
Secrets are rights of somebody else: only those that were named when the rights were printed. The node is nobody's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from fractal_cloud.offers.kubernetes.linked import SECRET_PREFIX

TEMPLATE: Final = "spec.template.spec"
_METADATA: Final = "spec.template.metadata"
Validation = tuple[str, str]
"""A condition that a write of the agent must fulfil, and what is said where it does not."""
# Of a pod: how it reaches the node it runs on, and what it is given.
_OF_PODS: Final = (
    *("resourceClaims", "hostNetwork", "hostPID", "hostIPC", "hostUsers", "shareProcessNamespace", "hostAliases"),
    *("nodeName", "runtimeClassName", "priorityClassName", "ephemeralContainers"),
)
_OF_CONTAINERS: Final = ("volumeDevices", "lifecycle")
# What a security context may not say: the node's rights, or fewer limits than without it.
_UNCONFINED: Final = ("seLinuxOptions", "windowsOptions", "appArmorProfile")
_KINDS: Final = ("containers", "initContainers")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_ANNOTATIONS: Final = (
    *("container.apparmor.security.beta.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/"),
    *("seccomp.security.alpha.kubernetes.io/", "k8s.v1.cni.cncf.io/", "iam.amazonaws.com/"),
)
"""How annotations of pods begin that say what their fields may not: profiles, other networks, an account in a cloud."""


def unchanged(path: str, name: str, parent: str = "") -> Validation:
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


def at_template(rules: Iterable[Validation], template: str) -> list[Validation]:
    """The conditions for Deployments, for a kind whose pods are described at another path."""
    places = {TEMPLATE: f"{template}.spec", _METADATA: f"{template}.metadata"}
    return [(_replaced(rule, places), _replaced(message, places)) for rule, message in rules]


def _replaced(text: str, places: Mapping[str, str]) -> str:
    for before, after in places.items():
        text = text.replace(before, after)
    return text


def workloads(
    *, with_links: bool, secrets: Sequence[str], accounts: Sequence[str], claims: str = ""
) -> Iterator[Validation]:
    """The conditions for Deployments. ``claims``: where a kind describes claims that its pods may mount."""
    yield _annotations(), "may give pods no annotations that stand for more rights"
    yield from (unchanged(TEMPLATE, name) for name in _OF_PODS)
    yield from _of_accounts(accounts)
    yield from _of_volumes(secrets)
    yield _pods_rights(), "may set nothing in securityContext of pods that gives more rights"
    for name in _OF_CONTAINERS:
        yield _each_container(_unless_before(name)), f"may not set {name} of a container"
    yield _each_container(_confined), "may give a container no rights on the node in its securityContext"
    yield _each_container(_own_ports), "may take no port of a node (hostPort)"
    for name in _PROBES:
        yield _each_container(_asks_itself(name)), f"may not have a node ask another host in the {name} of a container"
    mounts = f"!has(c.volumeMounts) || c.volumeMounts.all(m, {_is_vetted(secrets, claims)})"
    yield (
        _each_container(lambda kind: f"{mounts} || {_as_before(kind, 'volumeMounts')}"),
        ("may mount nothing of somebody else's into a container"),
    )
    yield (
        _each_container(lambda kind: _environment(kind, secrets, with_links=with_links)),
        _said_of_environment("may take no environment variable from Secrets", with_links=with_links),
    )
    whole = f"has(s.configMapRef) || (has(s.secretRef) && {_is_named('s.secretRef.name', secrets)})"
    yield (
        _each_container(lambda kind: f"!has(c.envFrom) || c.envFrom.all(s, {whole}) || {_as_before(kind, 'envFrom')}"),
        "may take no environment from Secrets that were not named for it",
    )


def _said_of_environment(message: str, *, with_links: bool) -> str:
    links = f" but from Secrets of links ({SECRET_PREFIX}…) and those" if with_links else " but those"
    return f"{message}{links} that were named for it"


def _is_named(name: str, named: Sequence[str]) -> str:
    """That an object of this name was named, in the namespace of what is written."""
    listed = ", ".join(f"'{one}'" for one in sorted(named))
    return f"(object.metadata.namespace + '/' + {name}) in [{listed}]" if named else "false"


def _of_accounts(named: Sequence[str]) -> Iterator[Validation]:
    for name in ("serviceAccountName", "serviceAccount"):
        expression, message = unchanged(TEMPLATE, name)
        here = f"object.{TEMPLATE}.{name}"
        yield f"{expression} || {_is_named(here, named)}", f"{message} but to one that was named for it"
    expression, message = unchanged(TEMPLATE, "automountServiceAccountToken")
    yield f"{expression} || !object.{TEMPLATE}.automountServiceAccountToken", message


def _of_volumes(secrets: Sequence[str]) -> Iterator[Validation]:
    volumes, before = f"object.{TEMPLATE}.volumes", f"oldObject.{TEMPLATE}.volumes"
    was_there = f"(oldObject != null && has({before}) && {before}.exists(w, w == v))"
    yield (
        f"!has({volumes}) || {volumes}.all(v, {_is_harmless(secrets)} || {was_there})",
        ("may give pods no volumes but empty folders, ConfigMaps, claims, and Secrets that were named for it"),
    )
    pull, was = f"object.{TEMPLATE}.imagePullSecrets", f"oldObject.{TEMPLATE}.imagePullSecrets"
    named = _is_named("p.name", secrets)
    yield (
        (f"!has({pull}) || {pull}.all(p, {named} || (oldObject != null && has({was}) && {was}.exists(w, w == p)))"),
        "may pull images with no Secrets but those that were named for it",
    )


def _is_harmless(secrets: Sequence[str]) -> str:
    plain = " || ".join(f"has(v.{name})" for name in ("emptyDir", "configMap", "persistentVolumeClaim"))
    return f"{plain} || (has(v.secret) && {_is_named('v.secret.secretName', secrets)})"


def _is_vetted(secrets: Sequence[str], claims: str) -> str:
    volumes = f"object.{TEMPLATE}.volumes"
    vetted = f"(has({volumes}) && {volumes}.exists(v, v.name == m.name && ({_is_harmless(secrets)})))"
    own = f"object.{claims}"
    return f"({vetted} || (has({own}) && {own}.exists(t, t.metadata.name == m.name)))" if claims else vetted


def _annotations() -> str:
    here, before = f"object.{_METADATA}", f"oldObject.{_METADATA}"
    harmless = " && ".join(f"!k.startsWith('{one}')" for one in _ANNOTATIONS)
    there = f"has({before}) && has({before}.annotations) && k in {before}.annotations"
    was_there = f"(oldObject != null && {there} && {before}.annotations[k] == {here}.annotations[k])"
    return f"!has({here}) || !has({here}.annotations) || {here}.annotations.all(k, ({harmless}) || {was_there})"


def _own_ports(kind: str) -> str:
    taken = "has(p.hostPort) && p.hostPort != 0"
    return f"!has(c.ports) || c.ports.all(p, !({taken})) || {_as_before(kind, 'ports')}"


def _asks_itself(probe: str) -> Callable[[str], str]:
    """That a check leads to the pod itself: what asks is the node."""
    here = f"c.{probe}"
    own = " && ".join(f"(!has({here}.{way}) || !has({here}.{way}.host))" for way in ("httpGet", "tcpSocket"))
    return lambda kind: f"!has({here}) || ({own}) || {_as_before(kind, probe)}"


def _pods_rights() -> str:
    here = f"object.{TEMPLATE}.securityContext"
    bad = [f"!has({here}.{name})" for name in (*_UNCONFINED, "sysctls")]
    expression, _ = unchanged(TEMPLATE, "securityContext")
    profile = f"(!has({here}.seccompProfile) || {here}.seccompProfile.type == 'RuntimeDefault')"
    return f"{expression} || ({' && '.join([*bad, profile])})"


def _confined(kind: str) -> str:
    here = "c.securityContext"
    no = [
        *(f"!has({here}.{name})" for name in (*_UNCONFINED, "procMount")),
        f"(!has({here}.privileged) || !{here}.privileged)",
        f"(!has({here}.allowPrivilegeEscalation) || !{here}.allowPrivilegeEscalation)",
        f"(!has({here}.capabilities) || !has({here}.capabilities.add))",
        f"(!has({here}.seccompProfile) || {here}.seccompProfile.type == 'RuntimeDefault')",
    ]
    return f"!has({here}) || ({' && '.join(no)}) || {_as_before(kind, 'securityContext')}"


def _environment(kind: str, secrets: Sequence[str], *, with_links: bool) -> str:
    reference = "e.valueFrom.secretKeyRef"
    allowed = ["!has(e.valueFrom)", f"!has({reference})", _is_named(f"{reference}.name", secrets)]
    if with_links:
        allowed.append(f"{reference}.name.startsWith('{SECRET_PREFIX}')")
    allowed.append(_in_old_container(kind, "has(o.env) && o.env.exists(p, p == e)"))
    return f"!has(c.env) || c.env.all(e, {' || '.join(allowed)})"


def _each_container(condition: Callable[[str], str]) -> str:
    """That each container of either kind fulfils a condition; those that run first may be missing."""
    parts = []
    for kind in _KINDS:
        here = f"object.{TEMPLATE}.{kind}"
        each = f"{here}.all(c, {condition(kind)})"
        parts.append(each if kind == "containers" else f"(!has({here}) || {each})")
    return " && ".join(parts)


def _unless_before(name: str) -> Callable[[str], str]:
    return lambda kind: f"!has(c.{name}) || {_as_before(kind, name)}"


def _as_before(kind: str, name: str) -> str:
    return _in_old_container(kind, f"has(o.{name}) && o.{name} == c.{name}")


def _in_old_container(kind: str, condition: str) -> str:
    before = f"oldObject.{TEMPLATE}.{kind}"
    return f"(oldObject != null && has({before}) && {before}.exists(o, o.name == c.name && {condition}))"
