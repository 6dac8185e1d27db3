"""What AWS calls do to that which no offer makes: IAM users and roles of links, and secrets.

Only the mark of a link speaks for what links make, and for a user or a role the path that all of them have. A secret
without the mark is one that was generated for a component, and the three tags speak for it. Everything else in IAM and
in Secrets Manager is people's: it is in no table, so that a write of it is a violation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from fractal_sandbox.aws.resources import backend
from fractal_sandbox.calls import Call
from fractal_sandbox.monitor_rules import LINK, Change

__all__ = ["LinkEffect", "link_effect", "shown_secret"]

PATH: Final = "/fractal-cloud/"
_USER, _ROLE, _SECRET = "UserName", "RoleName", "SecretId"
_CREATES: Final = {
    ("iam", "CreateUser"): _USER,
    ("iam", "CreateRole"): _ROLE,
    ("secretsmanager", "CreateSecret"): _SECRET,
}
_MODIFIES: Final = {
    ("iam", "PutUserPolicy"): _USER,
    ("iam", "DeleteUserPolicy"): _USER,
    ("iam", "CreateAccessKey"): _USER,
    ("iam", "DeleteAccessKey"): _USER,
    ("iam", "PutRolePolicy"): _ROLE,
    ("iam", "DeleteRolePolicy"): _ROLE,
    ("secretsmanager", "PutSecretValue"): _SECRET,
}
_DELETES: Final = {
    ("iam", "DeleteUser"): _USER,
    ("iam", "DeleteRole"): _ROLE,
    ("secretsmanager", "DeleteSecret"): _SECRET,
}
_KINDS: Final = {_USER: "iam-user", _ROLE: "iam-role", _SECRET: "secret"}


class LinkEffect(NamedTuple):
    """What a call does to one such resource. `change` is None where it makes it; `marks` is what speaks for it, at this
    instant, or in the call; None where there is no such resource."""

    kind: str
    id: str
    change: Change | None
    marks: Mapping[str, str] | None
    reason: str = ""

    @property
    def is_of_link(self) -> bool:
        """Whether only the mark of a link can speak for it: always where a link writes; for a secret that no link
        writes and that has no mark, the three tags do.
        """
        return self.kind != _KINDS[_SECRET] or self.reason == "link" or LINK in (self.marks or {})

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


def shown_secret(call: Call) -> tuple[str, Mapping[str, str]] | None:
    """Return a secret whose tags a call shows, under the name that its changes are checked by, and its tags."""
    name = str(call.parameters.get(_SECRET) or "")
    if (call.service, call.operation) != ("secretsmanager", "DescribeSecret"):
        return None
    marks = _marks_of(_SECRET, name, call.region)
    return None if marks is None else (f"{_KINDS[_SECRET]} {name}", marks)


def link_effect(call: Call) -> LinkEffect | None:
    """Return what a call does to what links make; None where the tables do not know it, or it names nothing."""
    operation = (call.service, call.operation)
    named = _CREATES.get(operation)
    if named is not None:
        name = str(call.parameters.get("Name" if named == _SECRET else named) or "")
        marks = _marks(call.parameters.get("Tags"), _SECRET if named == _SECRET else call.parameters.get("Path"))
        return LinkEffect(_KINDS[named], name, None, marks, call.origin.reason)
    change = Change("modify") if operation in _MODIFIES else Change("delete")
    named = _MODIFIES.get(operation) or _DELETES.get(operation)
    name = str(call.parameters.get(named or "") or "")
    if named is None or not name:  # IAM takes the caller itself where nobody is named
        return None
    return LinkEffect(_KINDS[named], name, change, _marks_of(named, name, call.region), call.origin.reason)


def _marks_of(named: str, name: str, region: str) -> Mapping[str, str] | None:
    """What speaks for a resource at this instant; None where there is none."""
    if named == _SECRET:
        found: Any = backend("secretsmanager", region).secrets.get(name)
        return None if found is None else _marks(found.tags, _SECRET)
    iam = backend("iam", "aws")
    if named == _USER:
        found = iam.users.get(name)
        return None if found is None else _marks(iam.tagger.list_tags_for_resource(found.arn)["Tags"], found.path)
    found = next((role for role in list(iam.roles.values()) if role.name == name), None)
    return None if found is None else _marks(found.tags, found.path)


def _marks(tags: Any, path: str | None) -> dict[str, str]:
    if path != _SECRET and not str(path or "").startswith(PATH):
        return {}
    listed = list(tags.values()) if isinstance(tags, Mapping) else list(tags or ())
    found = {str(one["Key"]): str(one["Value"]) for one in listed}
    if path == _SECRET and LINK not in found:
        return found
    return {LINK: found[LINK]} if LINK in found else {}
