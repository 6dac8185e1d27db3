"""The lifecycle rules of a bucket, as they are declared, and the one form in which they are compared and sent.

S3 says the same rule in several ways: a prefix in the rule or in its filter, one condition alone or in `and`, an empty
filter or none, transitions in any order, a marker that is false or absent. All of them become one here. Which calls
are made belongs in ``s3_settings``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

Rule = dict[str, Any]
_SIZES: Final = ("objectSizeGreaterThan", "objectSizeLessThan")
_LISTS: Final = ("transitions", "noncurrentVersionTransitions")
_ACTIONS: Final = (*_LISTS, "expiration", "noncurrentVersionExpiration", "abortIncompleteMultipartUpload")
_MARKER: Final = "expiredObjectDeleteMarker"


def _midnight(text: str) -> str:
    """A day as S3 says it: midnight in UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no day: write it like '2030-01-31'") from None
    at = at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
    if at - at.replace(hour=0, minute=0, second=0, microsecond=0) != timedelta():
        raise ValueError(f"{text!r} is not midnight in UTC, which S3 asks for: write it like '2030-01-31'")
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


Day = Annotated[str, AfterValidator(_midnight), Field(examples=["2030-01-31"])]
StorageClass = Literal["GLACIER", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "DEEP_ARCHIVE", "GLACIER_IR"]


class _Part(BaseModel):
    """A part of a rule: what is not given is not sent."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )


class AwsLifecycleTag(_Part):
    """A tag that objects must bear."""

    key: str = Field(min_length=1, description="Its key.")
    value: str = Field(default="", description="Its value.")


class AwsLifecycleConditions(_Part):
    """Several conditions, all of which must hold."""

    prefix: str | None = Field(default=None, description="How the names of the objects begin.")
    tags: list[AwsLifecycleTag] | None = Field(default=None, description="Tags that the objects bear.")
    object_size_greater_than: int | None = Field(default=None, ge=0, description="Objects of more bytes than this.")
    object_size_less_than: int | None = Field(default=None, ge=1, description="Objects of fewer bytes than this.")


class AwsLifecycleFilter(_Part):
    """Which objects a rule is about: one condition, or several in `and`; all objects without any."""

    prefix: str | None = Field(default=None, description="How the names of the objects begin.")
    tag: AwsLifecycleTag | None = Field(default=None, description="A tag that the objects bear.")
    object_size_greater_than: int | None = Field(default=None, ge=0, description="Objects of more bytes than this.")
    object_size_less_than: int | None = Field(default=None, ge=1, description="Objects of fewer bytes than this.")
    and_: AwsLifecycleConditions | None = Field(default=None, alias="and", description="Several conditions at once.")

    @model_validator(mode="after")
    def _has_one_condition(self) -> Self:
        if len(self.model_dump(exclude_none=True)) > 1:
            raise ValueError("a filter takes one condition: put several into `and`")
        return self


class AwsLifecycleExpiration(_Part):
    """When objects are deleted."""

    days: int | None = Field(default=None, ge=1, description="How many days after they were written.")
    date: Day | None = Field(default=None, description="On which day.")
    expired_object_delete_marker: bool | None = Field(
        default=None, description="Whether delete markers without any older version go."
    )

    @model_validator(mode="after")
    def _says_one(self) -> Self:
        if len(self.model_dump(exclude_none=True)) != 1:
            raise ValueError("an expiration says one of days, date and expiredObjectDeleteMarker")
        return self


class AwsLifecycleTransition(_Part):
    """When objects go to another storage class."""

    storage_class: StorageClass = Field(description="The class they go to.")
    days: int | None = Field(default=None, ge=0, description="How many days after they were written.")
    date: Day | None = Field(default=None, description="On which day.")


class AwsNoncurrentVersionTransition(_Part):
    """When old versions of objects go to another storage class."""

    storage_class: StorageClass = Field(description="The class they go to.")
    noncurrent_days: int = Field(ge=0, description="How many days after they became old.")
    newer_noncurrent_versions: int | None = Field(
        default=None, ge=1, le=100, description="How many newer old versions stay."
    )


class AwsNoncurrentVersionExpiration(_Part):
    """When old versions of objects are deleted."""

    noncurrent_days: int = Field(ge=1, description="How many days after they became old.")
    newer_noncurrent_versions: int | None = Field(
        default=None, ge=1, le=100, description="How many newer old versions stay."
    )


class AwsAbortIncompleteMultipartUpload(_Part):
    """When unfinished uploads are given up."""

    days_after_initiation: int = Field(ge=1, description="How many days after they began.")


class AwsLifecycleRule(_Part):
    """What S3 does with objects by itself, some time after they were written."""

    id: str | None = Field(
        default=None, min_length=1, max_length=255, description="Its name; S3 makes one up where none is given."
    )
    status: Literal["Enabled", "Disabled"] = Field(description="Whether it is in force.")
    filter: AwsLifecycleFilter | None = Field(default=None, description="Which objects it is about; all without it.")
    prefix: str | None = Field(default=None, description="The same as the filter's prefix, as older rules say it.")
    expiration: AwsLifecycleExpiration | None = Field(default=None, description="When objects are deleted.")
    transitions: list[AwsLifecycleTransition] | None = Field(
        default=None, description="When they go to other storage classes."
    )
    noncurrent_version_expiration: AwsNoncurrentVersionExpiration | None = Field(
        default=None, description="When old versions are deleted."
    )
    noncurrent_version_transitions: list[AwsNoncurrentVersionTransition] | None = Field(
        default=None, description="When old versions go to other storage classes."
    )
    abort_incomplete_multipart_upload: AwsAbortIncompleteMultipartUpload | None = Field(
        default=None, description="When unfinished uploads are given up."
    )

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self.prefix is not None and self.filter is not None:
            raise ValueError("a rule has a prefix or a filter, not both: put the prefix into the filter")
        if not any(self.model_dump(by_alias=True, exclude_none=True).get(action) for action in _ACTIONS):
            raise ValueError(f"a rule does something: give it one of {', '.join(sorted(_ACTIONS))}")
        return self

    def flat(self) -> Rule:
        """The rule in the one form."""
        return canonical(self.model_dump(mode="json", by_alias=True, exclude_none=True))


def canonical(rule: Mapping[str, Any]) -> Rule:
    """A rule in the one form; ``id`` is there only where it is known."""
    made: Rule = {"status": rule["status"]}
    if rule.get("id") is not None:
        made["id"] = rule["id"]
    if conditions := _conditions(rule):
        made["filter"] = conditions
    for name in _LISTS:
        if rule.get(name):
            made[name] = sorted(map(dict, rule[name]), key=lambda one: json.dumps(one, sort_keys=True))
    for name in _ACTIONS[len(_LISTS) :]:
        part = {key: value for key, value in (rule.get(name) or {}).items() if (key, value) != (_MARKER, False)}
        if part:
            made[name] = part
    return made


def _conditions(rule: Mapping[str, Any]) -> dict[str, Any]:
    """The filter of a rule: nothing for all objects, one condition alone, several in `and`."""
    given = rule.get("filter") or {}
    several = given.get("and") or {}
    prefix = several.get("prefix") or given.get("prefix") or rule.get("prefix")
    tags = [dict(one) for one in (*(several.get("tags") or ()), *((given["tag"],) if given.get("tag") else ()))]
    flat: dict[str, Any] = {"prefix": prefix} if prefix else {}
    flat |= {name: size for name in _SIZES if (size := several.get(name, given.get(name))) is not None}
    if len(flat) + len(tags) > 1:
        return {"and": {**flat, **({"tags": sorted(tags, key=lambda one: one["key"])} if tags else {})}}
    return {**flat, **({"tag": tags[0]} if tags else {})}


def from_answer(rule: Mapping[str, Any]) -> Rule:
    """A rule as S3 returns it, in the one form."""
    return canonical(_renamed(rule, to_request=False))


def to_request(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule in the one form, as S3 takes it: with a filter, also an empty one."""
    return {"Filter": {}, **_renamed(rule, to_request=True)}


def _renamed(value: Any, *, to_request: bool) -> Any:
    """The same with every name in S3's spelling or in ours; days as text."""
    if isinstance(value, Mapping):
        return {_name(key, to_request=to_request): _renamed(one, to_request=to_request) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(one, to_request=to_request) for one in value]
    return _midnight(value.isoformat()) if isinstance(value, datetime) else value


def _name(key: str, *, to_request: bool) -> str:
    if to_request:
        return "ID" if key == "id" else key[0].upper() + key[1:]
    return "id" if key == "ID" else key[0].lower() + key[1:]
