"""The published schema of each resource type, read service by service when one of its types is first asked for.

They are AWS's own documents, packaged with the product as a data file: the sandbox reads the file, and imports nothing
of the product. Types that a test registers stand beside them, as an account's private ones do.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path as File
from typing import Any, Final, Literal

from fractal_sandbox.aws.cloudcontrol.paths import Path, parsed

__all__ = ["SchemaCatalog", "TypeSchema", "Verb", "catalog"]

Verb = Literal["create", "read", "update", "delete", "list"]
Pairs: Final = ("Key", "Value")
_DATA: Final = ("offers", "aws", "resources", "aws_types.zip")


@dataclass(frozen=True, eq=False)
class TypeSchema:
    """One resource type; `is_private` where an account registered it itself."""

    name: str
    document: Mapping[str, Any]
    is_private: bool = False

    @cached_property
    def identifier(self) -> tuple[Path, ...]:
        return self._paths("primaryIdentifier")

    @cached_property
    def read_only(self) -> tuple[Path, ...]:
        return self._paths("readOnlyProperties")

    @property
    def has_tags_at_creation(self) -> bool:
        return bool(self.tag_property) and bool((self.document.get("tagging") or {}).get("tagOnCreate", True))

    @cached_property
    def write_only(self) -> tuple[Path, ...]:
        return self._paths("writeOnlyProperties")

    @cached_property
    def create_only(self) -> tuple[Path, ...]:
        return self._paths("createOnlyProperties")

    @property
    def properties(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.document["properties"]
        return found

    @cached_property
    def tag_property(self) -> str:
        """The property that holds the tags; empty where the type carries none."""
        tagging = self.document.get("tagging") or {}
        if not tagging.get("taggable", self.document.get("taggable", "Tags" in self.properties)):
            return ""
        path = parsed(tagging.get("tagProperty") or "/properties/Tags")
        return path[0] if path[0] in self.properties else ""

    @cached_property
    def tag_names(self) -> tuple[str, str] | None:
        """What key and value are called in a list of tags; None where the tags are a map."""
        shown = self.resolved(self.properties.get(self.tag_property) or {})
        if "array" not in _texts(shown.get("type")) and "items" not in shown:
            return None
        pair = self.resolved(shown.get("items") or {}).get("properties") or {}
        names = {name.lower(): name for name in pair}
        key = next((names[one] for one in ("key", "tagkey") if one in names), "Key")
        value = next((names[one] for one in ("value", "tagvalue") if one in names), "Value")
        return key, value

    def can(self, verb: Verb) -> bool:
        return verb in self.document.get("handlers", {})

    def permissions(self, verb: Verb) -> tuple[str, ...]:
        """The rights that the handler of a verb uses, as the caller."""
        handler = self.document.get("handlers", {}).get(verb) or {}
        return tuple(handler.get("permissions") or ())

    @cached_property
    def list_parents(self) -> tuple[str, ...]:
        """What `ListResources` wants in its model."""
        handler = self.document.get("handlers", {}).get("list") or {}
        return tuple((handler.get("handlerSchema") or {}).get("required") or ())

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Follow a `$ref` to where it leads."""
        seen = 0
        while "$ref" in schema and seen < 20:
            name = str(schema["$ref"]).rpartition("/")[2]
            schema = self.document.get("definitions", {}).get(name) or {}
            seen += 1
        return schema

    def _paths(self, name: str) -> tuple[Path, ...]:
        return tuple(parsed(one) for one in self.document.get(name) or ())


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)] if value else []


class SchemaCatalog:
    """All types there are: the published ones, and those that were registered."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._services: dict[str, dict[str, TypeSchema]] = {}
        self._private: dict[str, TypeSchema] = {}

    def reset(self) -> None:
        """Forget the types that were registered."""
        self._private.clear()

    def register(self, document: Mapping[str, Any]) -> TypeSchema:
        """Add a private type, by its schema document, or put a new version in an old one's place."""
        name = str(document["typeName"])
        self._private[name] = TypeSchema(name, document, is_private=True)
        return self._private[name]

    def find(self, name: str) -> TypeSchema | None:
        """Return the type of that name; None where there is none that can be handled."""
        if name in self._private:
            return self._private[name]
        service = name.split("::")[1] if name.count("::") == 2 else ""
        return self._service(service).get(name)

    def why_not(self, name: str) -> str:
        """Say why a type that AWS has cannot be handled; empty for one that nobody knows."""
        return str(self._index.get("unusable", {}).get(name, ""))

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._index["types"], *self._private)

    @cached_property
    def _index(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._read("index.json") or "{}")
        return found

    def _service(self, service: str) -> dict[str, TypeSchema]:
        found = self._services.get(service)
        if found is None:
            documents = json.loads(self._read(f"{service}.json") or "{}") if service else {}
            found = {name: TypeSchema(name, document) for name, document in documents.items()}
            self._services[service] = found
        return found

    def _read(self, member: str) -> bytes | None:
        with zipfile.ZipFile(self._file) as archive:
            return archive.read(member) if member in archive.NameToInfo else None


@cache
def catalog() -> SchemaCatalog:
    """The one catalog of this process."""
    spec = find_spec("fractal_cloud")  # where the package is; a top-level name is found without being imported
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the schemas of AWS's types are missing: fractal_cloud is not installed beside the sandbox")
    return SchemaCatalog(File(spec.submodule_search_locations[0]).joinpath(*_DATA))
