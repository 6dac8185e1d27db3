"""What must be there before a declared object makes sense: derived from what its manifest names. Pure.

Nobody declares these dependencies and nobody owns them: they order creations and, turned around, deletions. What a
manifest names and no component of the same LiveSystem declares is somebody else's, and is not waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.offers.family import Declared
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import TypeName, type_name
from fractal_cloud.offers.kubernetes.any_kind.tables import POD_TEMPLATES

Named = tuple[str, str]
"""A kind, as ``v1/Secret`` without its version, and the name of an object."""
_DEFINITION: Final = "apiextensions.k8s.io/CustomResourceDefinition"
_CLASSES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "PersistentVolumeClaim": (("spec.storageClassName", "storage.k8s.io/StorageClass"),),
    "networking.k8s.io/Ingress": (("spec.ingressClassName", "networking.k8s.io/IngressClass"),),
}
_POD_CLASSES: Final = (
    ("priorityClassName", "scheduling.k8s.io/PriorityClass"),
    ("runtimeClassName", "node.k8s.io/RuntimeClass"),
    ("serviceAccountName", "ServiceAccount"),
)
_OF_TYPED: Final[Mapping[str, str]] = {
    "Storage.CaaS.KubernetesPersistentVolumeClaim": "PersistentVolumeClaim",
    "CustomWorkloads.CaaS.KubernetesWorkload": "apps/Deployment",
    "NetworkAndCompute.CaaS.KubernetesService": "Service",
}


def dependencies(component: Declared, others: Sequence[Declared]) -> list[str]:
    """The ids of the components that must exist before this one, sorted."""
    name = type_name(component.type)
    if name is None:
        return []
    here = _namespace(component)
    wanted = {(kind, here if _is_namespaced(kind) else "", one) for kind, one in _names(name, component.parameters)}
    if here:
        wanted.add(("Namespace", "", here))
    found = [other.id for other in others if other.id != component.id and _is_wanted(other, wanted, component)]
    found += [other.id for other in others if other.id != component.id and _brings(other, name, component)]
    return sorted(set(found))


def _is_wanted(other: Declared, wanted: set[tuple[str, str, str]], component: Declared) -> bool:
    kind = _unversioned(other.type)
    if kind is None or _text(other.parameters.get("cluster")) != _text(component.parameters.get("cluster")):
        return False
    return (kind, _namespace(other) if _is_namespaced(kind) else "", _name(other)) in wanted


def _brings(other: Declared, name: TypeName, component: Declared) -> bool:
    """Whether another component is the definition of this one's kind."""
    if _unversioned(other.type) != _DEFINITION:
        return False
    if _text(other.parameters.get("cluster")) != _text(component.parameters.get("cluster")):
        return False
    spec = other.parameters.get("spec") or {}
    return spec.get("group") == name.group and (spec.get("names") or {}).get("kind") == name.kind


def _unversioned(component_type: str) -> str | None:
    name = type_name(component_type)
    return name.unversioned if name is not None else _OF_TYPED.get(component_type)


def _is_namespaced(kind: str) -> bool:
    return not kind.endswith(("Class", "ClusterRole", "Namespace", "PersistentVolume", "CustomResourceDefinition"))


def _namespace(component: Declared) -> str:
    return _text(component.parameters.get("namespace")) or "default"


def _name(component: Declared) -> str:
    return _text(component.parameters.get("name")) or component.id


def _names(name: TypeName, parameters: Mapping[str, Any]) -> Iterator[Named]:
    """Everything that a manifest names."""
    kind = name.unversioned
    for path, named in _CLASSES.get(kind, ()):
        yield from _texts(named, [_at(parameters, path)])
    place = POD_TEMPLATES.get(kind)
    if place is not None:
        pod = _at(parameters, f"{place}.spec" if place else "spec")
        yield from _of_pod(pod if isinstance(pod, Mapping) else {})
    if kind == "apps/StatefulSet":
        yield from _texts("Service", [_at(parameters, "spec.serviceName")])
    if kind == "ServiceAccount":
        yield from _texts("Secret", (one.get("name") for one in _maps(parameters.get("imagePullSecrets"))))
    if kind == "networking.k8s.io/Ingress":
        yield from _texts("Secret", (one.get("secretName") for one in _maps(_at(parameters, "spec.tls"))))
    if kind.startswith("rbac.authorization.k8s.io/"):
        yield from _of_binding(parameters)


def _of_binding(parameters: Mapping[str, Any]) -> Iterator[Named]:
    role = parameters.get("roleRef")
    if isinstance(role, Mapping):
        yield from _texts(f"rbac.authorization.k8s.io/{role.get('kind')}", [role.get("name")])
    for subject in _maps(parameters.get("subjects")):
        if subject.get("kind") == "ServiceAccount":
            yield from _texts("ServiceAccount", [subject.get("name")])


def _of_pod(pod: Mapping[str, Any]) -> Iterator[Named]:
    for field, kind in _POD_CLASSES:
        yield from _texts(kind, [pod.get(field)])
    yield from _texts("Secret", (one.get("name") for one in _maps(pod.get("imagePullSecrets"))))
    for volume in _maps(pod.get("volumes")):
        yield from _of_volume(volume)
        for source in _maps(_at(volume, "projected.sources")):
            yield from _of_projection(source)
    for containers in ("initContainers", "containers", "ephemeralContainers"):
        for container in _maps(pod.get(containers)):
            yield from _of_environment(container)


def _of_volume(volume: Mapping[str, Any]) -> Iterator[Named]:
    yield from _texts("ConfigMap", [_needed(volume.get("configMap"), "name")])
    yield from _texts("Secret", [_needed(volume.get("secret"), "secretName")])
    yield from _texts("PersistentVolumeClaim", [_needed(volume.get("persistentVolumeClaim"), "claimName")])


def _of_projection(source: Mapping[str, Any]) -> Iterator[Named]:
    yield from _texts("ConfigMap", [_needed(source.get("configMap"), "name")])
    yield from _texts("Secret", [_needed(source.get("secret"), "name")])


def _of_environment(container: Mapping[str, Any]) -> Iterator[Named]:
    for one in _maps(container.get("envFrom")):
        yield from _texts("ConfigMap", [_needed(one.get("configMapRef"), "name")])
        yield from _texts("Secret", [_needed(one.get("secretRef"), "name")])
    for variable in _maps(container.get("env")):
        yield from _texts("ConfigMap", [_needed(_at(variable, "valueFrom.configMapKeyRef"), "name")])
        yield from _texts("Secret", [_needed(_at(variable, "valueFrom.secretKeyRef"), "name")])


def _needed(reference: Any, field: str) -> Any:
    """The name in a reference; nothing where the pod starts without it."""
    return reference.get(field) if isinstance(reference, Mapping) and not reference.get("optional") else None


def _texts(kind: str, names: Iterable[Any]) -> Iterator[Named]:
    return ((kind, name) for name in names if isinstance(name, str) and name)


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
