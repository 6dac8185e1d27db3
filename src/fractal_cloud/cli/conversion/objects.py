"""What becomes of each object: a component of its own kind, a note, or nothing.

A declaration says what people want. What a cluster wrote into an object is left out, what is secret never gets into a
file, and what Helm makes at moments of its own is not declared at all; each is said in a note.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fractal_cloud.cli.conversion.comments import Comments
from fractal_cloud.cli.conversion.reading import Found
from fractal_cloud.cli.errors import CommandError
from fractal_cloud.model.reference import literal
from fractal_cloud.model.secret_detection import apparent_secret
from fractal_cloud.offers.kubernetes.any_kind import catalogue
from fractal_cloud.offers.kubernetes.any_kind.manifests import ManifestError, parts_of

HOOK: Final = "helm.sh/hook"
_WRITTEN_BY_OTHERS: Final = re.compile(
    r"kubectl\.kubernetes\.io/.*|deployment\.kubernetes\.io/revision|meta\.helm\.sh/.*|pv\.kubernetes\.io/.*"
    r"|volume\.(beta\.)?kubernetes\.io/.*|autoscaling\.alpha\.kubernetes\.io/.*|control-plane\.alpha\.kubernetes\.io/.*"
)
_OF_A_CLUSTER: Final[Mapping[str, tuple[str, ...]]] = {
    "Service": ("clusterIP", "clusterIPs", "healthCheckNodePort"),
    "PersistentVolumeClaim": ("volumeName",),
    "Pod": ("nodeName",),
    "Namespace": ("finalizers",),
}
_DROPPED_METADATA: Final = ("finalizers", "ownerReferences")
_MAX_ID: Final = 63
_SECRET_FIELDS: Final = ("data", "stringData")
_NO_ID: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Converted:
    """One component; ``comments`` are those of its manifest."""

    id: str
    type: str
    parameters: dict[str, Any]
    comments: Comments


@dataclass(slots=True)
class Conversion:
    """All components, what is to be bound before they are deployed, and what a person should know."""

    components: list[Converted] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Object:
    found: Found
    type: str
    parameters: dict[str, Any]

    @property
    def kind(self) -> str:
        return self.type.rpartition("/")[2]

    @property
    def name(self) -> str:
        return str(self.parameters["name"])

    @property
    def namespace(self) -> str:
        return str(self.parameters.get("namespace", ""))


def convert(every: Iterable[Found], namespace: str = "", cluster: str = "") -> Conversion:
    """The components of manifests. ``namespace``: for those that name none; ``cluster``: for all of them."""
    made = Conversion()
    objects = [one for found in every for one in _object(found, namespace, made)]
    _refuse_duplicates(objects)
    ids = _ids(objects)
    for one, component_id in zip(objects, ids, strict=True):
        parameters = _without_what_a_cluster_wrote(one, made)
        parameters = _with_secrets(one, parameters, made) if one.type == "v1/Secret" else literal(parameters)
        _note_clear_secrets(one, parameters, made)
        place = {"cluster": cluster} if cluster else {}
        name = {} if one.name == component_id else {"name": one.name}
        rest = {key: value for key, value in parameters.items() if key != "name"}
        made.components.append(Converted(component_id, one.type, {**name, **place, **rest}, one.found.comments))
    _note_namespaces(objects, made)
    return made


def _object(found: Found, namespace: str, made: Conversion) -> Iterator[_Object]:
    manifest, where = found.manifest, found.where
    if str(manifest.get("apiVersion", "")).startswith("kustomize.config.k8s.io/"):
        made.notes.append(f"{where}: left out, because it is Kustomize's: give what `kubectl kustomize` makes of it")
        return
    try:
        component_type, parameters = parts_of(manifest)
    except ManifestError as error:
        raise CommandError(f"{where} cannot be converted: {error}") from None
    metadata = manifest["metadata"]
    what = f"{manifest['kind']} {parameters['name']!r}"
    hook = (metadata.get("annotations") or {}).get(HOOK)
    if hook:
        made.notes.append(f"{what}: left out, because Helm makes it at a moment of its own ({HOOK}: {hook})")
        return
    if any(one.get("controller") for one in metadata.get("ownerReferences") or [] if isinstance(one, Mapping)):
        made.notes.append(f"{what}: left out, because another object makes it")
        return
    dropped = [name for name in _DROPPED_METADATA if metadata.get(name)]
    if dropped:
        made.notes.append(f"{what}: metadata.{' and '.join(dropped)} are left out: declarations have none")
    if namespace and "namespace" not in parameters and _is_namespaced(component_type, what, made):
        parameters = {"name": parameters["name"], "namespace": namespace, **parameters}
    yield _Object(found, component_type, parameters)


def _is_namespaced(component_type: str, what: str, made: Conversion) -> bool:
    known = catalogue.find(component_type)
    if known is None:
        made.notes.append(f"{what}: is taken for namespaced; take `namespace` out where its kind is cluster-wide")
    return known is None or known.is_namespaced


def _refuse_duplicates(objects: Iterable[_Object]) -> None:
    seen: dict[tuple[str, str, str], str] = {}
    for one in objects:
        key = one.type, one.namespace, one.name
        if key in seen:
            raise CommandError(
                f"{one.kind} {one.name!r} stands twice: {seen[key]} and {one.found.where}",
                advice="Keep one of them: a resource is declared once.",
            )
        seen[key] = one.found.where


def _ids(objects: list[_Object]) -> list[str]:
    """An id for each, the same whatever else is converted with it: kind and name; namespace and group where needed."""
    short = [_legal(one.kind, one.name) for one in objects]
    many = Counter(short)
    longer = [
        made if many[made] == 1 else _legal(one.kind, one.name, one.namespace or "default")
        for one, made in zip(objects, short, strict=True)
    ]
    many = Counter(longer)
    found = [
        made if many[made] == 1 else _legal(one.type, one.name, one.namespace or "default")
        for one, made in zip(objects, longer, strict=True)
    ]
    many = Counter(found)
    return [
        made if many[made] == 1 else _legal(made, _digest(f"{one.type} {one.namespace} {one.name}"))
        for one, made in zip(objects, found, strict=True)
    ]


def _legal(*words: str) -> str:
    made = _NO_ID.sub("-", "-".join(words).casefold()).strip("-")
    if len(made) <= _MAX_ID:
        return made
    return f"{made[: _MAX_ID - 9].rstrip('-')}-{_digest(made)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _without_what_a_cluster_wrote(one: _Object, made: Conversion) -> dict[str, Any]:
    """The parameters without what only this one cluster filled in; it shows by the object's uid."""
    parameters = dict(one.parameters)
    metadata = {
        part: {key: text for key, text in entries.items() if part != "annotations" or not _is_written_by_others(key)}
        for part, entries in parameters.get("metadata", {}).items()
    }
    kept = {part: entries for part, entries in metadata.items() if entries}
    parameters = {
        key: kept if key == "metadata" else value for key, value in parameters.items() if key != "metadata" or kept
    }
    spec = parameters.get("spec")
    was_read = isinstance(one.found.manifest["metadata"], Mapping) and one.found.manifest["metadata"].get("uid")
    if was_read and isinstance(spec, Mapping):
        gone = [
            name for name in _OF_A_CLUSTER.get(one.kind, ()) if name in spec and spec[name] not in ("None", ["None"])
        ]
        if gone:
            made.notes.append(f"{one.kind} {one.name!r}: {', '.join(gone)} of that cluster are left out")
            parameters["spec"] = {name: value for name, value in spec.items() if name not in gone}
    return parameters


def _is_written_by_others(key: str) -> bool:
    return _WRITTEN_BY_OTHERS.fullmatch(key) is not None


def _with_secrets(one: _Object, parameters: dict[str, Any], made: Conversion) -> dict[str, Any]:
    """A Secret whose values are references: no value gets into a declaration (A8)."""
    found = {key: value for key, value in parameters.items() if key not in _SECRET_FIELDS}
    for name in _SECRET_FIELDS:
        values = parameters.get(name)
        if not isinstance(values, Mapping):
            continue
        references: dict[str, Any] = {}
        for key in values:
            secret = _legal(one.namespace, one.name, str(key)) if one.namespace else _legal(one.name, str(key))
            if secret in made.secrets:
                secret = _legal(secret, _digest(f"{one.namespace} {one.name} {key}"))
            made.secrets.append(secret)
            references[str(key)] = {"$secret": secret}
        found[name] = references
    return {key: value if key in _SECRET_FIELDS else literal(value) for key, value in found.items()}


def _note_clear_secrets(one: _Object, parameters: Mapping[str, Any], made: Conversion) -> None:
    """Say where something else looks like a secret; what it is, is never said."""
    for path, text in _texts(parameters):
        why = apparent_secret("", text)
        if why:
            made.notes.append(
                f"{one.kind} {one.name!r}: {path} looks like {why}, and is written in clear: keep it in a Secret"
            )
    for path, variable in _variables(parameters):
        if apparent_secret(str(variable.get("name", "")), variable.get("value")):
            made.notes.append(
                f"{one.kind} {one.name!r}: {path} looks like a secret, and is written in clear: take it from a Secret"
            )


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]")


def _variables(value: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The environment variables in pods that have their value in clear."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            here = f"{path}.{key}".lstrip(".")
            if key == "env" and isinstance(item, list):
                named = (one for one in item if isinstance(one, Mapping) and isinstance(one.get("value"), str))
                yield from ((f"{here}[{one.get('name')}]", one) for one in named)
            yield from _variables(item, here)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _variables(item, f"{path}[{index}]")


def _note_namespaces(objects: Iterable[_Object], made: Conversion) -> None:
    every = list(objects)
    declared = {one.name for one in every if one.type == "v1/Namespace"}
    missing = sorted({one.namespace for one in every if one.namespace} - declared - {"default"})
    if missing:
        made.notes.append(f"namespaces that must be there, because none of these declares them: {', '.join(missing)}")
