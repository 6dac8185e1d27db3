"""Types whose services compare the keys of tags without regard to case: a later spelling replaces the earlier one.

Sources: https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html («Tag key values for IAM users and roles are not
case sensitive, but case is preserved»; to other types of IAM they are two keys); the API references of Amazon Kendra
and Amazon Q Business, `Tag$Key` («Keys are not case sensitive»).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema
from fractal_sandbox.aws.cloudcontrol.store import Model, tags_in, with_tags

__all__ = ["duplicate", "is_caseless", "replaced"]

_TYPES: Final = frozenset({"AWS::IAM::Role", "AWS::IAM::User"})
_SERVICES: Final = frozenset({"Kendra", "KendraRanking", "QBusiness"})


def is_caseless(schema: TypeSchema) -> bool:
    """Return whether keys of this type's tags that differ in case alone are one key."""
    return schema.name in _TYPES or schema.name.split("::")[1] in _SERVICES


def duplicate(schema: TypeSchema, model: Model) -> bool:
    """Return whether properties name one key twice."""
    if not is_caseless(schema):
        return False
    keys = [key.casefold() for key in tags_in(schema, model)]
    return len(keys) != len(set(keys))


def replaced(schema: TypeSchema, before: Model, after: Model) -> Model:
    """Return properties in which a key that was written has taken the place of its other spellings."""
    if not duplicate(schema, after):
        return after
    held, tags = tags_in(schema, before), tags_in(schema, after)
    written = {key.casefold() for key, value in tags.items() if held.get(key) != value}
    return with_tags(schema, after, {key: value for key, value in tags.items() if _stays(key, value, written, held)})


def _stays(key: str, value: str, written: set[str], held: Mapping[str, str]) -> bool:
    return key.casefold() not in written or held.get(key) != value
