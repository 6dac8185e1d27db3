"""How AWS decides whether a request is allowed: identity-based policies, and the permissions boundary above them.

Purely computational, after AWS's own pages on the policy language. It knows the elements and operators below and the
condition keys that it is given, and no others: a policy with anything else is an error, never a statement that is
ignored. What a call of the sandbox asks for, and which tags a resource bears, is found in `authorization.py`.

Left out, because no policy here has them: resource-based policies, service control policies and session policies, and
the operators for numbers, dates, bytes and addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

__all__ = ["AuthorizationRequest", "Decision", "Policy", "PolicyError", "decide"]

Context = Mapping[str, Sequence[str]]
_LANGUAGE: Final = "2012-10-17"
_DOCUMENT: Final = frozenset({"Version", "Id", "Statement"})
_STATEMENT: Final = frozenset({"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"})
_VARIABLE: Final = re.compile(r"\$\{\s*(?P<name>[^},]+?)\s*(?:,\s*'(?P<default>[^']*)'\s*)?\}")
# What a variable brings is no pattern: its wildcards are kept apart from those of the policy until they are compared.
_PROTECTED: Final = str.maketrans({"*": "\ue000", "?": "\ue001"})
_BARED: Final = str.maketrans({"\ue000": "*", "\ue001": "?"})
_ARN_PARTS: Final = 6


class PolicyError(ValueError):
    """A policy holds what cannot be evaluated here, or a request does not fit the policy's own words."""


@dataclass(frozen=True)
class AuthorizationRequest:
    """One thing that AWS checks: an action, on one resource, in a context. One call may ask for several.

    The names of condition keys are compared in small letters; each has all the values that the request gives it.
    """

    action: str
    resource: str = "*"
    context: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def values(self, key: str) -> tuple[str, ...]:
        """Return the values of a condition key; none where it is absent, or has no value but an empty one."""
        return tuple(value for value in self.context.get(key.lower(), ()) if value)


@dataclass(frozen=True)
class Decision:
    """Whether a request is allowed, and the statement that says so; a denial that no statement makes is implicit."""

    is_allowed: bool
    is_explicit: bool
    reason: str


# --- single values


def _is_true(value: str) -> str:
    if value.lower() not in ("true", "false"):
        raise PolicyError(f"{value!r} is neither true nor false")
    return value.lower()


@cache
def _wildcards(pattern: str, *, is_case_sensitive: bool = True) -> re.Pattern[str]:
    parts = (".*" if one == "*" else "." if one == "?" else _exactly(one) for one in pattern)
    return re.compile("".join(parts) + r"\Z", re.DOTALL | (0 if is_case_sensitive else re.IGNORECASE))


@cache
def _arn_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of the element Resource: ``*`` stays within its part, unless it is that part's last character."""
    parts = []
    for index, one in enumerate(pattern):
        if one == "*":
            is_last = index + 1 == len(pattern) or pattern[index + 1] == ":" or pattern[:index].count(":") >= 5
            parts.append(".*" if is_last else "[^:]*")
        else:
            parts.append("." if one == "?" else _exactly(one))
    return re.compile("".join(parts) + r"\Z", re.DOTALL)


def _exactly(character: str) -> str:
    return re.escape(character.translate(_BARED))


def _is_like_arn(value: str, pattern: str) -> bool:
    """Compare as ArnLike and ArnEquals do: each of the six parts by itself."""
    ours, theirs = pattern.split(":", _ARN_PARTS - 1), value.split(":", _ARN_PARTS - 1)
    if len(ours) != _ARN_PARTS or len(theirs) != _ARN_PARTS:
        return False
    return all(_wildcards(one).match(other) is not None for one, other in zip(ours, theirs, strict=True))


_Compare = Callable[[str, str], bool]
_OPERATORS: Final[Mapping[str, tuple[_Compare, bool]]] = {
    "StringEquals": (lambda value, wanted: value == wanted.translate(_BARED), False),
    "StringNotEquals": (lambda value, wanted: value == wanted.translate(_BARED), True),
    "StringEqualsIgnoreCase": (lambda value, wanted: value.lower() == wanted.translate(_BARED).lower(), False),
    "StringNotEqualsIgnoreCase": (lambda value, wanted: value.lower() == wanted.translate(_BARED).lower(), True),
    "StringLike": (lambda value, wanted: _wildcards(wanted).match(value) is not None, False),
    "StringNotLike": (lambda value, wanted: _wildcards(wanted).match(value) is not None, True),
    "ArnEquals": (_is_like_arn, False),
    "ArnLike": (_is_like_arn, False),
    "ArnNotEquals": (_is_like_arn, True),
    "ArnNotLike": (_is_like_arn, True),
    "Bool": (lambda value, wanted: _is_true(value) == _is_true(wanted), False),
}
"""How each operator compares one value, and whether it is negated."""


def _filled_in(text: str, request: AuthorizationRequest) -> str | None:
    """Return a text of a policy with its variables replaced; None where the request has no value for one."""
    if "${" not in text:
        return text
    is_resolved = True

    def value(found: re.Match[str]) -> str:
        nonlocal is_resolved
        name, default = found["name"], found["default"]
        if name in ("*", "?", "$"):
            return name.translate(_PROTECTED)
        values = request.values(name)
        if len(values) > 1:
            raise PolicyError(f"the variable {name!r} has several values here")
        if not values and default is None:
            is_resolved = False
            return ""
        return (values[0] if values else default).translate(_PROTECTED)

    filled = _VARIABLE.sub(value, text)
    return filled if is_resolved else None


# --- policies


@dataclass(frozen=True)
class _Condition:
    """One key of one operator. ``qualifier``: how several values of a request are taken together."""

    operator: str
    qualifier: Literal["", "ForAllValues", "ForAnyValue"]
    if_exists: bool
    key: str
    wanted: tuple[str, ...]

    def holds(self, request: AuthorizationRequest) -> bool:
        values = request.values(self.key)
        if self.operator == "Null":
            return not values if _is_true(self.wanted[0]) == "true" else bool(values)
        compare, is_negated = _OPERATORS[self.operator]
        if not values:
            return self.if_exists or self.qualifier == "ForAllValues" or (is_negated and not self.qualifier)
        wanted = [one for one in (_filled_in(one, request) for one in self.wanted) if one is not None]
        results = [any(compare(value, one) for one in wanted) is not is_negated for value in values]
        if self.qualifier == "ForAnyValue":
            return any(results)
        if len(results) > 1 and not self.qualifier:
            raise PolicyError(
                f"{self.key!r} has several values here: {self.operator} needs ForAllValues or ForAnyValue"
            )
        return all(results)


@dataclass(frozen=True)
class _Statement:
    sid: str
    is_allow: bool
    actions: tuple[str, ...]
    excepts_actions: bool
    resources: tuple[str, ...]
    excepts_resources: bool
    conditions: tuple[_Condition, ...]

    def is_about(self, action: str) -> bool:
        found = any(_wildcards(one, is_case_sensitive=False).match(action) for one in self.actions)
        return found is not self.excepts_actions

    def fits(self, request: AuthorizationRequest) -> bool:
        """Whether it applies to a request for an action that it is about."""
        wanted = (_filled_in(one, request) for one in self.resources)
        is_named = any(one is not None and _is_resource(request.resource, one) for one in wanted)
        return is_named is not self.excepts_resources and all(one.holds(request) for one in self.conditions)


def _is_resource(resource: str, pattern: str) -> bool:
    return pattern == "*" or _arn_pattern(pattern).match(resource) is not None


class Policy:
    """A document, checked whole when it is read. ``known_keys``: the condition keys that requests can have here.

    A key may end in ``/*``, as in ``aws:ResourceTag/*``. Raises PolicyError for whatever it does not know.
    """

    def __init__(self, document: Mapping[str, Any], known_keys: Collection[str]) -> None:
        _check_elements(document, _DOCUMENT, "a policy")
        if document.get("Version") != _LANGUAGE:
            raise PolicyError(f"a policy of version {document.get('Version')!r}: write {_LANGUAGE!r}")
        statements = document.get("Statement")
        if isinstance(statements, Mapping):
            statements = [statements]
        if not isinstance(statements, list) or not statements:
            raise PolicyError("a policy without statements")
        known = frozenset(key.lower() for key in known_keys)
        self._statements = tuple(_parsed(one, known) for one in statements)
        self._about: dict[str, tuple[_Statement, ...]] = {}

    def find(self, request: AuthorizationRequest, *, allows: bool) -> str | None:
        """Return the name of a statement with that effect that applies to a request; None where there is none."""
        action = request.action.lower()
        if action not in self._about:
            self._about[action] = tuple(one for one in self._statements if one.is_about(action))
        return next((one.sid for one in self._about[action] if one.is_allow is allows and one.fits(request)), None)


def decide(request: AuthorizationRequest, policies: Iterable[Policy], boundary: Policy | None = None) -> Decision:
    """Decide as AWS does within one account: a deny wins; then the policies must allow, and so must the boundary."""
    policies = list(policies)
    about = f"{request.action} on {request.resource}"
    for policy in (*policies, *([boundary] if boundary else ())):
        denied = policy.find(request, allows=False)
        if denied is not None:
            return Decision(is_allowed=False, is_explicit=True, reason=f"statement {denied!r} denies {about}")
    allowed = next((found for one in policies if (found := one.find(request, allows=True)) is not None), None)
    if allowed is None:
        return Decision(is_allowed=False, is_explicit=False, reason=f"no identity-based policy allows {about}")
    if boundary is not None and boundary.find(request, allows=True) is None:
        return Decision(is_allowed=False, is_explicit=False, reason=f"no permissions boundary allows {about}")
    return Decision(is_allowed=True, is_explicit=True, reason=f"statement {allowed!r} allows {about}")


# --- reading a document


def _check_elements(found: Mapping[str, Any], known: Collection[str], where: str) -> None:
    unknown = sorted(set(found) - set(known))
    if unknown:
        raise PolicyError(f"{where} with the element {unknown[0]!r}, which is not known here")


def _parsed(statement: Any, known_keys: Collection[str]) -> _Statement:
    if not isinstance(statement, Mapping):
        raise PolicyError(f"a statement that is no object: {statement!r}")
    _check_elements(statement, _STATEMENT, "a statement")
    if statement.get("Effect") not in ("Allow", "Deny"):
        raise PolicyError(f"a statement with the effect {statement.get('Effect')!r}")
    actions, excepts_actions = _one_of(statement, "Action", "NotAction")
    resources, excepts_resources = _one_of(statement, "Resource", "NotResource")
    for action in actions:
        if action != "*" and not re.fullmatch(r"[a-z0-9-]+:[A-Za-z0-9*?]+", action):
            raise PolicyError(f"an action that names no service: {action!r}")
    for resource in resources:
        parts = _VARIABLE.sub("", resource).split(":", _ARN_PARTS - 1)
        if resource != "*" and len(parts) < _ARN_PARTS:
            raise PolicyError(f"a resource that is no ARN: {resource!r}")
        if "${" in ":".join(resource.split(":", _ARN_PARTS - 1)[: _ARN_PARTS - 1]):
            raise PolicyError(f"a variable before the last part of an ARN: {resource!r}")
        _check_variables(resource, known_keys)
    return _Statement(
        sid=str(statement.get("Sid", "")),
        is_allow=statement["Effect"] == "Allow",
        actions=actions,
        excepts_actions=excepts_actions,
        resources=resources,
        excepts_resources=excepts_resources,
        conditions=tuple(_conditions(statement.get("Condition", {}), known_keys)),
    )


def _one_of(statement: Mapping[str, Any], name: str, negated: str) -> tuple[tuple[str, ...], bool]:
    if (name in statement) == (negated in statement):
        raise PolicyError(f"a statement needs either {name} or {negated}")
    return _texts(statement[negated if negated in statement else name]), negated in statement


def _texts(value: Any) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value]
    if not found or not all(isinstance(one, str) and one == one.translate(_BARED) for one in found):
        raise PolicyError(f"neither a text nor a list of texts: {value!r}")
    return tuple(found)


def _conditions(block: Any, known_keys: Collection[str]) -> Iterable[_Condition]:
    if not isinstance(block, Mapping):
        raise PolicyError(f"a condition that is no object: {block!r}")
    for spelled, keys in block.items():
        operator, qualifier, if_exists = _operator(spelled)
        if not isinstance(keys, Mapping) or not keys:
            raise PolicyError(f"the operator {spelled!r} without condition keys")
        for key, value in keys.items():
            if not _is_known(key, known_keys):
                raise PolicyError(f"the condition key {key!r} is not known here")
            wanted = _texts(value)
            if operator == "Null" and len(wanted) != 1:
                raise PolicyError(f"Null of {key!r} with several values")
            for one in wanted:
                _check_variables(one, known_keys)
                if operator in ("Null", "Bool"):
                    _is_true(one)
            yield _Condition(operator, qualifier, if_exists, key.lower(), wanted)


def _is_known(key: str, known_keys: Collection[str]) -> bool:
    small = key.lower()
    return small in known_keys or ("/" in small and f"{small.partition('/')[0]}/*" in known_keys)


def _check_variables(text: str, known_keys: Collection[str]) -> None:
    for found in _VARIABLE.finditer(text):
        if found["name"] not in ("*", "?", "$") and not _is_known(found["name"], known_keys):
            raise PolicyError(f"the variable {found['name']!r} is not known here")
    if "${" in _VARIABLE.sub("", text):
        raise PolicyError(f"a variable that cannot be read: {text!r}")


def _operator(spelled: str) -> tuple[str, Literal["", "ForAllValues", "ForAnyValue"], bool]:
    qualifier, colon, name = spelled.rpartition(":")
    if_exists = name.endswith("IfExists")
    name = name.removesuffix("IfExists")
    if name == "Null" and not colon and not if_exists:
        return name, "", False
    if name not in _OPERATORS:
        raise PolicyError(f"the condition operator {spelled!r} is not known here")
    if qualifier == "ForAllValues":
        return name, "ForAllValues", if_exists
    if qualifier == "ForAnyValue":
        return name, "ForAnyValue", if_exists
    if colon:
        raise PolicyError(f"the condition operator {spelled!r} is not known here")
    return name, "", if_exists
