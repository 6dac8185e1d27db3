"""The OpenAPI document: what FastAPI finds, plus how to log in and what a declaration looks like."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from fractal_cloud.control.api.problems import Problem
from fractal_cloud.control.auth.middleware import OPEN_PATHS
from fractal_cloud.model.declaration import LiveSystemDeclaration

_REFERENCE = "#/components/schemas/{model}"


def install(app: FastAPI) -> None:
    """Let the app describe itself in full."""
    described = app.openapi

    def whole() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(described())
        return app.openapi_schema

    app.openapi = whole  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    _, declared = models_json_schema(
        [(LiveSystemDeclaration, "validation"), (Problem, "serialization")], ref_template=_REFERENCE
    )
    parts = document.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for name, schema in declared.get("$defs", {}).items():
        schemas.setdefault(name, schema)
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)  # said by «default», as what it really is
            if path in OPEN_PATHS:
                operation["security"] = []
    return document
