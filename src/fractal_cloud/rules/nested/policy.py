"""Policy documents of AWS by what they allow: IAM stores them in another spelling than people write them. Pure.

What is the same, by AWS's own grammar (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html)
and by the reports of what comes back (hashicorp/awspolicyequivalence, the issues of terraform-provider-awscc): one
value or a list of it, the order of statements, actions, resources, principals and values, the case of actions and of
condition keys, an account's number and the ARN of its root, ``"*"`` and ``{"AWS": "*"}``, and an empty ``Sid``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_ROOT: Final = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):root")
_OLDEST: Final = "2008-10-17"
_ACTIONS: Final = ("Action", "NotAction")
_RESOURCES: Final = ("Resource", "NotResource")
_PRINCIPALS: Final = ("Principal", "NotPrincipal")


def policy_key(value: Any) -> str:
    """A policy as text that is the same for policies that allow the same; what is none is text by its value."""
    return json.dumps(_policy(_parsed(value)), sort_keys=True, default=str)


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str | bytes) else value
    except (ValueError, RecursionError):
        return value


def _policy(document: Any) -> Any:
    if not isinstance(document, Mapping) or "Statement" not in document:
        return document
    statements = sorted(
        {json.dumps(_statement(one), sort_keys=True, default=str) for one in _many(document["Statement"])}
    )
    rest = {str(name): one for name, one in document.items() if name not in ("Statement", "Version") and one}
    return {**rest, "Version": str(document.get("Version") or _OLDEST), "Statement": statements}


def _statement(statement: Any) -> Any:
    if not isinstance(statement, Mapping):
        return statement
    found: dict[str, Any] = {}
    for name, value in statement.items():
        if name in _ACTIONS:
            found[name] = sorted({str(one).casefold() for one in _many(value)})
        elif name in _RESOURCES:
            found[name] = _texts(value)
        elif name in _PRINCIPALS:
            found[name] = _principals(value)
        elif name == "Condition":
            found[name] = _conditions(value)
        else:
            found[str(name)] = value
    return {name: value for name, value in found.items() if value or name in (*_ACTIONS, *_RESOURCES, *_PRINCIPALS)}


def _principals(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return {"AWS": sorted({_account("AWS", one) for one in _texts(value)})}
    return {str(kind): sorted({_account(kind, str(one)) for one in _many(who)}) for kind, who in value.items()}


def _account(kind: Any, who: str) -> str:
    """An account by its number, also where the ARN of its root stands for it."""
    found = _ROOT.fullmatch(who) if kind == "AWS" else None
    return found.group(1) if found else who


def _conditions(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {str(operator): _keys(str(operator), keys) for operator, keys in value.items()}


def _keys(operator: str, keys: Any) -> Any:
    if not isinstance(keys, Mapping):
        return keys
    is_truth = operator.casefold().removesuffix("ifexists").endswith(("bool", "null"))
    found = {}
    for key, values in keys.items():
        texts = _texts(values)
        found[str(key).casefold()] = sorted({text.casefold() for text in texts}) if is_truth else texts
    return found


def _texts(value: Any) -> list[str]:
    return sorted({_text(one) for one in _many(value)})


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _many(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value is None else [value]
