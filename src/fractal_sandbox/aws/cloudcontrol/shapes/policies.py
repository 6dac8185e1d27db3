"""How IAM's policy documents and other JSON documents come back: the same, in other words.

Purely computational: whether a shape is taken is decided by the chance that is handed in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any, Final

__all__ = ["encoded", "is_policy", "policy", "shuffled"]

_ACCOUNT: Final = re.compile(r"\d{12}")
_OF_STRINGS: Final = ("Action", "NotAction", "Resource", "NotResource")


def is_policy(document: Any) -> bool:
    """Return whether a document is a policy: its statements allow or deny (the rules of a firewall have some too)."""
    held = document.get("Statement") if isinstance(document, dict) else None
    statements = held if isinstance(held, list) else [held]
    return bool(statements) and all(isinstance(one, dict) and "Effect" in one for one in statements)


def policy(document: Any, chance: Random, has: Callable[[str], bool]) -> dict[str, Any]:
    """Return a policy that allows the same."""
    statements = document["Statement"]
    listed = statements if isinstance(statements, list) else [statements]
    made = [_statement(one, number, chance, has) for number, one in enumerate(listed, 1) if isinstance(one, dict)]
    return {**document, "Statement": made}


def _statement(statement: dict[str, Any], number: int, chance: Random, has: Callable[[str], bool]) -> dict[str, Any]:
    made = dict(statement)
    if has("policy"):
        for name in _OF_STRINGS:
            if name in made:
                made[name] = _strings(made[name], chance)
        for name in ("Principal", "NotPrincipal"):
            if isinstance(made.get(name), dict):
                made[name] = {kind: _principals(kind, value, chance) for kind, value in made[name].items()}
    if has("policy-sid") and "Sid" not in made:
        made["Sid"] = chance.choice(["", str(number)])
    return made


def _strings(value: Any, chance: Random) -> Any:
    if isinstance(value, list):
        mixed = chance.sample(value, len(value))
        return mixed[0] if len(mixed) == 1 and chance.random() < 0.7 else mixed
    return [value] if isinstance(value, str) and chance.random() < 0.5 else value


def _principals(kind: str, value: Any, chance: Random) -> Any:
    def whole(one: Any) -> Any:
        is_account = kind == "AWS" and isinstance(one, str) and _ACCOUNT.fullmatch(one)
        return f"arn:aws:iam::{one}:root" if is_account else one

    named = [whole(one) for one in value] if isinstance(value, list) else whole(value)
    return _strings(named, chance)


def shuffled(value: Any, chance: Random) -> Any:
    """Return a JSON value with the keys of all its objects in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], chance) for key in chance.sample(list(value), len(value))}
    return [shuffled(one, chance) for one in value] if isinstance(value, list) else value


def encoded(value: Any, chance: Random) -> str:
    """Return a JSON value as text, with or without spaces."""
    return json.dumps(value, separators=(",", ":")) if chance.random() < 0.7 else json.dumps(value, indent=2)
