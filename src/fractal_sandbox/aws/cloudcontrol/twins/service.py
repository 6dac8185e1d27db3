"""What all twins share: tags beside the other properties, and the errors of their services in Cloud Control's words.

A twin says how its resources are made, described, changed and removed by the calls of their own service.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from moto.backends import get_backend

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, catalog
from fractal_sandbox.aws.cloudcontrol.twins.registry import Refused
from fractal_sandbox.aws.moto_api import MotoRefused, ask
from fractal_sandbox.aws.resources import backend

__all__ = ["Model", "ServiceTwin", "changed", "pairs"]

Model = dict[str, Any]
# How services say it, and which of Cloud Control's codes it is.
_CODES: Final = (
    (
        re.compile(r"AlreadyExists|Duplicate|NameExists|BucketAlready|ResourceInUse"),
        "AlreadyExists",
    ),
    (re.compile(r"NotFound|NoSuch|DoesNotExist|NonExistent"), "NotFound"),
    (re.compile(r"DependencyViolation|DeleteConflict|Conflict"), "ResourceConflict"),
    (re.compile(r"LimitExceeded"), "ServiceLimitExceeded"),
)


def changed(before: Mapping[str, Any], after: Mapping[str, Any], names: Iterable[str]) -> Model:
    """Return the properties among some that differ, as they are to be; None for those that went."""
    return {name: after.get(name) for name in names if before.get(name) != after.get(name)}


def pairs(tags: Mapping[str, str], key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    return [{key: name, value: content} for name, content in tags.items()]


class ServiceTwin(ABC):
    """The resources of one type that a service of moto's has."""

    type_name: ClassVar[str]
    service: ClassVar[str]
    knows: ClassVar[frozenset[str]]
    """The properties that the service keeps, tags aside: what it does not return of them is not there."""

    is_listed: ClassVar[bool] = True
    """Whether moto's own tagging API lists its resources."""

    # What a type says

    @abstractmethod
    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        """Make it, and return the properties that the service chose, its identifier among them."""

    @abstractmethod
    def describe(self, identifier: str, region: str) -> Model:
        """Return the properties that the service knows of what exists, without its tags."""

    @abstractmethod
    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        """Bring all but the tags from one state to another."""

    @abstractmethod
    def remove(self, identifier: str, region: str) -> None: ...

    @abstractmethod
    def identifiers(self, region: str) -> list[str]: ...

    @abstractmethod
    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        """Return the tags of a resource; None where there is none."""

    @abstractmethod
    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None: ...

    @abstractmethod
    def identifier_in(self, arn: str) -> str | None: ...

    # What follows

    @property
    def schema(self) -> TypeSchema:
        found = catalog().find(self.type_name)
        assert found is not None, f"the catalogue has no {self.type_name}"
        return found

    @property
    def regions(self) -> list[str]:
        backends: Any = get_backend(self.service)  # type: ignore[call-overload]
        return list(backends[accounts.current()])

    @property
    def kept_there(self) -> frozenset[str]:
        return self.knows | {self.schema.tag_property}

    def create(self, model: Mapping[str, Any], region: str) -> Model:
        from fractal_sandbox.aws.cloudcontrol.store import tags_in

        return {**model, **self.make(dict(model), tags_in(self.schema, model), region)}

    def read(self, identifier: str, region: str) -> Model | None:
        from fractal_sandbox.aws.cloudcontrol.store import with_tags

        tags = self.tags(identifier, region)
        if tags is None:
            return None
        known = self.describe(identifier, region)
        return with_tags(self.schema, known, tags) if tags and self.schema.tag_property else known

    def update(self, identifier: str, before: Mapping[str, Any], after: Mapping[str, Any], region: str) -> None:
        from fractal_sandbox.aws.cloudcontrol.store import tags_in

        self.change(identifier, dict(before), dict(after), region)
        held, wanted = tags_in(self.schema, before), tags_in(self.schema, after)
        added = {key: value for key, value in wanted.items() if held.get(key) != value}
        gone = [key for key in held if key not in wanted]
        if added or gone:
            self.write_tags(identifier, added, gone, region)

    def delete(self, identifier: str, region: str) -> None:
        self.remove(identifier, region)

    def ask(self, region: str, operation: str, **parameters: Any) -> Model:
        """Ask the service; what it refuses is the failure of the handler."""
        given = {name: value for name, value in parameters.items() if value is not None}
        try:
            return ask(self.service, region, operation, given)
        except MotoRefused as refused:
            code = next((code for pattern, code in _CODES if pattern.search(refused.code)), "InvalidRequest")
            raise Refused(code, refused.message or refused.code) from None

    def backend(self, region: str) -> Any:
        return backend(self.service, region)
