"""What a writing call of Cloud Control does to which resource, for the monitor: by schema, patch and tags.

Runs before the call, under the cloud's lock, and changes nothing. A part (S25) is checked by its parent, which
`parts` names. What nobody knows is unclassified, and so a violation; what is forbidden is decided elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.answer import Answer
from fractal_sandbox.aws.cloudcontrol.api import model_shown, requests_of
from fractal_sandbox.aws.cloudcontrol.caseless import is_caseless
from fractal_sandbox.aws.cloudcontrol.parts import parts
from fractal_sandbox.aws.cloudcontrol.patching import PatchError, patched, read_patch
from fractal_sandbox.aws.cloudcontrol.refs import named, named_by_tag, names, ref_of, tags_of
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE, Model, tags_in
from fractal_sandbox.aws.descriptors import Ref
from fractal_sandbox.aws.moto_fixes.registry import FixContext
from fractal_sandbox.calls import Call
from fractal_sandbox.monitor import Creation, Touch
from fractal_sandbox.monitor_rules import Change

__all__ = ["LISTED", "WriteEffect", "effect_of", "made"]

LISTED: Final = "cloudcontrol"
"""The kind under which the monitor remembers the names of all that only the tag `Name` distinguishes."""
_MODIFY: Final = Change("modify")


@dataclass(frozen=True)
class WriteEffect:
    """What a call would do; `why_not` says why nobody knows."""

    touches: list[Touch] = field(default_factory=list)
    creation: Creation | None = None
    why_not: str = ""


def effect_of(context: FixContext, call: Call) -> WriteEffect:
    """Return what a writing call would do at this instant."""
    if call.operation == "CancelResourceRequest":
        return _cancelled(context, call)
    schema = catalog().find(str(call.parameters.get("TypeName")))
    if schema is None:
        return WriteEffect(why_not=f"no schema describes {call.parameters.get('TypeName')!r}")
    if _is_repeat(context, call):
        return WriteEffect()
    if call.operation == "CreateResource":
        return _created(schema, call)
    ref = next(iter(named(call)), None)
    if ref is None or call.operation not in ("UpdateResource", "DeleteResource"):
        return WriteEffect(why_not=f"nothing says what {call.operation} does")
    identifier = STORE.primary(schema, str(call.parameters["Identifier"]), call.region)
    model = STORE.find(schema, identifier, call.region)
    if model is None:
        return WriteEffect()  # nothing is there that it could change
    if schema.name in parts():
        return _on_parent(schema, model, call.region)
    tags = STORE.tags(schema, identifier, call.region) or {}
    if call.operation == "DeleteResource":
        return WriteEffect([Touch(str(ref), Change("delete", is_caseless=is_caseless(schema)), tags)])
    caseless = is_caseless(schema)
    changes = (replace(one, is_caseless=caseless) for one in _changes(context, schema, identifier, call))
    return WriteEffect([Touch(str(ref), change, tags) for change in changes])


def made(context: FixContext, call: Call, answer: Answer) -> list[Ref]:
    """Return the resource that a request has just made: whoever made it knows its tags."""
    if call.operation != "CreateResource" or not answer.is_success:
        return []
    token = str(json.loads(answer.body)["ProgressEvent"]["RequestToken"])
    found = requests_of(context).find(token, accounts.current(), call.region)
    if found is None or found.outcome != "SUCCESS":
        return []
    return [ref_of(found.type_name, found.identifier, found.region)]


def _cancelled(context: FixContext, call: Call) -> WriteEffect:
    """What a request under way is about is changed by its end."""
    found = requests_of(context).find(str(call.parameters.get("RequestToken")), accounts.current(), call.region)
    if found is None or not found.identifier:
        return WriteEffect()
    ref = ref_of(found.type_name, found.identifier, found.region)
    return WriteEffect([Touch(str(ref), _MODIFY, tags_of(Ref(found.type_name, found.identifier, found.region)) or {})])


def _is_repeat(context: FixContext, call: Call) -> bool:
    token = str(call.parameters.get("ClientToken") or "")
    return requests_of(context).of_client(token, accounts.current(), call.region) is not None


def _created(schema: TypeSchema, call: Call) -> WriteEffect:
    try:
        model = json.loads(call.parameters["DesiredState"])
    except ValueError:
        return WriteEffect()  # refused: nothing is made
    if not isinstance(model, dict):
        return WriteEffect()
    if schema.name in parts():
        return _on_parent(schema, model, call.region)
    tags = tags_in(schema, model) or _tags_beside(model)
    name = (tags.get("Name", ""), schema.name)
    is_by_tag = named_by_tag(schema) and bool(name[0])
    twins = [ref for ref, other in names(call.region).items() if other == name] if is_by_tag else []
    kind = LISTED if is_by_tag else schema.name
    return WriteEffect(
        creation=Creation(kind, call.region, name, tags, tuple(twins), is_bare=not schema.has_tags_at_creation)
    )


def _tags_beside(model: Mapping[str, Any]) -> dict[str, str]:
    """The tags of a creation whose type says that it has none, and yet has a place for them (launch templates)."""
    specifications = model.get("TagSpecifications")
    if not isinstance(specifications, list):
        return {}
    pairs = [tag for one in specifications if isinstance(one, dict) for tag in one.get("Tags") or []]
    return {str(tag.get("Key")): str(tag.get("Value") or "") for tag in pairs if isinstance(tag, dict)}


def _changes(context: FixContext, schema: TypeSchema, identifier: str, call: Call) -> list[Change]:
    """Return what a patch changes: properties, single tags, or all of them without reading what they were."""
    shown = model_shown(context, schema, identifier, call.region)
    assert shown is not None  # it was found right before
    try:
        operations = read_patch(call.parameters["PatchDocument"])
        after = patched(shown, operations)
    except PatchError:
        return [_MODIFY]  # refused now; what the agent meant is checked all the same
    if not isinstance(after, dict):
        return [_MODIFY]
    tag_property = schema.tag_property
    rest = [name for name in shown.keys() | after.keys() if name != tag_property and shown.get(name) != after.get(name)]
    found = [_MODIFY] if rest else []
    before_tags, after_tags = tags_in(schema, shown), tags_in(schema, after)
    if before_tags == after_tags:
        return found or [_MODIFY]
    if _is_blind(operations, tag_property):
        return [*found, Change("replace-tags")]
    added = {key: value for key, value in after_tags.items() if before_tags.get(key) != value}
    removed: dict[str, str | None] = {key: value for key, value in before_tags.items() if key not in after_tags}
    return [*found, Change("tag", added=added, removed=removed)]


def _is_blind(operations: list[dict[str, Any]], tag_property: str) -> bool:
    """Return whether a patch writes the whole set of tags with no test of them before."""
    for one in operations:
        if one["op"] == "test" and (str(one["path"]) + "/").startswith(f"/{tag_property}/"):
            return False
        if one["op"] != "test" and one["path"] in (f"/{tag_property}", ""):
            return True
    return False


# --- parts


def _on_parent(schema: TypeSchema, model: Model, region: str) -> WriteEffect:
    """A part is written only while its parent may be."""
    part = parts()[schema.name]
    value = model.get(part.property)
    parent = catalog().find(part.parent)
    if parent is None or not isinstance(value, str):
        return WriteEffect(why_not=f"{schema.name} does not name the {part.parent} that it is a part of")
    identifier = parent_identifier(parent, value, part.holds, region)
    if identifier is None:
        return WriteEffect()  # there is no such parent: the cloud refuses
    ref = ref_of(parent.name, identifier, region)
    return WriteEffect([Touch(str(ref), _MODIFY, STORE.tags(parent, identifier, region) or {})])


def parent_identifier(parent: TypeSchema, value: str, holds: tuple[str, ...], region: str) -> str | None:
    """Return the identifier of the resource that a part names by one of several properties; None if there is none."""
    if STORE.tags(parent, value, region) is not None:
        return value
    for identifier, model in STORE.all(parent, region):
        if any(model.get(name) == value for name in holds):
            return identifier
    return None
