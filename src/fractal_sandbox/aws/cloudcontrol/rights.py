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

from fractal_sandbox.aws.cloudcontrol.identity_calls import identity_calls, is_of_iam
from fractal_sandbox.aws.cloudcontrol.refs import named
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, Verb, catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE, tags_in
from fractal_sandbox.aws.cloudcontrol.values import arn_of
from fractal_sandbox.aws.identities import asked_of_iam, passed_roles
from fractal_sandbox.calls import Call, Origin

__all__ = ["HandlerAct", "handler_asks", "read_asks"]

_Asked: TypeAlias = tuple[str, str, Mapping[str, str | tuple[str, ...]]]
_TAGGING: Final = re.compile(r":(Tag|Untag|AddTags|RemoveTags|CreateTags|DeleteTags|AddTo.*Tags|PutBucketTagging)")
_READS: Final = re.compile(r"(Get|List|Describe|Head|BatchGet)")
_REMOVES: Final = re.compile(r":(Untag|RemoveTags|DeleteTags)")
_ACTION: Final = re.compile(r"[A-Za-z0-9-]+:[A-Za-z0-9*]+")
# Handlers call services with forward access sessions of the caller, as CloudFormation's do:
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/fas-requests-and-permission-evaluation.html
_ON_BEHALF: Final = {"aws:ViaAWSService": "true"}
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
    """Return action, resource and context of all that a handler asks for, on behalf of whoever called."""
    yield from ((action, resource, {**context, **_ON_BEHALF}) for action, resource, context in _asks(act))


def _asks(act: HandlerAct) -> Iterator[_Asked]:
    if is_of_iam(act.schema):
        yield from _of_iam(act)
        return
    held, wanted = tags_in(act.schema, act.before), tags_in(act.schema, act.after)
    arn = act.arn
    own = arn.split(":")[2]
    new = {key: value for key, value in wanted.items() if held.get(key) != value}
    gone = tuple(key for key in held if key not in wanted) if act.verb == "update" else ()
    context: dict[str, str | tuple[str, ...]] = {f"aws:ResourceTag/{key}": value for key, value in held.items()}
    requested = {**context, **{f"aws:RequestTag/{key}": value for key, value in new.items()}}
    is_retagged = act.verb == "update" and _changed(act) == {act.schema.tag_property}
    for action in act.schema.permissions(act.verb):
        service, _, name = action.partition(":")
        if not _ACTION.fullmatch(action):
            continue  # no action of IAM's: no policy can name it, and nothing asks for it
        if action == "iam:PassRole":
            for role in sorted(set(_roles(act.after))):
                yield action, role, {"iam:PassedToService": f"{own}.amazonaws.com"}
        elif _TAGGING.search(action):
            keys = gone if _REMOVES.search(action) else tuple(new)
            if keys:
                yield action, arn if service == own else "*", {**requested, "aws:TagKeys": keys}
        elif is_retagged and not _READS.match(name):
            continue  # a patch of nothing but tags changes nothing else
        elif not _is_idle(action, act.after):
            is_about_it = service == own and not name.startswith("List")
            tagged = {**requested, "aws:TagKeys": tuple(new)} if act.verb == "create" else context
            yield (action, arn, tagged) if is_about_it else (action, "*", {})


def _changed(act: HandlerAct) -> set[str]:
    """The properties that a patch changes; what is only written, and said again, counts too."""
    return {one for one in {*act.before, *act.after} if act.before.get(one) != act.after.get(one)}


def _of_iam(act: HandlerAct) -> Iterator[_Asked]:
    """What IAM asks for, call by call. What is being made has the path, the boundary and the tags it is to have."""
    new: _Asked | None = None
    for permission in act.schema.permissions(act.verb):
        service, _, operation = permission.partition(":")
        for parameters in identity_calls(act, operation) if service == "iam" else [{}]:
            call = _call(act, service, operation, parameters)
            for action, arn, context in asked_of_iam(call):
                if operation.startswith("Create") and act.verb == "create" and new is None:
                    new = _as_it_will_be(arn, context)
                is_about_new = new is not None and _bare(arn) == _bare(new[1]) and not operation.startswith("Create")
                if action == "iam:PassRole":
                    continue  # of the role that is passed, below
                if new is not None and is_about_new:
                    beside = {key: value for key, value in context.items() if key == "iam:PolicyARN"}
                    yield action, new[1], {**new[2], **beside}
                else:
                    yield action, arn, context
            for passed_to, role in passed_roles(call) if operation == "AddRoleToInstanceProfile" else ():
                yield "iam:PassRole", role, {"iam:PassedToService": passed_to}


def _call(act: HandlerAct, service: str, operation: str, parameters: dict[str, Any]) -> Call:
    """A call that a handler makes. Who it is for does not matter here: the caller's rights are evaluated elsewhere."""
    return Call(
        actor="agent",
        access_key="",
        service=service,
        operation=operation,
        region=act.region,
        parameters=parameters,
        is_write=False,
        origin=Origin(),
        user_agent="",
    )


def _as_it_will_be(arn: str, context: Mapping[str, str | tuple[str, ...]]) -> _Asked:
    """What is being made, as the calls after the one that makes it find it."""
    held = {key.replace("RequestTag", "ResourceTag"): value for key, value in context.items() if key != "aws:TagKeys"}
    return "", arn, held


def _bare(arn: str) -> str:
    """An ARN of IAM without its path: as long as it is not there, it is asked for by its name alone."""
    head, _, rest = arn.partition("/")
    return f"{head}/{rest.rpartition('/')[2]}"


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
