"""Components of types that no class was written for: their parameters are the vendor's own, under the vendor's names.

One class is made for each type, so that a component knows its type as all others do. Whether its parameters make sense
is checked where the schema of its type is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from types import new_class
from typing import Any, ClassVar, Final, Protocol, Self, runtime_checkable

from pydantic import Field, ValidationInfo, field_validator

from fractal_cloud.model.catalog import TypeFacts, as_word
from fractal_cloud.model.component import COMPONENT_FIELDS, Component
from fractal_cloud.model.wording import shown

_OF_EVERY_COMPONENT: Final = COMPONENT_FIELDS - {"id", "links"}


@runtime_checkable
class _Writable(Protocol):
    """Whatever stands for a value and says how it is written: a reference to a secret, to an output, …."""

    def to_json(self) -> Any: ...


class GenericComponent(Component):
    """One component of a type without a class. ``values``: its parameters as declared, the words of its place included.

    They keep their names and their nesting. ``name`` is the resource's name, wherever the type's parameters say it.
    """

    name_parameter: ClassVar[str] = "name"
    schema_of_type: ClassVar[Mapping[str, Any]] = {}

    values: dict[str, Any] = Field(default_factory=dict)

    @field_validator("values", mode="before")
    @classmethod
    def _values_as_data(cls, value: Any) -> Any:
        return {str(name): plain(item) for name, item in value.items()} if isinstance(value, Mapping) else value

    @field_validator("name")
    @classmethod
    def _name_defaults_to_id(cls, value: str, info: ValidationInfo) -> str:
        del info  # which of the parameters is the name is known only when all are
        return value

    def model_post_init(self, context: Any) -> None:
        """Take the name from the parameter that is the name, else from the id."""
        if not self.name:
            object.__setattr__(self, "name", as_word(self.values.get(self.name_parameter)) or self.id)
        super().model_post_init(context)

    @classmethod
    def parameter_fields(cls) -> dict[str, str]:
        """The parameters the type has, each under its one name."""
        return {name: name for name in cls.schema_of_type.get("properties", {})}

    def parameters(self) -> dict[str, Any]:
        """The parameters that were declared, by the vendor's names, as JSON."""
        return {name: value for name, value in self.values.items() if value is not None}

    @classmethod
    def from_parameters(cls, component_id: str, parameters: Mapping[str, Any]) -> Self:
        """The component for parameters that were validated before."""
        return cls(id=component_id, values=dict(parameters))

    @classmethod
    def from_resolved(cls, component_id: str, parameters: Mapping[str, Any]) -> Self:
        """The same with the values of secrets in the place of references."""
        return cls.from_parameters(component_id, parameters)


def plain(value: Any) -> Any:
    """A value as JSON: tuples as lists, references as they are written. Raises ``ValueError`` where it is none."""
    if isinstance(value, Component):
        raise ValueError(
            f'{value.id!r} is a component: say which of its fields is meant, like {{"$output": "{value.id}.Arn"}}'
        )
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, str):
        return str(value)  # also what is more than text in Python
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [plain(item) for item in value]
    if isinstance(value, _Writable):
        return value.to_json()
    raise ValueError(f"{shown(value)} is no value of JSON: give text, a number, true or false, a list or an object")


@cache
def _class_of(component_type: str, provider: str) -> type[GenericComponent]:
    facts = TypeFacts(type=component_type, provider=provider, title=component_type, parameter_schema={}, nested=True)
    return component_class(facts)


def declared(
    component_type: str,
    provider: str,
    component_id: str,
    given: Mapping[str, object],
    parameters: Mapping[str, object],
) -> GenericComponent:
    """A component of a type whose schema is not needed here, as people write it in Python.

    ``given``: what every component has, by its Python name, and parameters beside it. ``parameters``: these alone.
    """
    twice = sorted(given.keys() & parameters.keys() - _OF_EVERY_COMPONENT)
    if twice:
        raise ValueError(f"{', '.join(twice)} of {component_id!r} is given twice: give it once")
    own = {name: value for name, value in given.items() if name in _OF_EVERY_COMPONENT}
    values = {**{name: value for name, value in given.items() if name not in own}, **parameters}
    made: dict[str, Any] = {"id": component_id, "values": values, **own}
    return _class_of(component_type, provider)(**made)


def component_class(facts: TypeFacts) -> type[GenericComponent]:
    """The class of the components of one type: a new one at each call, so it is to be kept."""
    name = "".join(part[:1].upper() + part[1:] for part in "".join(_letters(facts.type)).split())
    known: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": facts.description or facts.title,
        "__annotations__": {},
        "type": facts.type,
        "provider": facts.provider,
        "name_parameter": facts.named_by,
        "schema_of_type": facts.parameter_schema,
    }
    made: type[GenericComponent] = new_class(name, (GenericComponent,), exec_body=lambda body: body.update(known))
    return made


def _letters(text: str) -> list[str]:
    return [letter if letter.isalnum() else " " for letter in text]
