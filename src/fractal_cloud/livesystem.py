"""A LiveSystem as it is declared in Python; ``to_json`` is what the API takes and YAML files hold.

Whether its types are known where it is deployed is checked there, not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from fractal_cloud.model.component import Component, reference_id
from fractal_cloud.model.declaration import (
    ComponentDeclaration,
    LinkDeclaration,
    LiveSystemDeclaration,
    Readoption,
)
from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.model.identity import ID_RULE, ID_TWICE, is_id
from fractal_cloud.model.reference import ESCAPED, output_reference, output_references
from fractal_cloud.model.wording import FACTS, closest, path_text, shown

# Left out of the JSON where they say nothing.
_OPTIONAL = ("ignoreDrift", "importOnly", "createOnce", "linksFrom", "tags")


@dataclass(frozen=True)
class LiveSystem:
    """A set of components that are deployed together.

    ``readoption``: ``"handshake"`` takes both tags to hand a component back, ``"tag"`` only ``managed-by``. ``tags``:
    your own tags, for all components; those of a component win. Raises ``DeclarationError`` with every error that can
    be found without a catalog of types.
    """

    id: str
    components: Sequence[Component]
    environment: str = "default"
    description: str = ""
    readoption: Readoption = "handshake"
    tags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        errors = [*self._own_errors(), *self._component_errors()]
        if errors:
            raise DeclarationError(errors)

    def _own_errors(self) -> Iterator[InputError]:
        given: object = self.id
        if not isinstance(given, str) or not is_id(given):
            yield InputError("id", f"is {shown(given)}: must be {ID_RULE}")
        for name in ("environment", "description"):
            value = getattr(self, name)
            if not isinstance(value, str):
                yield InputError(name, f"is {shown(value)}: must be text")
        if self.readoption not in get_args(Readoption):
            options = " or ".join(repr(option) for option in get_args(Readoption))
            yield InputError("readoption", f"is {shown(self.readoption)}: must be {options}")
        tags: object = self.tags
        if not isinstance(tags, Mapping):
            yield InputError("tags", f"is {shown(tags)}: must be texts by their keys")
            return
        for key, value in tags.items():
            if not isinstance(key, str) or not isinstance(value, str):
                yield InputError(f"tags[{shown(key)}]", f"is {shown(value)}: keys and values are texts")

    def _component_errors(self) -> Iterator[InputError]:
        known: set[str] = set()
        given: Sequence[object] = self.components
        for index, component in enumerate(given):
            if not isinstance(component, Component):
                yield InputError(f"components[{index}]", f"is {shown(component)}: must be a component")
            elif component.id in known:
                message = f"is {component.id!r}, {ID_TWICE}"
                yield InputError(f"components[{index}].id", message)
            else:
                known.add(component.id)
        for component in given:
            if isinstance(component, Component):
                yield from _reference_errors(component, known)

    def to_declaration(self) -> LiveSystemDeclaration:
        """The declaration, as it is sent and stored."""
        return LiveSystemDeclaration(
            id=self.id,
            environment=self.environment,
            description=self.description,
            readoption=self.readoption,
            tags=dict(self.tags),
            components=[_declare(component) for component in self.components],
        )

    def to_json(self) -> dict[str, Any]:
        """The declaration as JSON, with what was declared and nothing else."""
        document = self.to_declaration().to_json()
        if not document["tags"]:
            del document["tags"]
        for component in document["components"]:
            for name in _OPTIONAL:
                if not component[name]:
                    del component[name]
        return document


def _declare(component: Component) -> ComponentDeclaration:
    return ComponentDeclaration(
        id=component.id,
        type=component.type,
        provider=component.provider,
        parameters=component.parameters(),
        dependencies=_needed(component),
        links=[LinkDeclaration.model_validate(link) for link in component.links],
        ignore_drift=component.ignore_drift,
        import_only=component.import_only,
        create_once=component.create_once,
        links_from=component.links_from,
        tags=component.tags,
    )


def _needed(component: Component) -> list[str]:
    """The ids a component depends on: those it says, and those its parameters name."""
    return list(
        dict.fromkeys([*map(reference_id, component.dependencies), *(name for _, name in _referenced(component))])
    )


def _referenced(component: Component) -> Iterator[tuple[str, str]]:
    """The components that parameters name by their ids, or of which they refer to an output, each with the place."""
    declared = component.parameters()
    for path, reference in output_references(declared):
        yield path_text(("parameters", *path)).removeprefix("."), reference.component
    for name, info in type(component).model_fields.items():
        extra = info.json_schema_extra
        facts = extra.get(FACTS) if isinstance(extra, dict) else None
        if isinstance(facts, dict) and "reference" in facts:
            value = declared.get(info.alias or name, [])
            for found in value if isinstance(value, list) else [value]:
                if output_reference(found) is None:
                    yield name, str(found)


def _reference_errors(component: Component, known: set[str]) -> Iterator[InputError]:
    base = f"components[{component.id}]"
    named = [*(("dependencies", reference_id(other)) for other in component.dependencies), *_referenced(component)]
    for where, name in named:
        if name not in known:
            meant = closest(name, known)
            advice = f"did you mean {meant!r}?" if meant else "add it to the components"
            if where.startswith("parameters."):
                advice += f" For a literal ${{, write {ESCAPED}"
            yield InputError(f"{base}.{where}", f"is {shown(name)}, which is no component of this LiveSystem: {advice}")
