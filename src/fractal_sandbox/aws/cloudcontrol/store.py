"""The resources that Cloud Control knows, with their properties, of all accounts and regions.

What another service of the sandbox has too is kept there as well (`twins`): whether it exists, its tags and the
properties that both know are then the other's, and here is only the rest. One per process, as moto's own memory.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.cloudcontrol.parts import parts
from fractal_sandbox.aws.cloudcontrol.paths import found, pruned
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, catalog
from fractal_sandbox.aws.cloudcontrol.twins import find_twin
from fractal_sandbox.aws.cloudcontrol.values import arn_of, identifier_of, is_global

__all__ = ["STORE", "Model", "Store", "tags_in", "with_tags"]

Model: TypeAlias = dict[str, Any]


def tags_in(schema: TypeSchema, model: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags among the properties of a resource."""
    held = model.get(schema.tag_property) if schema.tag_property else None
    names = schema.tag_names
    if names is None:
        return {str(key): str(value) for key, value in held.items()} if isinstance(held, Mapping) else {}
    pairs = held if isinstance(held, list) else []
    return {str(one[names[0]]): str(one.get(names[1]) or "") for one in pairs if isinstance(one, Mapping)}


def with_tags(schema: TypeSchema, model: Mapping[str, Any], tags: Mapping[str, str]) -> Model:
    """Return properties with other tags; what else an entry of the list says stays as it is."""
    names = schema.tag_names
    if names is None:
        return {**model, schema.tag_property: dict(tags)}
    held = {one[names[0]]: one for one in model.get(schema.tag_property) or [] if isinstance(one, Mapping)}
    more = _required_beside(schema, names)
    entries = [{**more, **held.get(key, {}), names[0]: key, names[1]: value} for key, value in tags.items()]
    return {**model, schema.tag_property: entries}


def _required_beside(schema: TypeSchema, names: tuple[str, str]) -> dict[str, Any]:
    """What an entry must say beside key and value, such as whether an instance gets the tag too."""
    entry = schema.resolved(schema.resolved(schema.properties[schema.tag_property]).get("items") or {})
    return {name: True for name in entry.get("required") or () if name not in names}


class Store:
    """Properties by type and identifier; reads and writes those of the account of the call under way."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], dict[str, Model]] = {}
        self._arns: dict[tuple[str, str], tuple[str, str, str]] = {}
        self._in_parents: set[tuple[str, str, str, str]] = set()

    def reset(self) -> None:
        self._kept.clear()
        self._arns.clear()
        self._in_parents.clear()
        catalog().reset()

    def find(self, schema: TypeSchema, identifier: str, region: str) -> Model | None:
        """Return all properties of a resource, those that are never read too; None where there is none."""
        twin = find_twin(schema.name)
        kept = self._group(schema.name, region).get(identifier)
        if twin is None:
            if kept is not None and self._went_with_its_parent(schema, identifier, kept, region):
                self.drop(schema, identifier, region)
                return None
            return None if kept is None else copy.deepcopy(kept)
        shown = twin.read(identifier, region)
        if shown is None:
            self.drop(schema, identifier, region)
            return None
        only_here = {name: value for name, value in (kept or {}).items() if name not in twin.kept_there}
        return {**copy.deepcopy(only_here), **shown}

    def all(self, schema: TypeSchema, region: str) -> Iterator[tuple[str, Model]]:
        """Return every resource of a type with its properties."""
        for identifier in self.identifiers(schema, region):
            model = self.find(schema, identifier, region)
            if model is not None:
                yield identifier, model

    def identifiers(self, schema: TypeSchema, region: str) -> list[str]:
        twin = find_twin(schema.name)
        return list(self._group(schema.name, region)) if twin is None else twin.identifiers(region)

    def tags(self, schema: TypeSchema, identifier: str, region: str) -> dict[str, str] | None:
        """Return the tags of a resource at this instant; None where it does not exist."""
        twin = find_twin(schema.name)
        if twin is not None:
            return twin.tags(identifier, region)
        kept = self._group(schema.name, region).get(identifier)
        return None if kept is None else tags_in(schema, kept)

    def keep(self, schema: TypeSchema, identifier: str, region: str, model: Model) -> None:
        self._group(schema.name, region)[identifier] = copy.deepcopy(model)
        self._went_with_its_parent(schema, identifier, model, region)
        if schema.name in parts():
            return  # it has no ARN: the one among its properties is that of what it belongs to
        arn = arn_of(schema, identifier, model, region)
        self._arns[(accounts.current(), arn)] = (schema.name, identifier, "" if is_global(schema.name) else region)

    def _went_with_its_parent(self, schema: TypeSchema, identifier: str, model: Model, region: str) -> bool:
        """Whether the other service deleted what a part was in, and the part with it: the policy of a bucket."""
        key = accounts.current(), region, schema.name, identifier
        is_there = _has_parent(schema, model, region)
        if is_there:
            self._in_parents.add(key)
        return is_there is False and key in self._in_parents

    def drop(self, schema: TypeSchema, identifier: str, region: str) -> None:
        model = self._group(schema.name, region).pop(identifier, None)
        self._in_parents.discard((accounts.current(), region, schema.name, identifier))
        if model is not None and schema.name not in parts():
            self._arns.pop((accounts.current(), arn_of(schema, identifier, model, region)), None)

    def by_arn(self, arn: str) -> tuple[str, str, str] | None:
        """Return type, identifier and region of the resource with an ARN; None where nothing of it is kept."""
        return self._arns.get((accounts.current(), arn))

    def of_service(self, service: str, region: str) -> Iterator[tuple[TypeSchema, str]]:
        """Return what is kept of a service in a region: type and identifier."""
        for (account, where, type_name), group in list(self._kept.items()):
            schema = catalog().find(type_name) if type_name.split("::")[1] == service else None
            if schema is not None and (account, where) == (accounts.current(), region):
                yield from ((schema, identifier) for identifier in list(group))

    def plain(self) -> Iterator[tuple[TypeSchema, str, str, Model]]:
        """Return every resource of this account that no other service has: type, identifier, region, properties."""
        for (account, region, type_name), group in list(self._kept.items()):
            schema = catalog().find(type_name)
            if account == accounts.current() and schema is not None and find_twin(type_name) is None:
                yield from ((schema, identifier, region, model) for identifier, model in list(group.items()))

    def primary(self, schema: TypeSchema, identifier: str, region: str) -> str:
        """Return the primary identifier that an identifier of a call means: itself, as JSON, or a secondary one."""
        if identifier.startswith("{"):
            try:
                values: Any = json.loads(identifier)
            except ValueError:
                return identifier
            return identifier_of(schema, values) or identifier
        secondary = schema.document.get("additionalIdentifiers") or ()
        if not secondary or identifier in self._group(schema.name, region):
            return identifier
        for one, model in self.all(schema, region):
            for paths in secondary:
                names = [path.removeprefix("/properties/").split("/") for path in paths]
                if "|".join(str(next(found(model, tuple(name)), "")) for name in names) == identifier:
                    return one
        return identifier

    @staticmethod
    def shown(schema: TypeSchema, model: Mapping[str, Any]) -> Model:
        """Return what a read shows of the properties: all but the write-only ones, and what held nothing else."""
        shown: Any = dict(model)
        for path in schema.write_only:
            shown = pruned(shown, path)
        return {name: value for name, value in shown.items() if value != {} or model[name] == {}}

    def _group(self, type_name: str, region: str) -> dict[str, Model]:
        key = (accounts.current(), "" if is_global(type_name) else region, type_name)
        return self._kept.setdefault(key, {})


def _has_parent(schema: TypeSchema, model: Mapping[str, Any], region: str) -> bool | None:
    """Whether another service has what a part belongs to, by its identifier; None where that does not say."""
    part = parts().get(schema.name)
    twin = find_twin(part.parent) if part is not None else None
    parent = catalog().find(part.parent) if part is not None else None
    if (
        part is None
        or part.blocks
        or twin is None
        or parent is None
        or parent.identifier != tuple((one,) for one in part.holds)
    ):
        return None
    value = model.get(part.property)
    return twin.tags(value, region) is not None if isinstance(value, str) else None


STORE: Final = Store()
