"""OCI's policy language, as much as decides about what is served here: what statements say, and whether they allow.

What each verb permits for a resource type follows Oracle's tables («Details for the Core Services», «… IAM», «… Object
Storage»).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from fractal_sandbox.oci import common

__all__ = ["Asked", "Statement", "allows", "read_statement"]

_HEAD: Final = re.compile(
    r"\s*allow\s+(?:group\s+id\s+(?P<group>\S+)|group\s+(?P<named>[\w.-]+)|(?P<any>any-user))\s+to\s+"
    r"(?P<verb>inspect|read|use|manage)\s+(?P<what>[\w-]+)\s+in\s+"
    r"(?:tenancy|compartment\s+id\s+(?P<where>\S+)|compartment\s+(?P<path>[\w.:-]+))"
    r"(?:\s+where\s+(?P<condition>.+?))?\s*",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN: Final = re.compile(r"\s*('[^']*'|/[^/]*/|[{},=]|[^\s{},='\"]+)")
_WHOLE: Final = ("ATTACH", "DETACH", "UPDATE", "CREATE", "DELETE", "MOVE")
_VERBS: Final = ("inspect", "read", "use", "manage")
# What each verb adds to the one before it: inspect, read, use, manage.
_GRANTS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "buckets": ("BUCKET_INSPECT", "BUCKET_READ", "BUCKET_UPDATE", "BUCKET_CREATE BUCKET_DELETE PAR_MANAGE"),
    "objects": (
        *("OBJECT_INSPECT", "OBJECT_READ", "OBJECT_OVERWRITE"),
        "OBJECT_CREATE OBJECT_DELETE OBJECT_RESTORE OBJECT_VERSION_DELETE",
    ),
    "objectstorage-namespaces": ("", "OBJECTSTORAGE_NAMESPACE_READ", "", "OBJECTSTORAGE_NAMESPACE_UPDATE"),
    "compartments": ("COMPARTMENT_INSPECT", "", "COMPARTMENT_UPDATE", "COMPARTMENT_CREATE COMPARTMENT_DELETE"),
    "tenancies": ("TENANCY_INSPECT", "", "TENANCY_UPDATE", "TENANCY_CREATE"),
    "users": (
        *("USER_INSPECT", "USER_READ", "USER_UPDATE"),
        "USER_CREATE USER_DELETE USER_APIKEY_ADD USER_UIPASS_RESET USER_SECRETKEY_ADD USER_SECRETKEY_REMOVE",
    ),
    "groups": ("GROUP_INSPECT", "", "GROUP_UPDATE", "GROUP_CREATE GROUP_DELETE"),
    "dynamic-groups": (
        "DYNAMIC_GROUP_INSPECT",
        "",
        "DYNAMIC_GROUP_UPDATE",
        "DYNAMIC_GROUP_CREATE DYNAMIC_GROUP_DELETE",
    ),
    "policies": ("POLICY_READ", "", "", "POLICY_UPDATE POLICY_CREATE POLICY_DELETE"),
    "vcns": ("VCN_READ", "", "", "VCN_ATTACH VCN_DETACH VCN_UPDATE VCN_CREATE VCN_DELETE VCN_MOVE"),
    "subnets": (
        "SUBNET_READ",
        "",
        "SUBNET_ATTACH SUBNET_DETACH",
        "SUBNET_CREATE SUBNET_UPDATE SUBNET_DELETE SUBNET_MOVE",
    ),
    **{
        kind: (f"{word}_READ", "", "", " ".join(f"{word}_{verb}" for verb in _WHOLE))
        for kind, word in (
            *(("route-tables", "ROUTE_TABLE"), ("security-lists", "SECURITY_LIST"), ("dhcp-options", "DHCP")),
            ("internet-gateways", "INTERNET_GATEWAY"),
        )
    },
    "vnics": ("VNIC_READ", "", "VNIC_ATTACH VNIC_DETACH VNIC_CREATE VNIC_DELETE VNIC_UPDATE", ""),
    "vnic-attachments": ("VNIC_ATTACHMENT_READ", "", "", ""),
    "instances": (
        *("INSTANCE_INSPECT", "INSTANCE_READ"),
        "INSTANCE_UPDATE INSTANCE_CREATE_IMAGE INSTANCE_POWER_ACTIONS INSTANCE_ATTACH_VOLUME INSTANCE_DETACH_VOLUME",
        "INSTANCE_CREATE INSTANCE_DELETE INSTANCE_ATTACH_SECONDARY_VNIC INSTANCE_DETACH_SECONDARY_VNIC INSTANCE_MOVE",
    ),
    "instance-images": (
        *("INSTANCE_IMAGE_INSPECT", "INSTANCE_IMAGE_READ", "INSTANCE_IMAGE_UPDATE"),
        "INSTANCE_IMAGE_CREATE INSTANCE_IMAGE_DELETE INSTANCE_IMAGE_MOVE",
    ),
    "volume-family": (
        "VOLUME_INSPECT VOLUME_ATTACHMENT_INSPECT VOLUME_BACKUP_INSPECT",
        "VOLUME_ATTACHMENT_READ VOLUME_BACKUP_READ",
        "VOLUME_WRITE VOLUME_ATTACHMENT_UPDATE VOLUME_BACKUP_COPY",
        "VOLUME_UPDATE VOLUME_CREATE VOLUME_DELETE VOLUME_ATTACHMENT_CREATE VOLUME_ATTACHMENT_DELETE",
    ),
}
EVERYBODY: Final = "everybody"
EVERYWHERE: Final = "everywhere"
Variables: TypeAlias = Mapping[str, str]
Condition: TypeAlias = Callable[[Variables], bool]


@dataclass(frozen=True)
class Statement:
    """One statement: to whom (an empty group: everybody), what, where (an empty one: everywhere), and when.

    A group may be given by its name instead (`named`), a compartment by the names from below the root (`path`).
    """

    group: str
    permissions: frozenset[str]
    compartment: str
    condition: Condition
    named: str = ""
    path: str = ""


@dataclass(frozen=True)
class Asked:
    """Who asks for what: the groups a user is in, the compartments from the resource's own up to the root; both hold
    ids, and names or paths."""

    groups: frozenset[str]
    compartments: frozenset[str]
    permission: str
    variables: Variables


def allows(statements: Iterable[Statement], asked: Asked) -> bool:
    """Whether any statement lets it through: what none allows is refused."""
    variables = {**asked.variables, "request.permission": asked.permission}
    return any(
        (one.group or one.named or EVERYBODY) in (*asked.groups, EVERYBODY)
        and asked.permission in one.permissions
        and (one.compartment or one.path.lower() or EVERYWHERE) in (*asked.compartments, EVERYWHERE)
        and one.condition(variables)
        for one in statements
    )


def read_statement(text: str) -> Statement:
    """What a statement says; raises where it cannot be understood."""
    found = _HEAD.fullmatch(text)
    if found is None:
        raise common.invalid(f"No permissions found in the statement {text!r}.")
    condition: Condition = lambda _: True  # noqa: E731
    if found["condition"]:
        tokens = _tokens(found["condition"])
        condition = _condition(tokens)
        if tokens:
            raise common.invalid(f"The condition ends before {tokens[0]!r} in {text!r}.")
    permissions = _permissions(found["verb"].lower(), found["what"].lower())
    if not permissions:
        raise common.invalid(f"No permissions found in the statement {text!r}.")
    words = {name: found[name] or "" for name in ("group", "where", "named", "path")}
    return Statement(words["group"], permissions, words["where"], condition, words["named"], words["path"])


def _permissions(verb: str, what: str) -> frozenset[str]:
    """What a verb permits: what it adds, and what those before it do."""
    if what == "all-resources":
        return frozenset().union(*(_permissions(verb, one) for one in _GRANTS))
    added = _GRANTS.get(what, ("", "", "", ""))[: _VERBS.index(verb) + 1]
    return frozenset(" ".join(added).split())


def _tokens(text: str) -> list[str]:
    found = _TOKEN.findall(text)
    if re.sub(r"\s", "", "".join(found)) != re.sub(r"\s", "", text):
        raise common.invalid(f"The condition {text!r} cannot be parsed.")
    return list(found)


def _condition(tokens: list[str]) -> Condition:
    word = _next(tokens)
    if word.lower() in ("all", "any") and tokens[:1] == ["{"]:
        return _several(tokens, all if word.lower() == "all" else any)
    if _next(tokens) != "=":
        raise common.invalid(f"{word!r} is compared with nothing.")
    value = _next(tokens).lower()  # names are the same whatever their case
    if len(value) > 1 and value[0] == value[-1] == "/":
        pattern = ".*".join(map(re.escape, value.strip("/").split("*")))
        # A variable that a request does not have fulfils nothing.
        return lambda variables: word in variables and re.fullmatch(pattern, variables[word].lower()) is not None
    return lambda variables: variables.get(word, "").lower() == value.strip("'")


def _several(tokens: list[str], combine: Callable[[Iterable[bool]], bool]) -> Condition:
    parts: list[Condition] = []
    while (mark := _next(tokens)) != "}":
        if mark not in ("{", ","):
            raise common.invalid(f"The condition has {mark!r} where a comma or a brace is expected.")
        parts.append(_condition(tokens))
    return lambda variables: combine(part(variables) for part in parts)


def _next(tokens: list[str]) -> str:
    if not tokens:
        raise common.invalid("The condition ends too early.")
    return tokens.pop(0)
