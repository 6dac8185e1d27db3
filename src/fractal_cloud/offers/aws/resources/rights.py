"""The rights that types of AWS need, as statements of IAM: drawn from the permissions that their schemas name.

They lead to no more rights (A7): no data of other services, no identities without the boundary or outside of the path
that the product has for them, no role but those that are passed on request. What is left out where a handler names it
is never needed for what the protocol does; where it would be, AWS's refusal says which right is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.model.tags import MANAGED_BY, OURS
from fractal_cloud.model.wording import closest
from fractal_cloud.offers.aws.link_storage import BOUNDARY, PATH
from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.aws.resources.schema import AwsType
from fractal_cloud.offers.aws.resources.tables.rights import (
    BOUNDED,
    BY_SERVICES_ONLY,
    IN_PATH,
    NEVER,
    NEVER_SERVICES,
    PASSED_TO,
    TAGS_DECIDE,
)
from fractal_cloud.offers.aws.resources.tables.tagging import actions

Statement = dict[str, Any]

_CLOUD_CONTROL: Final = tuple(
    f"cloudformation:{verb}"
    for verb in (
        "CreateResource",
        "DeleteResource",
        "DescribeType",
        "GetResource",
        "GetResourceRequestStatus",
        "ListResourceRequests",
        "ListResources",
        "UpdateResource",
    )
)
_TAGGING: Final = ("tag:GetResources", "tag:TagResources", "tag:UntagResources")
_READS: Final = re.compile(
    r":(?:GET|HEAD|Get|List|Describe|Head|Lookup|View|Check|Search|Query|Preview|Validate|BatchGet)"
)
_TAGS: Final = re.compile(r":(?:\w*Tag(?:s|Resource|Queue|Role|User|Policy|LogGroup|InstanceProfile)?|AddTags\w*)$")
_ACTION: Final = re.compile(r"[A-Za-z0-9-]+:[A-Za-z0-9]+\*?")
_IS_MANAGED: Final = {"StringEquals": {f"aws:ResourceTag/{MANAGED_BY}": OURS}}
_IS_NOBODY_ELSES: Final = {"StringEqualsIfExists": {f"aws:ResourceTag/{MANAGED_BY}": OURS}}
_BOUNDARY_ARN: Final = BOUNDARY.format("*", "${aws:PrincipalAccount}")
# In a resource IAM takes no variable before the last part: of every account then, where it is about what is denied.
_ANY_BOUNDARY: Final = BOUNDARY.format("*", "*")
_IS_BOUNDED: Final = {"StringLike": {"iam:PermissionsBoundary": _BOUNDARY_ARN}}
_OWN: Final = [f"arn:*:iam::*:{noun}{PATH}*" for noun in ("role", "user", "policy", "instance-profile")]
_LINKED_ROLES: Final = ["arn:*:iam::*:role/aws-service-role/*"]
_MOST_ACTIONS: Final = 90


def statements(names: Iterable[str], pass_roles: Sequence[str] = ()) -> list[Statement]:
    """What an agent must be allowed for these types, beside what it needs for all."""
    found = [_type(name) for name in sorted(set(names))]
    if not found:
        return []
    creates = {action for kind in found for verb in ("create", "read", "list") for action in _of(kind, verb)}
    changes = {action for kind in found for verb in ("update", "delete") for action in _of(kind, verb)}
    writes = {one for one in creates | changes if not _is_read(one)}
    reads = {one for one in creates | changes if _is_read(one)}
    own = {one for one in writes if one.startswith("iam:")}
    tagging = {one for one in writes - own if _TAGS.search(one)}
    by_services = {one for one in reads | writes if one in BY_SERVICES_ONLY}
    held = {
        one for one in changes - creates - own - tagging - by_services if one in writes and _service(one) in TAGS_DECIDE
    }
    free = writes - own - tagging - held - by_services
    return [
        _allow("CloudControl", _CLOUD_CONTROL),
        _allow("TagsInBulk", _TAGGING),
        *_several("ReadTypes", reads - by_services),
        *_several("MakeTypes", free),
        *_several("ChangeManagedTypes", held, condition=_IS_MANAGED),
        *_several("TagTypes", tagging, condition=_IS_NOBODY_ELSES),
        *_several("KeysOfTypes", by_services, condition={"Bool": {"aws:ViaAWSService": "true"}}),
        *_identities(own),
        *_passing(found, pass_roles),
    ]


def _type(name: str) -> AwsType:
    found = types.find(name)
    if found is None:
        meant = closest(name, types.names())
        raise PolicyOptionError(f"--type {name!r} is no type of AWS" + (f": did you mean {meant!r}?" if meant else ""))
    create = found.handlers.get("create", ())
    if any(_service(one) in NEVER_SERVICES for one in create[:1]):
        raise PolicyOptionError(
            f"--type {name!r} needs rights over the whole organization, which are never printed: give them by hand"
        )
    return found


def _of(kind: AwsType, verb: Any) -> Iterable[str]:
    """The permissions of one handler that are ever granted."""
    found = [one for one in kind.handlers.get(verb, ()) if _ACTION.fullmatch(one)]
    adapted = [] if kind.adapter is None else list(actions(kind.adapter))
    for action in [*found, *(adapted if verb in ("read", "update") else ())]:
        if action in NEVER or _service(action) in NEVER_SERVICES or action.casefold() == "iam:passrole":
            continue
        if action.endswith("*") and not _is_read(action):
            continue
        yield action


def _service(action: str) -> str:
    return action.partition(":")[0]


def _is_read(action: str) -> bool:
    return _READS.search(action) is not None


def _identities(own: set[str]) -> list[Statement]:
    """Roles, users and policies below the product's own path, held by the boundary, which itself is never changed."""
    linked = {one for one in own if one.endswith("ServiceLinkedRole")}
    bounded, in_path = own & BOUNDED, own & IN_PATH
    made = [
        *_several("RolesOfServices", linked, resources=_LINKED_ROLES),
        *_several("BoundedTypes", bounded, resources=_OWN, condition=_IS_BOUNDED),
        *_several("IdentitiesOfTypes", in_path, resources=_OWN),
    ]
    if in_path:
        denied = {"Sid": "KeepTheBoundary", "Effect": "Deny", "Action": sorted(in_path), "Resource": [_ANY_BOUNDARY]}
        made.append(denied)
    return made


def _passing(found: Sequence[AwsType], roles: Sequence[str]) -> list[Statement]:
    """The roles that were named, to the services whose types take one."""
    takers: set[str] = set()
    for kind in found:
        create = kind.handlers.get("create", ())
        if any(one.casefold() == "iam:passrole" for one in create):
            service = _service(create[0])
            takers |= set(PASSED_TO.get(service, (f"{service}.amazonaws.com",)))
    if not takers or not roles:
        return []
    condition = {"StringEquals": {"iam:PassedToService": sorted(takers)}}
    return [_allow("PassRolesToTypes", ["iam:PassRole"], sorted(set(roles)), condition)]


def _several(
    name: str, actions: set[str], resources: Sequence[str] = ("*",), condition: dict[str, Any] | None = None
) -> list[Statement]:
    """One statement, or several where a single one would be longer than a policy may be."""
    ordered = sorted(actions)
    parts = [ordered[start : start + _MOST_ACTIONS] for start in range(0, len(ordered), _MOST_ACTIONS)]
    return [
        _allow(f"{name}{number if len(parts) > 1 else ''}", part, resources, condition)
        for number, part in enumerate(parts, 1)
    ]


def _allow(
    name: str, actions: Sequence[str], resources: Sequence[str] = ("*",), condition: dict[str, Any] | None = None
) -> Statement:
    statement: Statement = {"Sid": name, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    return {**statement, "Condition": condition} if condition else statement
