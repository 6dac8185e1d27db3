"""What the handlers of a type do: create, read, update and delete a resource by its schema.

What is refused before a request is taken raises `AwsError`; what a handler refuses raises `Refused`, and becomes the
failure of the request. Who asks does not matter here.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from fractal_sandbox.aws.answer import AwsError
from fractal_sandbox.aws.cloudcontrol.caseless import duplicate, replaced
from fractal_sandbox.aws.cloudcontrol.patching import PatchError, patched, read_patch
from fractal_sandbox.aws.cloudcontrol.paths import Path, found, pruned, text_of
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, Verb, catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE, Model, with_tags
from fractal_sandbox.aws.cloudcontrol.twins import Refused, find_twin
from fractal_sandbox.aws.cloudcontrol.values import completed, identifier_of

__all__ = ["already_exists", "create", "delete", "desired", "not_found", "retag", "supported", "update", "updated"]


def supported(type_name: str, verb: Verb) -> TypeSchema:
    """Return the schema of a type that can be handled so."""
    schema = catalog().find(type_name)
    if schema is None and not catalog().why_not(type_name):
        raise AwsError("TypeNotFoundException", f"The type '{type_name}' cannot be found.")
    if schema is None or not schema.can(verb):
        message = f"Resource type {type_name} does not support {verb.upper()} action"
        raise AwsError("UnsupportedActionException", message)
    return schema


def not_found(schema: TypeSchema, identifier: str) -> AwsError:
    return AwsError(
        "ResourceNotFoundException", f"Resource of type '{schema.name}' with identifier '{identifier}' was not found."
    )


def desired(schema: TypeSchema, text: str) -> Model:
    """Read the state that a creation wants; raises where it does not fit the schema."""
    model = _object(text)
    given = [text_of(path) for path in schema.read_only if next(found(model, path), None) is not None]
    if given:
        raise _invalid(f"#: readOnlyProperties [{', '.join(given)}] cannot be specified")
    _check(schema, model)
    return model


def create(schema: TypeSchema, model: Model, region: str) -> str:
    """Make a resource; return its identifier."""
    identifier = identifier_of(schema, model)
    if identifier and STORE.find(schema, identifier, region) is not None:
        raise already_exists(schema, identifier)
    if duplicate(schema, model):
        message = "Duplicate tag keys found. Please note that Tag keys are case insensitive."
        raise Refused("InvalidRequest", message)
    twin = find_twin(schema.name)
    known = model if twin is None else twin.create(model, region)
    whole = completed(schema, known, region)
    identifier = identifier_of(schema, whole)
    STORE.keep(schema, identifier, region, whole)
    return identifier


def already_exists(schema: TypeSchema, identifier: str) -> Refused:
    return Refused("AlreadyExists", f"Resource of type '{schema.name}' with identifier '{identifier}' already exists.")


def updated(schema: TypeSchema, shown: Model, document: str) -> Model:
    """Return what is shown of a resource as it will be after a patch; raises what AWS refuses at once."""
    try:
        after = patched(shown, read_patch(document))
    except PatchError as error:
        raise AwsError("ValidationException", str(error)) from None
    if not isinstance(after, dict):
        raise _invalid("#: expected type: JSONObject, found: Null")
    _refuse_change("readOnlyProperties", [path for path in schema.read_only if "*" not in path], shown, after)
    _refuse_change("createOnlyProperties", schema.create_only, shown, after)
    has_fixed_tags = not (schema.document.get("tagging") or {}).get("tagUpdatable", True)
    if has_fixed_tags and shown.get(schema.tag_property) != after.get(schema.tag_property):
        raise AwsError("NotUpdatableException", f"Invalid patch update: the tags of {schema.name} cannot be updated")
    _check(schema, _writable(schema, after), _writable(schema, shown))
    return after


def update(schema: TypeSchema, identifier: str, shown: Model, after: Model, region: str) -> None:
    """Bring a resource to what a patch made of it. What was not patched is left as it is kept, byte for byte."""
    before = STORE.find(schema, identifier, region)
    if before is None:
        raise Refused("NotFound", not_found(schema, identifier).message)
    changed = copy.deepcopy(before)
    for name in shown.keys() | after.keys():
        if name not in after:
            changed.pop(name, None)
        elif shown.get(name) != after[name] or type(shown.get(name)) is not type(after[name]):
            changed[name] = _with_unseen(schema, before.get(name), after[name], name)
    changed = replaced(schema, before, changed)
    twin = find_twin(schema.name)
    if twin is not None:
        twin.update(identifier, before, changed, region)
    STORE.keep(schema, identifier, region, completed(schema, changed, region))


def retag(schema: TypeSchema, identifier: str, tags: Mapping[str, str], region: str) -> None:
    """Give a resource these tags, and no others."""
    before = STORE.find(schema, identifier, region)
    if before is None:
        raise Refused("NotFound", not_found(schema, identifier).message)
    after = replaced(schema, before, with_tags(schema, before, tags))
    twin = find_twin(schema.name)
    if twin is not None:
        twin.update(identifier, before, after, region)
    STORE.keep(schema, identifier, region, after)


def delete(schema: TypeSchema, identifier: str, region: str) -> None:
    """Remove a resource."""
    if STORE.find(schema, identifier, region) is None:
        raise Refused("NotFound", not_found(schema, identifier).message)
    twin = find_twin(schema.name)
    if twin is not None:
        twin.delete(identifier, region)
    STORE.drop(schema, identifier, region)


def _with_unseen(schema: TypeSchema, before: Any, after: Any, name: str) -> Any:
    """Keep what is write-only inside a property that was patched, where its holder is still there."""
    for path in schema.write_only:
        if path[0] == name and len(path) > 1:
            after = _kept_inside(before, after, path[1:])
    return after


def _kept_inside(before: Any, after: Any, path: Path) -> Any:
    if not path:
        return after
    if path[0] == "*" and isinstance(before, list) and isinstance(after, list):
        paired = [_kept_inside(one, other, path[1:]) for one, other in zip(before, after, strict=False)]
        return [*paired, *after[len(paired) :]]
    if not isinstance(before, Mapping) or not isinstance(after, Mapping) or path[0] not in before:
        return after
    if len(path) == 1:
        return {path[0]: before[path[0]], **after}
    if path[0] not in after:
        return after
    return {**after, path[0]: _kept_inside(before[path[0]], after[path[0]], path[1:])}


def _object(text: str) -> Model:
    try:
        model = json.loads(text)
    except ValueError:
        raise AwsError("InvalidRequestException", "DesiredState is not valid JSON") from None
    if not isinstance(model, dict):
        raise _invalid("#: expected type: JSONObject, found: JSONArray")
    return model


def _writable(schema: TypeSchema, model: Mapping[str, Any]) -> Any:
    shown: Any = model
    for path in schema.read_only:
        shown = pruned(shown, path)
    return shown


def _check(schema: TypeSchema, model: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> None:
    """Raise where properties do not fit; what did not fit before a change already is not its fault.

    What has to be there and is only ever written is: it is in no read, so that a patch must bring it.
    """
    from fractal_sandbox.aws.cloudcontrol.validation import broken  # loads a library that only this needs

    lines = broken(schema, model).splitlines()
    if lines and before is not None:
        known = {line for line in broken(schema, before).splitlines() if "required key" not in line}
        lines = [line for line in lines if line not in known]
    if lines:
        raise _invalid("\n".join(lines))


def _invalid(why: str) -> AwsError:
    return AwsError("ValidationException", f"Model validation failed ({why})")


def _refuse_change(kind: str, paths: Iterable[Path], before: Model, after: Model) -> None:
    touched = [text_of(path) for path in paths if _differs(before, after, path)]
    if touched:
        raise AwsError(
            "NotUpdatableException", f"Invalid patch update: {kind} [{', '.join(touched)}] cannot be updated"
        )


def _differs(before: Model, after: Model, path: Path) -> bool:
    """Return whether the values at a path changed; what came or went with the element that holds it did not."""
    one, other = list(found(before, path)), list(found(after, path))
    return one != other and ("*" not in path or len(one) == len(other))
