"""Oracle Cloud's table, from the package ``oci``.

Paths, query and headers stand in the source of its clients' methods; fields in its models, with the required ones and
the allowed values in their descriptions and setters.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tests.vendors.tables.form import Operation, Schema, operation, ref, table

CLIENTS = {
    "core": ("/20160918", ("VirtualNetworkClient", "ComputeClient", "BlockstorageClient")),
    "identity": ("/20160918", ("IdentityClient",)),
    "object_storage": ("", ("ObjectStorageClient",)),
    "resource_search": ("/20180409", ("ResourceSearchClient",)),
}
SCALARS: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "datetime": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}"},
    "object": {},
}
ERRORS: dict[str, Schema] = {
    "Error": {
        "type": "object",
        "required": ["code", "message"],
        "additionalProperties": False,
        "properties": {"code": {"type": "string", "minLength": 1}, "message": {"type": "string"}},
    }
}
"""https://docs.oracle.com/iaas/Content/API/References/apierrors.htm: code and message, nothing around them."""


def make() -> dict[str, Any]:
    """Return the whole table."""
    operations: list[Operation] = []
    schemas: dict[str, Schema] = dict(ERRORS)
    for service, (base, clients) in CLIENTS.items():
        package = importlib.import_module(f"oci.{service}")
        for client in clients:
            operations += _operations(getattr(package, client), service, base)
        schemas |= _schemas(importlib.import_module(f"oci.{service}.models"), service)
    # What a field names and no model describes is one of a few words that the package does not list.
    return table(operations, defaultdict(lambda: {"type": "string"}, schemas), errors=ref("Error"))


def _operations(client: Any, service: str, base: str) -> Iterator[Operation]:
    for name, method in vars(client).items():
        source = inspect.getsource(method) if inspect.isfunction(method) else ""
        path = re.search(r'^        resource_path = "([^"]+)"', source, re.MULTILINE)
        verb = re.search(r'^        method = "([A-Z]+)"', source, re.MULTILINE)
        if path is None or verb is None:
            continue
        needed = re.search(r"required_arguments = \[([^\]]*)\]", source)
        required = set(re.findall(r"'(\w+)'", needed.group(1) if needed else ""))
        body = re.search(rf":param oci\.{service}\.models\.(\w+) (\w+):", source)
        sends = re.search(r"^\s+body=\w+", source, re.MULTILINE)
        answer = re.search(r'response_type="([^"]+)"', source)
        model = _form(answer.group(1), service) if answer else None
        yield operation(
            f"{client.__name__}.{name}",
            verb.group(1),
            base + path.group(1),
            query={word: {**_allowed(source, word), "required": word in required} for word in _words(source, "query")},
            headers={
                word: {"type": "string"}
                for word in _words(source, "header")
                if word.lower() not in ("accept", "content-type")
            },
            body=(_form(body.group(1), service) if body else {}) if sends else None,
            isBodyOptional=bool(body and re.search(rf" {body.group(2)}: \(optional\)", source)),
            answers={"200": model} if model is not None and model != {} else {"200": None, "202": None, "204": None},
        )


def _words(source: str, kind: str) -> list[str]:
    found = re.search(rf"{kind}_params = \{{(.*?)\n        \}}", source, re.DOTALL)
    return re.findall(r'^\s+"([\w-]+)":', found.group(1), re.MULTILINE) if found else []


def _allowed(source: str, word: str) -> Schema:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", word).lower()
    found = re.search(rf"{name}_allowed_values = \[([^\]]*)\]", source)
    return {"type": "string", **({"enum": re.findall(r'"([^"]*)"', found.group(1))} if found else {})}


def _schemas(models: types.ModuleType, service: str) -> dict[str, Schema]:
    return {
        f"{service}.{name}": _model(model, service)
        for name, model in vars(models).items()
        if inspect.isclass(model) and hasattr(model, "__init__") and model.__module__.startswith("oci.")
    }


def _model(model: Any, service: str) -> Schema:
    one = model()
    fields: dict[str, Schema] = {}
    required = []
    for attribute, kind in one.swagger_types.items():
        declared = inspect.getattr_static(model, attribute)
        schema = _form(kind, service)
        allowed = re.search(r"allowed_values = \[([^\]]*)\]", inspect.getsource(declared.fset))
        values = re.findall(r'"([^"]*)"', allowed.group(1)) if allowed else []
        if values and schema.get("type") == "string":
            schema["enum"] = values
        elif values and schema.get("type") == "array":
            schema["items"] = {"type": "string", "enum": values}
        fields[one.attribute_map[attribute]] = schema
        if "**[Required]**" in (declared.fget.__doc__ or ""):
            required.append(one.attribute_map[attribute])
    own: Schema = {"type": "object", "properties": fields, "required": required, "additionalProperties": False}
    below = _below(model)
    return {"anyOf": [ref(f"{service}.{name}") for name in below]} if below else own


def _below(model: Any) -> list[str]:
    choose = vars(model).get("get_subtype")
    return re.findall(r"return '(\w+)'", inspect.getsource(choose.__func__))[:-1] if choose else []


def _form(kind: str, service: str) -> Schema:
    if kind.startswith("list["):
        return {"type": "array", "items": _form(kind[5:-1], service)}
    if kind.startswith("dict("):
        return {"type": "object", "additionalProperties": _form(kind[5:-1].split(", ", 1)[1], service)}
    return dict(SCALARS[kind]) if kind in SCALARS else {} if kind == "stream" else ref(f"{service}.{kind}")
