"""The form that all tables have, and what is common to making them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]
Operation = dict[str, Any]


def ref(name: str) -> Schema:
    """Point to a schema of the same table."""
    return {"$ref": f"#/$defs/{name}"}


def operation(
    name: str,
    method: str,
    path: str,
    *,
    query: Mapping[str, Schema] | None = None,
    headers: Mapping[str, Schema] | None = None,
    body: Schema | None = None,
    answers: Mapping[str, Schema | None] | None = None,
    **more: Any,
) -> Operation:
    """Describe one operation; a query word or a header whose schema says ``required`` must be sent.

    ``answers``: what is answered with each status; None where the contract says nothing of the body.
    """
    return {
        "name": name,
        "method": method,
        "path": path,
        "query": dict(query or {}),
        "headers": dict(headers or {}),
        "body": body,
        "answers": dict(answers or {}),
        **more,
    }


def table(operations: Iterable[Operation], schemas: Mapping[str, Schema], **more: Any) -> dict[str, Any]:
    """Put a table together: only schemas that an operation leads to are kept."""
    found = sorted(operations, key=lambda one: (one["path"], one["method"], one["name"]))
    kept: dict[str, Schema] = {}
    ahead = [name for one in found for name in _named([one["body"], one["answers"], one["query"], one["headers"]])]
    ahead += list(_named(more))
    while ahead:
        name = ahead.pop()
        if name not in kept:
            kept[name] = schemas[name]
            ahead += _named(schemas[name])
    return {"operations": found, "schemas": dict(sorted(kept.items())), **more}


def _named(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            if key == "$ref" and isinstance(one, str):
                yield one.removeprefix("#/$defs/")
            else:
                yield from _named(one)
    elif isinstance(value, list):
        for one in value:
            yield from _named(one)
