"""What is declared, in the one spelling in which its type is compared.

A declaration in YAML or JSON is stored as it was written, and the same rule, list or port can be written in several
ways. A class says by its serializers which one is compared (``field_serializer``); what the class does not serialize
by itself is compared as written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from fractal_cloud.model.component import Component


class Spelling:
    """The parameters of one type that are compared in a spelling of their own."""

    def __init__(self, component: type[Component]) -> None:
        self._component = component
        decorators = component.__pydantic_decorators__.field_serializers.values()
        fields = {name for one in decorators for name in one.info.fields}
        self._names = {component.model_fields[name].alias or name: name for name in sorted(fields)}
        self._types: dict[str, TypeAdapter[Any]] = {}

    def changes(self, parameters: Mapping[str, Any]) -> bool:
        """Whether any of these is compared in a spelling of its own."""
        return not self._names.keys().isdisjoint(parameters)

    def of(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters as they are compared; what does not fit its type, such as what is not known yet, as it is."""
        spelled = {
            alias: self._spelled(name, parameters[alias]) for alias, name in self._names.items() if alias in parameters
        }
        return {**parameters, **spelled}

    def _spelled(self, name: str, value: Any) -> Any:
        try:
            known = self._type(name).validate_python(value)
        except ValidationError:
            return value
        made = self._component.model_construct(None, id="any", **{name: known})
        return next(iter(made.model_dump(mode="json", by_alias=True, include={name}, warnings=False).values()))

    def _type(self, name: str) -> TypeAdapter[Any]:
        found = self._types.get(name)
        if found is None:
            field = self._component.model_fields[name]
            kind: Any = field.annotation
            for mark in field.metadata:
                kind = Annotated[kind, mark]
            found = self._types[name] = TypeAdapter(kind)
        return found
