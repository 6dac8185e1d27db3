"""The kinds the server knows: those built in, and those that custom resource definitions add.

A kind says how it is addressed and what is special about it in general; its defaults, rules and status have files of
their own. No objects here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

__all__ = [
    "BUILT_IN",
    "CRD",
    "DEFINITIONS",
    "DEPLOYMENT",
    "NAMESPACE",
    "REPLICA_SET",
    "Kind",
    "Kinds",
    "Object",
    "kinds_of",
]

Object: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """One kind in one version of its group."""

    group: str
    version: str
    kind: str
    plural: str
    is_namespaced: bool = True
    short_names: tuple[str, ...] = ()
    has_status: bool = True
    is_custom: bool = False
    is_in_all: bool = False  # shown by `kubectl get all`
    # Columns of `kubectl get`, as a CRD names them: name, type, JSON path.
    columns: tuple[tuple[str, str, str], ...] = field(default=(), compare=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name under which its objects are kept and refused: `deployments.apps`, `services`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def subresources(self) -> tuple[str, ...]:
        found = ("status",) if self.has_status else ()
        return (*found, "scale") if self.resource == "deployments.apps" else found

    @property
    def singular(self) -> str:
        return self.kind.lower()


NAMESPACE: Final = Kind("", "v1", "Namespace", "namespaces", is_namespaced=False, short_names=("ns",))
CONFIG_MAP: Final = Kind("", "v1", "ConfigMap", "configmaps", short_names=("cm",), has_status=False)
CRD: Final = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    is_namespaced=False,
    short_names=("crd", "crds"),
)
DEPLOYMENT: Final = Kind("apps", "v1", "Deployment", "deployments", short_names=("deploy",), is_in_all=True)
REPLICA_SET: Final = Kind("apps", "v1", "ReplicaSet", "replicasets", short_names=("rs",), is_in_all=True)

BUILT_IN: Final = (
    NAMESPACE,
    CRD,
    CONFIG_MAP,
    Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",)),
    Kind("", "v1", "Pod", "pods", short_names=("po",), is_in_all=True),
    Kind("", "v1", "Secret", "secrets", has_status=False),
    Kind("", "v1", "Service", "services", short_names=("svc",), is_in_all=True),
    Kind("", "v1", "ServiceAccount", "serviceaccounts", short_names=("sa",), has_status=False),
    DEPLOYMENT,
    REPLICA_SET,
    Kind("", "v1", "Event", "events", short_names=("ev",), has_status=False),
    Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", short_names=("netpol",), has_status=False),
)


class Kinds:
    """The kinds served right now."""

    def __init__(self) -> None:
        self._built_in = {(kind.group, kind.version, kind.plural): kind for kind in BUILT_IN}
        self._custom: dict[str, list[Kind]] = {}

    def __iter__(self) -> Iterator[Kind]:
        yield from self._built_in.values()
        for kinds in self._custom.values():
            yield from kinds

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        for kind in self:
            if (kind.group, kind.version, kind.plural) == (group, version, plural):
                return kind
        return None

    def define(self, definition: Object) -> None:
        self._custom[definition["metadata"]["name"]] = kinds_of(definition)

    def undefine(self, name: str) -> list[Kind]:
        return self._custom.pop(name, [])

    def groups(self) -> dict[str, list[str]]:
        """Return every group with its versions; the core group is the empty one."""
        found: dict[str, list[str]] = {}
        for kind in self:
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        return found


def kinds_of(definition: Mapping[str, Any]) -> list[Kind]:
    """Return the kinds that a custom resource definition has served, one per version."""
    spec = definition["spec"]
    names = spec["names"]
    return [
        Kind(
            group=spec["group"],
            version=version["name"],
            kind=names["kind"],
            plural=names["plural"],
            is_namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames", ())),
            has_status="status" in (version.get("subresources") or {}),
            is_custom=True,
            is_in_all="all" in names.get("categories", ()),
            columns=tuple(
                (column["name"], column["type"], column["jsonPath"])
                for column in version.get("additionalPrinterColumns") or ()
            ),
        )
        for version in spec["versions"]
        if version.get("served", True)
    ]


def _definition(group: str, version: str, kind: str, plural: str, short_names: Iterable[str], **columns: str) -> Object:
    """Write a definition that leaves the fields of its kind open, as the fact sheet's trials did."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": list(short_names),
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name.replace("_", " "), "type": "string", "jsonPath": path}
                        for name, path in columns.items()
                    ],
                }
            ],
        },
    }


# What a cluster with KubeVirt and Emissary has.
DEFINITIONS: Final = (
    _definition(
        "kubevirt.io",
        "v1",
        "VirtualMachine",
        "virtualmachines",
        ["vm", "vms"],
        Status=".status.printableStatus",
        Ready=".status.ready",
    ),
    _definition(
        "getambassador.io",
        "v3alpha1",
        "Mapping",
        "mappings",
        [],
        Source_Host=".spec.hostname",
        Source_Prefix=".spec.prefix",
        Dest_Service=".spec.service",
        State=".status.state",
    ),
    _definition("getambassador.io", "v3alpha1", "Host", "hosts", [], Hostname=".spec.hostname", State=".status.state"),
    _definition("getambassador.io", "v3alpha1", "Listener", "listeners", [], Port=".spec.port"),
)
