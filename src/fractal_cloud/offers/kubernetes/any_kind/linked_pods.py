"""What links bring into the pods that a kind describes: environment variables in one container of its pod template.

Where that template stands is known of the built-in kinds, found in a definition's schema, or declared as
``podTemplate``. What links brought bears their mark, is no drift, and is written beside what is declared (L17). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.wording import FACTS
from fractal_cloud.offers.family import Declared
from fractal_cloud.offers.kubernetes.any_kind import catalogue
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import KindFacts, Schema, TypeName
from fractal_cloud.offers.kubernetes.any_kind.tables import IMMUTABLE, POD_TEMPLATES
from fractal_cloud.offers.kubernetes.containers import (
    LINKED,
    MARK,
    entries_of,
    flat_in,
    linked_in,
    main_container,
    put_linked_in,
)
from fractal_cloud.offers.kubernetes.kinds import Object
from fractal_cloud.rules.nested.path import Element, Path

POD_TEMPLATE: Final = "podTemplate"
OUTPUTS: Final[Mapping[str, str]] = {
    "selector": "labels of its pods, by which services and policies choose them",
    "containerPort": "the first port of the container that links give their variables to",
    LINKED: "environment variables that its links brought",
}
_NOT_RUN: Final = frozenset({"Pod", "PodTemplate"})
"""A pod's environment never changes, and a template by itself is nobody's pods."""
_DEEPEST: Final = 4
_PATH: Final = r"[A-Za-z][A-Za-z0-9]*(\.[A-Za-z][A-Za-z0-9]*)*"


def may_run_pods(name: TypeName) -> bool:
    """Whether pods may be described by a kind: every one that is not built in may say where it does."""
    if name.unversioned in POD_TEMPLATES:
        return name.unversioned not in _NOT_RUN
    return catalogue.find(str(name)) is None


def place_of(kind: KindFacts) -> str:
    """The dotted path of a kind's pod template; empty where nothing says it."""
    if not may_run_pods(kind.name):
        return ""
    known = POD_TEMPLATES.get(kind.name.unversioned)
    found = [known] if known is not None else list(_templates(kind.schema, kind.definitions, ()))
    return found[0] if len(found) == 1 else ""


def _templates(schema: Any, definitions: Mapping[str, Schema], path: tuple[str, ...]) -> Iterator[str]:
    """Every path at which a schema has what pods are made of: a ``spec`` with containers that have images."""
    fields = _fields(schema, definitions)
    containers = _fields(fields.get("spec"), definitions).get("containers")
    items = containers.get("items") if isinstance(containers, Mapping) else None
    if path and "image" in _fields(items, definitions):
        yield ".".join(path)
    elif len(path) < _DEEPEST:
        for name, inner in fields.items():
            yield from _templates(inner, definitions, (*path, name))


def _fields(schema: Any, definitions: Mapping[str, Schema]) -> Mapping[str, Any]:
    if not isinstance(schema, Mapping):
        return {}
    if "$ref" in schema:
        schema = definitions.get(str(schema["$ref"]).rpartition("/")[2], {})
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def parameters_of(kind: KindFacts, own: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters by which a kind takes part in links; none where its own fields have these names."""
    if not may_run_pods(kind.name) or {POD_TEMPLATE, LINKED} & own.keys():
        return {}
    is_fixed = POD_TEMPLATES.get(kind.name.unversioned) in IMMUTABLE.get(kind.name.unversioned, ())
    linked = {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "Environment variables that its links bring; nobody declares them.",
        FACTS: {"linked": True, **({"immutable": True} if is_fixed else {})},
    }
    if kind.name.unversioned in POD_TEMPLATES:
        return {LINKED: linked}
    found = place_of(kind)
    template = {
        "type": "string",
        "pattern": f"^{_PATH}$",
        "description": "Where its pods are described, for its links: a path such as `spec.template`"
        + (f"; `{found}` if not given." if found else "."),
    }
    return {POD_TEMPLATE: template, LINKED: linked}


def errors(component: Declared, known: str) -> Iterator[tuple[str, str]]:
    """What is wrong with a component that is the source of links, by parameter. ``known``: where its pods are."""
    said = component.parameters.get(POD_TEMPLATE)
    place = said if isinstance(said, str) else known
    if not place:
        yield POD_TEMPLATE, "is missing: say where its pods are described, such as 'spec.template'; links need it"
    elif template_at(component.parameters, place) is None:
        yield (
            POD_TEMPLATE if said else place.partition(".")[0],
            (f"has no pods at {place!r}: links write into the containers that are described there"),
        )


def template_at(values: Mapping[str, Any], place: str) -> Any:
    """The pod template at a dotted path; None where no containers stand there."""
    found: Any = values
    for name in place.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    pod = found.get("spec") if isinstance(found, Mapping) else None
    containers = pod.get("containers") if isinstance(pod, Mapping) else None
    return found if isinstance(containers, list) and containers else None


def as_declared(sighting: Sighting, declared: Mapping[str, Any], place: str) -> Sighting:
    """A sighting in which what links brought stands apart, as the parameter that only they set."""
    template = template_at(sighting.actual, place)
    if template is None:
        return sighting
    names = linked_in(template)
    ours = _env_by_container(template_at(declared, place))
    actual = _with_at(sighting.actual, place.split("."), _without(template, names, ours)) if names else sighting.actual
    labels = (template.get("metadata") or {}).get("labels")
    ports = main_container(template, sighting.name).get("ports") or [{}]
    more = {
        "selector": sighting.outputs.get("selector") or labels,
        "containerPort": ports[0].get("containerPort"),
        LINKED: sorted(names),
    }
    outputs = {**sighting.outputs, **{name: value for name, value in more.items() if value}}
    return replace(sighting, actual={**actual, LINKED: flat_in(template)}, outputs=outputs)


def _env_by_container(template: Any) -> dict[str, dict[str, Any]]:
    containers = template["spec"]["containers"] if template is not None else []
    return {
        str(one.get("name")): {
            str(entry.get("name")): entry for entry in one.get("env") or [] if isinstance(entry, Mapping)
        }
        for one in containers
        if isinstance(one, Mapping)
    }


def _without(template: Object, names: frozenset[str], ours: Mapping[str, Mapping[str, Any]]) -> Object:
    """A pod template without what links brought; an entry of that name that is declared counts as standing there."""
    containers = []
    for one in template["spec"]["containers"]:
        mine = ours.get(str(one.get("name")), {})
        env = [mine.get(entry["name"], entry) if entry["name"] in names else entry for entry in one.get("env") or []]
        left = [entry for entry in env if entry["name"] not in names or entry["name"] in mine]
        containers.append({**one, "env": left} if "env" in one else one)
    metadata = template.get("metadata") or {}
    annotations = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != MARK}
    spec = {**template["spec"], "containers": containers}
    return {**template, "metadata": {**metadata, "annotations": annotations}, "spec": spec}


def _with_at(values: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    first, *rest = path
    return {**values, first: _with_at(values[first], rest, value) if rest else value}


def put(item: Object, place: str, linked: Mapping[str, str]) -> None:
    """Make these the variables that links brought, in an object; nothing is touched where there are and were none."""
    template = template_at(item, place)
    if template is not None:
        put_linked_in(template, entries_of(linked), main_container(template, item["metadata"]["name"]))


def paths(item: Object, place: str) -> Iterator[Path]:
    """Where the variables that links brought stand in an object, and their mark."""
    template = template_at(item, place)
    if template is None:
        return
    above = tuple(place.split("."))
    yield (*above, "metadata", "annotations", MARK)
    container = main_container(template, item["metadata"]["name"])
    inside: Path = (*above, "spec", "containers", Element((("name", str(container.get("name"))),)), "env")
    yield from ((*inside, Element((("name", name),))) for name in sorted(linked_in(template)))
