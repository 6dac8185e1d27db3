"""The kinds the server knows: those built in, and those that custom resource definitions add.

A kind says how it is addressed and what is special about it in general; its defaults, rules and status have files of
their own. No objects here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from fractal_sandbox.kubernetes.published import Node, node_of, published

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
    # The schema in a custom kind's definition; empty where it leaves all fields open.
    schema: Mapping[str, Any] = field(default_factory=dict, compare=False)
    # Of a custom kind: the version in which its objects are kept, the schemas of all, and how one becomes another.
    storage: str = field(default="", compare=False)
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)
    conversion: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def at(self, api_version: str) -> Kind:
        """Return the same kind in another version."""
        version = api_version.rpartition("/")[2]
        return self if version == self.version else replace(self, version=version, schema=self.schemas.get(version, {}))

    @property
    def stored(self) -> Kind:
        """The version in which objects are kept."""
        return self.at(self.storage) if self.storage else self

    @property
    def node(self) -> Node:
        """What is known of its fields."""
        return Node(self.schema) if self.is_custom else node_of(self.group, self.version, self.kind)

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

_KNOWN_WELL: Final = (
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
_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_NEEDED: Final = frozenset({"create", "delete", "get", "list", "patch", "update"})
_SHORT: Final[Mapping[str, tuple[str, ...]]] = {
    "CronJob": ("cj",),
    "DaemonSet": ("ds",),
    "Endpoints": ("ep",),
    "HorizontalPodAutoscaler": ("hpa",),
    "Ingress": ("ing",),
    "LimitRange": ("limits",),
    "Node": ("no",),
    "PersistentVolume": ("pv",),
    "PodDisruptionBudget": ("pdb",),
    "PriorityClass": ("pc",),
    "ReplicationController": ("rc",),
    "ResourceQuota": ("quota",),
    "StatefulSet": ("sts",),
    "StorageClass": ("sc",),
}
# What the server makes of requests by itself, or what another part of a cluster must serve: not stood in for here.
_NOT_SERVED: Final = frozenset({"APIService", "CertificateSigningRequest", "Event", "Node", "StorageVersion"})


def _age(version: str) -> tuple[int, int, int]:
    """How stable and new a version is: v2 before v1 before v1beta2."""
    found = _VERSION.fullmatch(version)
    assert found is not None, version
    stage = {None: 2, "beta": 1, "alpha": 0}[found[2]]
    return stage, int(found[1]), int(found[3] or 0)


def _published_kinds() -> Iterator[Kind]:
    """The other kinds that a real server has, each in its most stable version: one has one set of fields here."""
    best: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    for name, said in published()["kinds"].items():
        group_version, _, kind = name.rpartition("/")
        group, _, version = group_version.rpartition("/")
        known = best.get((group, kind))
        is_served = set(said["verbs"]) >= _NEEDED and kind not in _NOT_SERVED and _age(version)[0] == 2
        if is_served and (known is None or _age(known[0]) < _age(version)):
            best[(group, kind)] = (version, said)
    there = {(kind.group, kind.kind) for kind in _KNOWN_WELL}
    for (group, kind), (version, said) in sorted(best.items()):
        if (group, kind) not in there:
            yield Kind(
                group,
                version,
                kind,
                said["plural"],
                is_namespaced=said["namespaced"],
                short_names=_SHORT.get(kind, ()),
                has_status="status" in said["parts"],
            )


BUILT_IN: Final = (*_KNOWN_WELL, *_published_kinds())


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
    schemas = {one["name"]: (one.get("schema") or {}).get("openAPIV3Schema") or {} for one in spec["versions"]}
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
            schema=schemas[version["name"]],
            storage=next((one["name"] for one in spec["versions"] if one.get("storage")), version["name"]),
            schemas=schemas,
            conversion=spec.get("conversion") or {},
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
