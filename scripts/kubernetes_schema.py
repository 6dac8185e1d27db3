"""Writes the fields of Kubernetes' built-in kinds for the sandbox, from the models of the official Python client.

    python scripts/kubernetes_schema.py

The sandbox drops unknown fields and refuses wrong types as the real server does; it reads the file that this writes, so
that it needs no client. Run it again when the client is upgraded: a test finds the file out of date.
"""

from __future__ import annotations

import datetime
import json
import types
import typing
from pathlib import Path
from typing import Any, Final

from kubernetes.client import models  # noqa: TID253
from pydantic import BaseModel

TARGET: Final = Path(__file__).parents[1] / "src/fractal_sandbox/kubernetes/schema.json"
KINDS: Final = (
    "ConfigMap",
    "Deployment",
    "Namespace",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "Pod",
    "ReplicaSet",
    "Secret",
    "Service",
    "ServiceAccount",
)
SCALARS: Final[dict[Any, str]] = {
    str: "text",
    int: "number",
    float: "number",
    bool: "flag",
    bytes: "text",
    datetime.datetime: "text",
    object: "any",
    Any: "any",
}


def form_of(hint: Any, found: dict[str, dict[str, str]]) -> str:
    """Return how a type is written: a scalar, the name of a model, `[…]` for a list, `{…}` for a map."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return form_of(arguments[0], found)
    if origin in (typing.Union, types.UnionType):
        forms = {form_of(one, found) for one in arguments if one is not type(None)}
        if len(forms) == 1:
            return forms.pop()
        return "number-or-text" if forms == {"number", "text"} else "any"
    if origin is list:
        return f"[{form_of(arguments[0], found)}]"
    if origin is dict:
        return "{" + form_of(arguments[1], found) + "}"
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        add(hint, found)
        return hint.__name__.removeprefix("V1")
    return SCALARS.get(hint, "any")


def add(model: type[BaseModel], found: dict[str, dict[str, str]]) -> None:
    name = model.__name__.removeprefix("V1")
    if name in found:
        return
    fields: dict[str, str] = {}
    found[name] = fields
    for attribute, field in model.model_fields.items():
        fields[field.serialization_alias or attribute] = form_of(field.annotation, found)


def schema() -> str:
    """Return the fields of all kinds and of what they are made of, one type per line."""
    found: dict[str, dict[str, str]] = {}
    for kind in KINDS:
        add(getattr(models, f"V1{kind}"), found)
    lines = [f"{json.dumps(name)}: {json.dumps(fields, sort_keys=True)}" for name, fields in sorted(found.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    TARGET.write_text(schema())
