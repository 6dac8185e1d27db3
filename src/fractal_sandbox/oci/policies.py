"""OCI's policy language, as much as decides about buckets and objects: what statements say, and whether they allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from fractal_sandbox.oci import common

__all__ = ["Asked", "Statement", "allows", "read_statement"]

_HEAD: Final = re.compile(
    r"\s*allow\s+(?:group\s+id\s+(?P<group>\S+)|(?P<any>any-user))\s+to\s+(?P<verb>inspect|read|use|manage)\s+"
    r"(?P<what>[\w-]+)\s+in\s+(?:tenancy|compartment\s+id\s+(?P<where>\S+))(?:\s+where\s+(?P<condition>.+?))?\s*",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN: Final = re.compile(r"\s*('[^']*'|[{},=]|[^\s{},='\"]+)")
# Each verb has what the ones before it have, and this.
_GRANTS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "buckets": {
        "inspect": ("BUCKET_INSPECT",),
        "read": ("BUCKET_READ",),
        "use": ("BUCKET_UPDATE",),
        "manage": ("BUCKET_CREATE", "BUCKET_DELETE"),
    },
    "objects": {
        "inspect": ("OBJECT_INSPECT",),
        "read": ("OBJECT_READ",),
        "use": ("OBJECT_OVERWRITE",),
        "manage": ("OBJECT_CREATE", "OBJECT_DELETE", "OBJECT_RESTORE", "OBJECT_VERSION_DELETE"),
    },
}
Variables: TypeAlias = Mapping[str, str]
Condition: TypeAlias = Callable[[Variables], bool]


@dataclass(frozen=True)
class Statement:
    """One statement: to whom (an empty group: everybody), what, where (an empty one: everywhere), and when."""

    group: str
    permissions: frozenset[str]
    compartment: str
    condition: Condition


@dataclass(frozen=True)
class Asked:
    """Who asks for what: the groups a user is in, the compartments from the resource's own up to the root."""

    groups: frozenset[str]
    compartments: frozenset[str]
    permission: str
    variables: Variables


def allows(statements: Iterable[Statement], asked: Asked) -> bool:
    """Whether any statement lets it through: what none allows is refused."""
    variables = {**asked.variables, "request.permission": asked.permission}
    return any(
        (not one.group or one.group in asked.groups)
        and asked.permission in one.permissions
        and (not one.compartment or one.compartment in asked.compartments)
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
    return Statement(found["group"] or "", permissions, found["where"] or "", condition)


def _permissions(verb: str, what: str) -> frozenset[str]:
    granted: list[str] = []
    for one, permissions in _GRANTS.get(what, {}).items():
        granted += permissions
        if one == verb:
            break
    return frozenset(granted)


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
    value = _next(tokens).strip("'").lower()  # names are the same whatever their case
    return lambda variables: variables.get(word, "").lower() == value


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
