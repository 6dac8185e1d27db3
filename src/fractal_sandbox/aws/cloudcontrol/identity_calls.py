"""The calls of IAM that the handlers of IAM's own types make as whoever called: only those that a change needs.

What each of them asks for, and of whom, is IAM's own matter (`identities`). A permission that a schema names and that
no rule here knows is asked for on everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeAlias

from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, Verb
from fractal_sandbox.aws.cloudcontrol.store import tags_in

__all__ = ["Act", "identity_calls", "is_of_iam"]

Parameters: TypeAlias = dict[str, Any]
_HOLDERS: Final = {"AWS::IAM::Role": "Role", "AWS::IAM::User": "User"}
_NAMED: Final = {"Role": "RoleName", "User": "UserName", "Group": "GroupName"}
_KNOWN: Final = frozenset(
    f"AWS::IAM::{one}" for one in ("InstanceProfile", "ManagedPolicy", "Role", "RolePolicy", "User", "UserPolicy")
)


class Act(Protocol):
    """What a handler is about to do, as far as it matters here."""

    @property
    def schema(self) -> TypeSchema: ...

    @property
    def verb(self) -> Verb: ...

    @property
    def identifier(self) -> str: ...

    @property
    def before(self) -> Mapping[str, Any]: ...

    @property
    def after(self) -> Mapping[str, Any]: ...


def is_of_iam(schema: TypeSchema) -> bool:
    """Return whether it is known here what the handlers of a type call."""
    return schema.name in _KNOWN


def identity_calls(act: Act, operation: str) -> Iterator[Parameters]:
    """Return the parameters of every call of an operation that a handler makes; none where the change needs none."""
    kind = act.schema.name
    if kind in _HOLDERS:
        yield from _of_holder(act, operation, _HOLDERS[kind])
    elif kind == "AWS::IAM::ManagedPolicy":
        yield from _of_policy(act, operation)
    elif kind == "AWS::IAM::InstanceProfile":
        yield from _of_profile(act, operation)
    else:
        noun = kind.rpartition("::")[2].removesuffix("Policy")
        yield {_NAMED[noun]: _one(act, _NAMED[noun]), "PolicyName": _one(act, "PolicyName")}


def _of_holder(act: Act, operation: str, noun: str) -> Iterator[Parameters]:
    """The calls about a role or a user: itself, its inline and its attached policies, its boundary and its tags."""
    name = {_NAMED[noun]: act.identifier or str(act.after.get(_NAMED[noun]) or "*")}
    inline, attached = _Inline(act), _Listed(act, "ManagedPolicyArns")
    tags = {key: value for key, value in tags_in(act.schema, act.after).items() if _tags(act).get(key) != value}
    bound = act.after.get("PermissionsBoundary")
    is_bound_anew = bound != act.before.get("PermissionsBoundary")
    rules: dict[str, Callable[[], Iterable[Parameters]]] = {
        f"Create{noun}": lambda: [_created(act, name, tags, bound)],
        f"Put{noun}Policy": lambda: ({**name, "PolicyName": one} for one in inline.written),
        f"Delete{noun}Policy": lambda: ({**name, "PolicyName": one} for one in inline.gone),
        f"Attach{noun}Policy": lambda: ({**name, "PolicyArn": one} for one in attached.new),
        f"Detach{noun}Policy": lambda: ({**name, "PolicyArn": one} for one in attached.gone),
        f"Put{noun}PermissionsBoundary": lambda: (
            [{**name, "PermissionsBoundary": bound}] * (is_bound_anew and bool(bound))
        ),
        f"Delete{noun}PermissionsBoundary": lambda: [name] * (act.verb == "update" and is_bound_anew and not bound),
        f"Tag{noun}": lambda: [{**name, "Tags": _pairs(tags)}] * (act.verb == "update" and bool(tags)),
        f"Untag{noun}": lambda: (
            [{**name, "TagKeys": _gone_tags(act)}] * (act.verb == "update" and bool(_gone_tags(act)))
        ),
        f"Update{noun}": lambda: [name] * _changes(act, "Description", "MaxSessionDuration"),
        "UpdateRoleDescription": lambda: [name] * _changes(act, "Description"),
        "UpdateAssumeRolePolicy": lambda: [name] * _changes(act, "AssumeRolePolicyDocument"),
        "CreateLoginProfile": lambda: (
            [name] * (not act.before.get("LoginProfile") and bool(act.after.get("LoginProfile")))
        ),
        "UpdateLoginProfile": lambda: [name] * (bool(act.before.get("LoginProfile")) and _changes(act, "LoginProfile")),
        "AddUserToGroup": lambda: ({**name, "GroupName": one} for one in _Listed(act, "Groups").new),
        "RemoveUserFromGroup": lambda: ({**name, "GroupName": one} for one in _Listed(act, "Groups").gone),
    }
    wanted = rules.get(operation)
    yield from wanted() if wanted is not None else [name]


def _of_policy(act: Act, operation: str) -> Iterator[Parameters]:
    """The calls about a managed policy: itself, its versions, and whom it is attached to."""
    arn = {"PolicyArn": act.identifier or "*"}
    for noun, key in _NAMED.items():
        held = _Listed(act, f"{noun}s")
        if operation == f"Attach{noun}Policy":
            yield from ({**arn, key: one} for one in held.new)
            return
        if operation == f"Detach{noun}Policy":
            yield from ({**arn, key: one} for one in held.gone)
            return
    if operation == "CreatePolicy":
        name = act.after.get("ManagedPolicyName") or "*"
        yield {"PolicyName": name, "Path": act.after.get("Path")}
    elif operation in ("CreatePolicyVersion", "DeletePolicyVersion") and act.verb == "update":
        yield from [arn] * _changes(act, "PolicyDocument")
    else:
        yield arn


def _of_profile(act: Act, operation: str) -> Iterator[Parameters]:
    """The calls about an instance profile: itself, and the role in it."""
    name = {"InstanceProfileName": act.identifier or str(act.after.get("InstanceProfileName") or "*")}
    held = _Listed(act, "Roles")
    if operation == "CreateInstanceProfile":
        yield {**name, "Path": act.after.get("Path")}
    elif operation in ("AddRoleToInstanceProfile", "PassRole"):
        yield from ({**name, "RoleName": one} for one in held.new)
    elif operation == "RemoveRoleFromInstanceProfile":
        yield from ({**name, "RoleName": one} for one in held.gone)
    else:
        yield name


class _Listed:
    """What comes and what goes in a list of names."""

    def __init__(self, act: Act, name: str) -> None:
        before, after = act.before.get(name) or [], act.after.get(name) or []
        self.new = [one for one in after if one not in before]
        self.gone = [one for one in before if one not in after]


class _Inline:
    """Inline policies: those that are written, and those that go."""

    def __init__(self, act: Act) -> None:
        before = {one.get("PolicyName"): one for one in act.before.get("Policies") or []}
        after = {one.get("PolicyName"): one for one in act.after.get("Policies") or []}
        self.written = [name for name, one in after.items() if before.get(name) != one]
        self.gone = [name for name in before if name not in after]


def _created(act: Act, name: Parameters, tags: Mapping[str, str], bound: Any) -> Parameters:
    return {**name, "Path": act.after.get("Path"), "PermissionsBoundary": bound, "Tags": _pairs(tags)}


def _changes(act: Act, *names: str) -> bool:
    return act.verb == "update" and any(act.before.get(one) != act.after.get(one) for one in names)


def _tags(act: Act) -> dict[str, str]:
    return tags_in(act.schema, act.before)


def _gone_tags(act: Act) -> list[str]:
    kept = tags_in(act.schema, act.after)
    return [key for key in _tags(act) if key not in kept]


def _pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _one(act: Act, name: str) -> str:
    """A property that is part of the identifier."""
    names = [path[-1] for path in act.schema.identifier]
    parts = dict(zip(names, act.identifier.split("|"), strict=False))
    return str(parts.get(name) or act.after.get(name) or act.before.get(name) or "*")
