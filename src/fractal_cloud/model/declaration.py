"""A LiveSystem as it is declared, sent and stored. Whether it makes sense is checked where the types are known."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Readoption = Literal["handshake", "tag"]
Scalar = str | int | float | bool


class Wire(BaseModel):
    """What travels as JSON: camelCase outside, snake_case inside."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", cache_strings="keys")

    def to_json(self) -> dict[str, Any]:
        """The JSON form, with every field."""
        return self.model_dump(mode="json", by_alias=True)


class LinkDeclaration(Wire):
    """One link: the component it leads to, and how they are wired (L1)."""

    target: str
    settings: dict[str, Scalar] = Field(default_factory=dict)


class ComponentDeclaration(Wire):
    """One component as it is declared."""

    id: str
    type: str
    provider: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    dependencies: list[str] = Field(default_factory=list)
    links: list[LinkDeclaration] = Field(default_factory=list)
    ignore_drift: list[str] = Field(default_factory=list)
    import_only: bool = False
    create_once: bool = False
    links_from: list[str] = Field(default_factory=list)
    tags: dict[str, str] = Field(default_factory=dict)


class LiveSystemDeclaration(Wire):
    """One LiveSystem as it is declared. ``tags``: for all its components; a component's own win."""

    id: str
    environment: str = "default"
    description: str = ""
    readoption: Readoption = "handshake"
    tags: dict[str, str] = Field(default_factory=dict)
    components: list[ComponentDeclaration] = Field(default_factory=list)
