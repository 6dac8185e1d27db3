"""Holds what Cloud Control carries against the schemas that AWS publishes of its resource types; cfn-lint has them.

botocore knows these bodies as texts only. Here a property is known, a read-only one is never sent and a write-only one
never answered, a patch changes nothing that cannot be changed, and what it makes of the resource that was read last
fits the schema. Types that the account alone has are known by its ``DescribeType``. What only cfn-lint demands beyond
AWS's own validator (``requiredXor`` and the like) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

import jsonpatch
import regex  # type: ignore[import-untyped]
from jsonschema import Draft7Validator, validators
from jsonschema.exceptions import ValidationError

Pair = tuple[str, str]
Said = Callable[[ValidationError], Iterator[Pair]]
Steps = tuple[str, ...]
UNPAIRED = (r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF")
"""How Java writes the characters beyond the first plane, and how Python does."""


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not regex.search(pattern.replace(*UNPAIRED), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _any_case(_: Any, values: Sequence[str], value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and value.lower() not in {one.lower() for one in values}:
        yield ValidationError(f"{value!r} is no value of it")


_extend: Any = validators.extend  # not typed
Form = _extend(Draft7Validator, {"pattern": _pattern, "enumCaseInsensitive": _any_case})


@dataclass(frozen=True, eq=False)
class ResourceType:
    """One type by its schema document."""

    document: Mapping[str, Any]

    @cached_property
    def identifier(self) -> tuple[Steps, ...]:
        return self._paths("primaryIdentifier")

    @cached_property
    def read_only(self) -> tuple[Steps, ...]:
        return self._paths("readOnlyProperties")

    @cached_property
    def write_only(self) -> tuple[Steps, ...]:
        return self._paths("writeOnlyProperties")

    @cached_property
    def create_only(self) -> tuple[Steps, ...]:
        return self._paths("createOnlyProperties")

    @cached_property
    def whole(self) -> Any:
        """The validator of what is sent, which is all that AWS demands."""
        kept = ("properties", "definitions", "required", "oneOf", "anyOf", "allOf", "additionalProperties")
        return Form({"type": "object", **{key: self.document[key] for key in kept if key in self.document}})

    @cached_property
    def shown(self) -> Any:
        """The validator of what a read shows: what may be declared together, it does not say."""
        kept = ("properties", "definitions", "required", "additionalProperties")
        return Form({"type": "object", **{key: self.document[key] for key in kept if key in self.document}})

    def faults(self, validator: Any, model: Any, said: Said, without: Sequence[Steps]) -> list[Pair]:
        """What is wrong with the properties of a resource; what stands at ``without`` need not be there."""
        absent = {".".join("[]" if step == "*" else step for step in steps) for steps in without}
        found = {pair for error in validator.iter_errors(model) for pair in said(error)}
        return sorted(pair for pair in found if not (pair[1] == "missing" and _is_absent(pair[0], absent)))

    def _paths(self, name: str) -> tuple[Steps, ...]:
        found = (tuple(one.removeprefix("/properties/").split("/")) for one in self.document.get(name) or ())
        return tuple(tuple(step for step in steps if step != "properties") for steps in found)


def _is_absent(where: str, absent: set[str]) -> bool:
    """Whether it stands there, in something that stands there, or holds nothing else."""
    parts = where.split(".")
    inside = any(".".join(parts[:length]) in absent for length in range(1, len(parts) + 1))
    return inside or any(one.startswith(f"{where}.") for one in absent)


@cache
def _published() -> Mapping[str, Any]:
    """Every published schema, by the name of its type."""
    folder = resources.files("cfnlint.data").joinpath("schemas", "resources")
    files = (one for one in folder.iterdir() if one.name.endswith(".json"))
    documents = (json.loads(one.read_text(encoding="utf-8")) for one in files)
    return {one["typeName"]: one for one in documents}


class ResourceTypes:
    """All types there are: AWS's, and those that an account described."""

    def __init__(self) -> None:
        self._found: dict[str, ResourceType] = {}

    def learn(self, text: str) -> None:
        """Note a type that ``DescribeType`` shows; of AWS's own, cfn-lint's word counts."""
        document = json.loads(text)
        if self.find(document["typeName"]) is None:
            self._found[document["typeName"]] = ResourceType(document)

    def find(self, name: str) -> ResourceType | None:
        """Return the type of that name; None where there is none."""
        if name not in self._found and name in _published():
            self._found[name] = ResourceType(_published()[name])
        return self._found.get(name)

    # --- requests

    def wrong_in_request(self, operation: str, sent: Mapping[str, Any], before: str | None, said: Said) -> list[Pair]:
        """What AWS would not understand in a call's own documents. ``before``: the properties that were read last."""
        if "TypeName" not in sent:
            return []
        found = self.find(sent["TypeName"])
        if found is None:
            return [("TypeName", "no such type")]
        if operation == "CreateResource":
            return list(_in_desired(found, sent["DesiredState"], said))
        if operation == "UpdateResource":
            return list(_in_patch(found, sent["PatchDocument"], before, said))
        if operation == "ListResources" and sent.get("ResourceModel"):
            model = _read(sent["ResourceModel"])
            extra = set(model) - set(found.document["properties"]) if model is not None else set()
            return [(f"ResourceModel.{name}", "unknown field") for name in sorted(extra)] or _no_object(
                "ResourceModel", model
            )
        return []

    # --- answers

    def wrong_in_answer(self, sent: Mapping[str, Any], answer: Mapping[str, Any], said: Said) -> Iterator[Pair]:
        """What AWS would not show of a resource."""
        one = answer.get("ResourceDescription")
        if one is not None:
            yield from self._shown("ResourceDescription", sent["TypeName"], one, said, is_whole=True)
        for one in answer.get("ResourceDescriptions", ()):
            yield from self._shown("ResourceDescriptions.[]", sent["TypeName"], one, said, is_whole=False)
        for event in (answer.get("ProgressEvent"), *answer.get("ResourceRequestStatusSummaries", ())):
            if event is not None and event.get("ResourceModel"):
                model = {"Identifier": event.get("Identifier"), "Properties": event["ResourceModel"]}
                yield from self._shown("ResourceModel", event["TypeName"], model, said, is_whole=False)

    def _shown(
        self, where: str, name: str, description: Mapping[str, Any], said: Said, *, is_whole: bool
    ) -> Iterator[Pair]:
        found = self.find(name)
        if found is None:
            yield "TypeName", "no such type"
            return
        model = _read(description.get("Properties", "{}"))
        if model is None:
            yield from _no_object(f"{where}.Properties", model)
            return
        without = [*found.write_only, *(() if is_whole else ((one,) for one in found.document.get("required", ())))]
        for inner, what in found.faults(found.shown, model, said, without):
            yield f"{where}.Properties {name} {inner}", what
        for steps in found.write_only:
            if any(True for _ in _at(model, steps)):
                yield f"{where}.Properties {name} {'.'.join(steps)}", "is write-only, and never shown"
        parts = [next(_at(model, steps), None) for steps in found.identifier]
        if all(part is not None for part in parts) and description.get("Identifier"):
            wanted = "|".join(str(part) for part in parts)
            if description["Identifier"] != wanted:
                yield f"{where}.Identifier {name}", "is not made of the identifying properties"


def _in_desired(found: ResourceType, text: str, said: Said) -> Iterator[Pair]:
    model = _read(text)
    if model is None:
        yield from _no_object("DesiredState", model)
        return
    name = found.document["typeName"]
    for where, what in found.faults(found.whole, model, said, found.read_only):
        yield f"DesiredState {name} {where}", what
    for steps in found.read_only:
        if any(True for _ in _at(model, steps)):
            yield f"DesiredState {name} {'.'.join(steps)}", "is read-only, and never sent"


def _in_patch(found: ResourceType, text: str, before: str | None, said: Said) -> Iterator[Pair]:
    name = found.document["typeName"]
    try:
        operations: list[dict[str, Any]] = json.loads(text)
        patch = jsonpatch.JsonPatch(operations)
    except (ValueError, TypeError, jsonpatch.InvalidJsonPatch):
        yield "PatchDocument", "is no patch"
        return
    for one in operations:
        if one["op"] != "test":
            yield from ((f"PatchDocument {name} {where}", what) for where, what in _fixed(found, one))
    if before is None:
        return
    model = json.loads(before)
    try:
        after = patch.apply(model)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        yield f"PatchDocument {name}", f"cannot be applied to what was read last: {type(error).__name__}"
        return
    known = set(found.faults(found.whole, model, said, [*found.read_only, *found.write_only]))
    for where, what in found.faults(found.whole, after, said, [*found.read_only, *found.write_only]):
        if (where, what) not in known:
            yield f"PatchDocument {name} {where}", what


def _fixed(found: ResourceType, operation: Mapping[str, Any]) -> Iterator[Pair]:
    """What an operation changes although nobody can."""
    at = [tuple(jsonpatch.JsonPointer(operation[key]).parts) for key in ("path", "from") if key in operation]
    for what, several in (
        ("is read-only, and never sent", found.read_only),
        ("cannot be changed", found.create_only),
    ):
        for steps in several:
            for parts in at:
                is_inside = len(parts) >= len(steps) and _matches(parts[: len(steps)], steps)
                deeper = steps[len(parts) :] if _matches(parts, steps[: len(parts)]) else ()
                if is_inside or (deeper and any(True for _ in _at(operation.get("value"), deeper))):
                    yield ".".join(steps), what


def _matches(parts: Sequence[str], steps: Sequence[str]) -> bool:
    return len(parts) == len(steps) and all(step in ("*", part) for part, step in zip(parts, steps, strict=True))


def _at(value: Any, steps: Sequence[str]) -> Iterator[Any]:
    """All values at a path of a schema document: ``*`` stands for each element, which may also be left out."""
    if not steps:
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _at(one, steps[1:] if steps[0] == "*" else steps)
    elif isinstance(value, Mapping):
        inner = value.values() if steps[0] == "*" else [value[steps[0]]] if steps[0] in value else []
        for one in inner:
            yield from _at(one, steps[1:])


def _read(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _no_object(where: str, model: Any) -> list[Pair]:
    return [(where, "is no JSON object")] if model is None else []
