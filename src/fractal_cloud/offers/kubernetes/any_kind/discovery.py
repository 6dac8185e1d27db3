"""What a cluster serves: its groups, versions and kinds, and the published schemas of them.

Aggregated discovery is taken where the server knows it (from 1.26 on), else the plain one; the same for OpenAPI, whose
third version is published group by group (from 1.24 on), and whose second is one large document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fractal_cloud.model.errors import Denied, Unreadable
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import KindFacts, Schema, TypeName
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.kinds import ObjectKind

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_ALSO: Final = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
ACCEPTED: Final = f"{_AGGREGATED},{_ALSO}"
_GVK: Final = "x-kubernetes-group-version-kind"
DEFINITIONS: Final = ObjectKind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", is_namespaced=False
)
_OPENAPI_SECONDS: Final = (5.0, 60.0)


def kind_served(cloud: Kubernetes, name: TypeName) -> KindFacts | None:
    """What a cluster says of a kind; None where it has none of that name and version."""
    root = f"/apis/{name.group}/{name.version}" if name.group else f"/api/{name.version}"
    listed = cloud.document(root)
    for said in (listed or {}).get("resources") or ():
        if said.get("kind") == name.kind and "/" not in str(said.get("name")):
            definitions = _definitions(cloud, name)
            schema = _schema_of(definitions, name) or _defined(cloud, name, str(said["name"]))
            return KindFacts(
                name=name,
                plural=str(said["name"]),
                is_namespaced=bool(said.get("namespaced")),
                verbs=frozenset(said.get("verbs") or ()),
                schema=schema,
                definitions=definitions,
                description=_sentence(schema),
                is_custom="." in name.group and not name.group.endswith(".k8s.io"),
            )
    return None


def kinds_served(cloud: Kubernetes) -> Iterator[tuple[ObjectKind, frozenset[str]]]:
    """Every kind that a cluster serves, with its verbs; raises where it does not say all.

    Each in the first version of its group that has it: some kinds are in others than the preferred one alone.
    """
    for root in ("/api", "/apis"):
        document = cloud.document(root, ACCEPTED)
        if document is None:
            raise Unreadable(f"the cluster does not answer {root}: what it serves is not known")
        if document.get("kind") == "APIGroupDiscoveryList":
            found = _aggregated(document)
        elif root == "/api":
            found = _plain(cloud, "", "v1")
        else:
            groups = document.get("groups") or ()
            found = (one for group in groups for version in _versions(group) for one in _plain(cloud, *version))
        yield from {(kind.group, kind.plural): (kind, verbs) for kind, verbs in reversed(list(found))}.values()


def _versions(group: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A group's name with each of its versions, the preferred one first."""
    preferred = str(group["preferredVersion"]["version"])
    others = [str(one["version"]) for one in group.get("versions") or ()]
    return [(str(group["name"]), version) for version in dict.fromkeys([preferred, *others])]


def _aggregated(document: Mapping[str, Any]) -> Iterator[tuple[ObjectKind, frozenset[str]]]:
    for group in document.get("items") or ():
        for version in group.get("versions") or ():
            if version.get("freshness") == "Stale":
                raise Unreadable(f"the cluster does not know now what {group['metadata'].get('name')!r} serves")
            for said in version.get("resources") or ():
                kind = said.get("responseKind") or {}
                is_namespaced = said.get("scope") == "Namespaced"
                name = str((group.get("metadata") or {}).get("name") or "")
                one = ObjectKind(name, version["version"], str(kind.get("kind")), said["resource"], "", is_namespaced)
                yield one, frozenset(said.get("verbs") or ())


def _plain(cloud: Kubernetes, group: str, version: str) -> Iterator[tuple[ObjectKind, frozenset[str]]]:
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    document = cloud.document(root)
    if document is None:
        raise Unreadable(f"the cluster does not say what {group or 'its core'} serves")
    for said in document.get("resources") or ():
        if "/" not in said["name"]:
            kind = ObjectKind(group, version, said["kind"], said["name"], "", bool(said.get("namespaced")))
            yield kind, frozenset(said.get("verbs") or ())


def _definitions(cloud: Kubernetes, name: TypeName) -> Mapping[str, Schema]:
    """The published schemas that a version's kinds use; none where the server publishes nothing."""
    root = f"apis/{name.group}/{name.version}" if name.group else f"api/{name.version}"
    index = cloud.document("/openapi/v3")
    where = ((index or {}).get("paths") or {}).get(root) or {}
    if where.get("serverRelativeURL"):
        document = cloud.document(str(where["serverRelativeURL"]), seconds=_OPENAPI_SECONDS) or {}
        found: Mapping[str, Schema] = (document.get("components") or {}).get("schemas") or {}
    else:
        document = cloud.document("/openapi/v2", seconds=_OPENAPI_SECONDS) or {}
        found = document.get("definitions") or {}
    return found


def _schema_of(definitions: Mapping[str, Schema], name: TypeName) -> Schema:
    meant = {"group": name.group, "version": name.version, "kind": name.kind}
    return next((one for one in definitions.values() if meant in (one.get(_GVK) or ())), {})


def _defined(cloud: Kubernetes, name: TypeName, plural: str) -> Schema:
    """The schema in a kind's own definition: a server publishes it some time after it serves the kind."""
    try:
        found = cloud.find(DEFINITIONS, f"{plural}.{name.group}")
    except (Denied, Unreadable):
        return {}
    versions = (found or {}).get("spec", {}).get("versions") or ()
    said: Schema = next((one for one in versions if one.get("name") == name.version), {})
    schema: Schema = (said.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def _sentence(schema: Schema) -> str:
    return " ".join(str(schema.get("description") or "").split()).partition(". ")[0][:160]
