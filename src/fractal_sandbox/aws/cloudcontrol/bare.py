"""What the agent's own calls made without tags, since its type takes none in the create call: it may finish that (S17).

Only the component for which it was made may, only once, and only while that very resource is there. What the tags of a
creation must be is decided in `monitor_rules.py`.
"""

from __future__ import annotations

import json
from typing import Final

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.answer import Answer
from fractal_sandbox.aws.cloudcontrol.api import requests_of
from fractal_sandbox.aws.cloudcontrol.refs import ref_of, tags_of
from fractal_sandbox.aws.cloudcontrol.schemas import catalog
from fractal_sandbox.aws.cloudcontrol.store import tags_in
from fractal_sandbox.aws.descriptors import Ref
from fractal_sandbox.aws.moto_fixes.registry import FixContext
from fractal_sandbox.calls import Call

__all__ = ["finishes", "note"]

_MEMORY: Final = "creations without tags"
_Made = dict[tuple[str, str], tuple[Ref, str, str]]


def finishes(context: FixContext, call: Call, ref: Ref) -> bool:
    """Return whether a write of tags ends the creation of a resource by the same component."""
    _, *maker = _made(context).get((ref.kind, ref.id), (ref, "", ""))
    return maker == [call.origin.live_system, call.origin.component] and "" not in maker


def note(context: FixContext, call: Call, answer: Answer, written: list[Ref]) -> None:
    """Remember what a call made without tags, and forget what it tagged or what is gone; whoever called."""
    made = _made(context)
    if call.is_write and answer.is_success:
        for ref in written:
            made.pop((ref.kind, ref.id), None)
        for key, (ref, *_) in list(made.items()):
            if call.operation.startswith("Delete") and tags_of(ref) is None:
                del made[key]
    if call.actor != "agent" or call.operation != "CreateResource" or not answer.is_success:
        return
    found = requests_of(context).find(_token(answer), accounts.current(), call.region)
    schema = catalog().find(str(call.parameters.get("TypeName")))
    if found is None or schema is None or schema.has_tags_at_creation or not found.identifier:
        return
    if not tags_in(schema, json.loads(call.parameters["DesiredState"])):
        ref = ref_of(schema.name, found.identifier, call.region)
        made[(ref.kind, ref.id)] = ref, call.origin.live_system, call.origin.component


def _made(context: FixContext) -> _Made:
    found: _Made = context.memory.setdefault(_MEMORY, {})
    return found


def _token(answer: Answer) -> str:
    return str(json.loads(answer.body)["ProgressEvent"]["RequestToken"])
