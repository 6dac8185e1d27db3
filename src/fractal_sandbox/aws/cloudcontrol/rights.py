"""What the handlers of a type need, as whoever called: the permissions that its schema names, on what they are about.

An action of the resource's own service is asked for on the resource, with its tags and those of the request; one of
another service, or one that lists, on everything. What a handler needs only for what nobody asked for here (a key, a
role, tags that stay) is left out, as AWS asks for it only then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fractal_sandbox.aws.cloudcontrol.refs import named
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, Verb, catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE, tags_in
from fractal_sandbox.aws.cloudcontrol.values import arn_of
from fractal_sandbox.calls import Call

__all__ = ["HandlerAct", "handler_asks", "read_asks"]

_Asked: TypeAlias = tuple[str, str, Mapping[str, str | tuple[str, ...]]]
_TAGGING: Final = re.compile(r":(Tag|Untag|AddTags|RemoveTags|CreateTags|DeleteTags|AddTo.*Tags|PutBucketTagging)")
_REMOVES: Final = re.compile(r":(Untag|RemoveTags|DeleteTags)")
_ROLE: Final = re.compile(r"arn:[^:]+:iam::\d*:role/.+")


@dataclass(frozen=True)
class HandlerAct:
    """What a handler is about to do: a verb, on a resource before and after. Either is empty where there is none."""

    schema: TypeSchema
    verb: Verb
    identifier: str
    region: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def arn(self) -> str:
        return arn_of(self.schema, self.identifier or "*", self.before or self.after, self.region)


def read_asks(call: Call) -> Iterator[_Asked]:
    """Return what the handler of a reading call asks for."""
    schema = catalog().find(str(call.parameters.get("TypeName")))
    verbs: dict[str, Verb] = {"GetResource": "read", "ListResources": "list"}
    if schema is None or call.operation not in verbs:
        return
    verb = verbs[call.operation]
    ref = next(iter(named(call)), None)
    identifier = ref.id if ref is not None else ""
    model = (STORE.find(schema, identifier, call.region) if identifier else None) or {}
    yield from handler_asks(HandlerAct(schema, verb, identifier, call.region, model, model))


def handler_asks(act: HandlerAct) -> Iterator[_Asked]:
    """Return action, resource and context of all that a handler asks for."""
    held, wanted = tags_in(act.schema, act.before), tags_in(act.schema, act.after)
    arn = act.arn
    own = arn.split(":")[2]
    new = {key: value for key, value in wanted.items() if held.get(key) != value}
    gone = tuple(key for key in held if key not in wanted) if act.verb == "update" else ()
    context: dict[str, str | tuple[str, ...]] = {f"aws:ResourceTag/{key}": value for key, value in held.items()}
    requested = {**context, **{f"aws:RequestTag/{key}": value for key, value in new.items()}}
    for action in act.schema.permissions(act.verb):
        service, _, name = action.partition(":")
        if action == "iam:PassRole":
            for role in sorted(set(_roles(act.after))):
                yield action, role, {"iam:PassedToService": f"{own}.amazonaws.com"}
        elif _TAGGING.search(action):
            keys = gone if _REMOVES.search(action) else tuple(new)
            if keys:
                yield action, arn if service == own else "*", {**requested, "aws:TagKeys": keys}
        elif not _is_idle(action, act.after):
            is_about_it = service == own and not name.startswith("List")
            tagged = {**requested, "aws:TagKeys": tuple(new)} if act.verb == "create" else context
            yield action, arn if is_about_it else "*", tagged if is_about_it else {}


def _is_idle(action: str, model: Mapping[str, Any]) -> bool:
    """Return whether a permission is for a key or a service's own role, and nothing here needs one."""
    if action.startswith("kms:"):
        return not any("kms" in name.lower() for name in _names(model))
    return action == "iam:CreateServiceLinkedRole"


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _names(inner)
    elif isinstance(value, list):
        for one in value:
            yield from _names(one)


def _roles(value: Any) -> Iterator[str]:
    if isinstance(value, str) and _ROLE.fullmatch(value):
        yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _roles(one)
