"""Writes the facts of Aruba's API that the tests against the vendors' contracts need, from its OpenAPI documents.

    python scripts/aruba_facts.py FOLDER

FOLDER holds the documents as https://api.arubacloud.com/docs/ publishes them (`network-provider.json` and the like).
Only the paths that the product or its sandbox knows are kept, with names, types and limits of fields: no prose.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from tests.vendors.tables.form import Operation, Schema, operation, ref, table

TARGET: Final = Path(__file__).parents[1] / "tests/vendors/tables/aruba.json"
DOCUMENTS: Final = (
    "project",
    "network-provider",
    "compute-provider",
    "compute-provider_v1.1",
    "storage-provider",
    "container-provider",
)
WANTED: Final = re.compile(
    r"^/projects(/\{\w+\})?$|/(cloudServers|keyPairs|blockStorages|vpcs|subnets|securityGroups|securityRules|elasticIps)(/\{\w+\})?$"
    r"|/kaas(/\{\w+\})?(/download)?$|/cloudServers/\{\w+\}/(power\w+|associate\w+|attach\w+)$"
)
RULES: Final = ("enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems")


def make(folder: Path) -> dict[str, Any]:
    """Return the table."""
    operations: list[Operation] = []
    schemas: dict[str, Schema] = {}
    for name in DOCUMENTS:
        document = json.loads((folder / f"{name}.json").read_text())
        schemas |= {f"{name}.{key}": _form(one, name) for key, one in document["components"]["schemas"].items()}
        for path, methods in document["paths"].items():
            if WANTED.search(path):
                operations += [_operation(name, path, method, one) for method, one in methods.items()]
    errors = next(key for key in schemas if key.startswith("network-provider.") and key.endswith("ProblemDetails"))
    return table(operations, schemas, errors=ref(errors))


def _operation(document: str, path: str, method: str, one: dict[str, Any]) -> Operation:
    words = {
        parameter["name"]: {**_form(parameter.get("schema", {}), document), "required": bool(parameter.get("required"))}
        for parameter in one.get("parameters", ())
        if parameter["in"] == "query"
    }
    return operation(
        f"{document}.{method} {path.rpartition('/projects')[2]}",
        method.upper(),
        path,
        query=words,
        body=_content(one.get("requestBody"), document),
        answers={
            status: _content(answer, document) for status, answer in one["responses"].items() if status.startswith("2")
        },
    )


def _content(part: dict[str, Any] | None, document: str) -> Schema | None:
    found = ((part or {}).get("content") or {}).get("application/json")
    return _form(found.get("schema", {}), document) if found else None


def _form(schema: dict[str, Any], document: str) -> Schema:
    if "$ref" in schema:
        found: Schema = ref(f"{document}.{schema['$ref'].rpartition('/')[2]}")
    elif "allOf" in schema and len(schema["allOf"]) == 1:
        found = _form(schema["allOf"][0], document)
    elif schema.get("type") == "array":
        found = {"type": "array", "items": _form(schema.get("items", {}), document)}
    elif schema.get("type") == "object" or "properties" in schema:
        found = {"type": "object"}
        if schema.get("properties"):
            found["properties"] = {key: _form(one, document) for key, one in schema["properties"].items()}
            found["additionalProperties"] = schema.get("additionalProperties") == {}
        if schema.get("required"):
            found["required"] = schema["required"]
    else:
        found = {"type": schema["type"]} if "type" in schema else {}
    found |= {key: schema[key] for key in RULES if key in schema}
    if schema.get("nullable"):
        found = {"anyOf": [found, {"type": "null"}]}
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    TARGET.write_text(
        json.dumps(make(Path(sys.argv[1])), separators=(",", ":"), sort_keys=True).replace('},"', '},\n"') + "\n"
    )
