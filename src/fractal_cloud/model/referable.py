"""Parameters that may be references to secrets, as fields of component classes: how pydantic checks and writes them.

A declared component holds references. The agent makes the same component of values that it has resolved, for the one
call that needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidatorFunctionWrapHandler
from pydantic_core import CoreSchema, core_schema

from fractal_cloud.model.reference import (
    SecretReference,
    clear_secret,
    form_errors,
    references,
    replaced,
    with_references,
)
from fractal_cloud.model.wording import Path

_RESOLVED: Final[ContextVar[bool]] = ContextVar("resolved", default=False)
_IN_THE_PLACE_OF_ONE: Final = "x"

if TYPE_CHECKING:
    SensitiveText: TypeAlias = str | SecretReference
    SecretText: TypeAlias = SecretReference
else:
    SensitiveText = str
    SecretText = str


@overload
def text_of(value: SensitiveText) -> str: ...
@overload
def text_of(value: SensitiveText | None) -> str | None: ...
def text_of(value: SensitiveText | None) -> str | None:
    """The text that a resolved parameter holds, for the call that needs it."""
    if isinstance(value, SecretReference):
        raise TypeError(f"the secret {value.name!r} was not resolved: nothing is written")
    return value


def texts_of(values: Mapping[str, SensitiveText] | None) -> dict[str, str]:
    """The texts of a resolved map; of none, an empty one."""
    return {name: text_of(value) for name, value in (values or {}).items()}


@contextmanager
def resolved() -> Iterator[None]:
    """Let values of secrets stand where declarations must have references."""
    before = _RESOLVED.set(True)
    try:
        yield
    finally:
        _RESOLVED.reset(before)


@dataclass(frozen=True, slots=True)
class Referable:
    """Lets references stand in a field; ``only``: nothing else may, in a declaration."""

    only: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check what a field asks for, around the references in its value."""
        return core_schema.no_info_wrap_validator_function(
            self._check,
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(_to_json),
        )

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Allow references in the schema, too."""
        return with_references(handler(core), only=self.only)

    def _check(self, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        for _, message in form_errors(value):
            raise ValueError(message)
        found = dict(references(value))
        if () in found:
            return found[()]
        if self.only and value is not None and not _RESOLVED.get():
            raise ValueError(clear_secret())
        if not found:
            return check(value)
        # The rest is checked with a text in the place of each reference, which then takes its place again.
        return _put(check(replaced(value, lambda _: _IN_THE_PLACE_OF_ONE)), found)


def _put(value: Any, found: Mapping[Path, SecretReference], path: Path = ()) -> Any:
    if path in found:
        return found[path]
    if isinstance(value, Mapping):
        return {key: _put(item, found, (*path, key)) for key, item in value.items()}
    return [_put(item, found, (*path, at)) for at, item in enumerate(value)] if isinstance(value, list) else value


def _to_json(value: Any) -> Any:
    return replaced(value, SecretReference.to_json)
