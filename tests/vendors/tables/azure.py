"""Azure's table, from the packages ``azure-mgmt-…`` of the api-versions that the product speaks.

Request builders are called with a serializer that notes what it is asked to write; bodies, statuses and answers stand
in the source of the operations, fields and their rules in the models.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import types
from collections.abc import Iterator
from typing import Any

from tests.vendors.tables.form import Operation, Schema, operation, ref, table

PACKAGES = {
    "azure.mgmt.network": r"Microsoft\.Network/(virtualNetworks|networkSecurityGroups|networkInterfaces)\b",
    "azure.mgmt.compute.v2024_11_01": r"Microsoft\.Compute/virtualMachines\b",
    "azure.mgmt.compute.v2024_03_02": r"Microsoft\.Compute/disks\b",
    "azure.mgmt.storage.v2024_01_01": r"Microsoft\.Storage/storageAccounts\b",
    "azure.mgmt.containerservice.v2025_03_01": r"Microsoft\.ContainerService/managedClusters\b",
    "azure.mgmt.postgresqlflexibleservers": r"Microsoft\.DBforPostgreSQL/flexibleServers\b",
    "azure.mgmt.resource.resources.v2024_11_01": r"/tags/default$|/resource[gG]roups(/\{[^/]+\})?$",
    "azure.mgmt.resource.subscriptions.v2022_12_01": r"^/subscriptions(/\{[^/]+\})?$",
    "azure.mgmt.resource.locks.v2016_09_01": r"/locks/",
}
"""Each package with the paths that are of interest to us."""

SCALARS: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "long": {"type": "integer"},
    "float": {"type": "number"},
    "decimal": {"type": "number"},
    "bool": {"type": "boolean"},
    "iso-8601": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}"},
    "rfc-1123": {"type": "string"},
    "date": {"type": "string"},
    "time": {"type": "string"},
    "duration": {"type": "string"},
    "bytearray": {"type": "string"},
    "base64": {"type": "string"},
    "unix-time": {"type": "integer"},
    "object": {},
}
RULES = {
    "pattern": "pattern",
    "max_length": "maxLength",
    "min_length": "minLength",
    "maximum": "maximum",
    "minimum": "minimum",
    "max_items": "maxItems",
    "min_items": "minItems",
    "maximum_ex": "exclusiveMaximum",
    "minimum_ex": "exclusiveMinimum",
}
ERRORS = {
    "CloudError": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"type": "string", "minLength": 1},
                    "message": {"type": "string"},
                    "target": {"type": ["string", "null"]},
                    "details": {"type": ["array", "null"]},
                    "additionalInfo": {"type": ["array", "null"]},
                },
            }
        },
    }
}
"""The envelope of the Resource Provider Contract, in which every refusal comes."""


class Noting:
    """Stands in for a module's serializer, and notes the words of a request with their rules."""

    def __init__(self) -> None:
        self.query_words: dict[str, Schema] = {}
        self.header_words: dict[str, Schema] = {}

    def url(self, name: str, _: Any, kind: str, **rules: Any) -> str:
        del kind, rules
        return f"<{name}>"

    def query(self, name: str, value: Any, kind: str, **rules: Any) -> Any:
        self.query_words[name] = {**_scalar(kind, rules), "hasDefault": value != "x"}
        return name if name != "api_version" else value

    def header(self, name: str, _: Any, kind: str, **rules: Any) -> str:
        self.header_words[name] = _scalar(kind, rules)
        return name


NEEDS = {
    "compute.v2024_11_01.VirtualMachinesOperations.list": {"$expand": "$filter"},
    "compute.v2024_11_01.VirtualMachinesOperations.list_all": {"$expand": "$filter"},
}
"""Words of a query that are refused without another one, as their descriptions say."""

ACCEPTED: dict[str, Schema] = {
    "storage.v2024_01_01.StorageAccountsOperations.create": {"isEmpty": True},
    "postgresqlflexibleservers.ServersOperations.create": ref("Accepted"),
    "postgresqlflexibleservers.ServersOperations.update": ref("Accepted"),
}
"""What comes with 202, of which the packages say nothing: seen in recordings of the real cloud (29 of 29 creations of
accounts, all writes of servers)."""
WITH_ACCEPTED: dict[str, Schema] = {
    "Accepted": {
        "type": "object",
        "required": ["operation", "startTime"],
        "additionalProperties": False,
        "properties": {"operation": {"type": "string"}, "startTime": {"type": "string"}},
    }
}


def make() -> dict[str, Any]:
    """Return the whole table."""
    operations: list[Operation] = []
    schemas: dict[str, Schema] = ERRORS | WITH_ACCEPTED
    for package, paths in PACKAGES.items():
        label = package.removeprefix("azure.mgmt.")
        operations += _operations(package, label, re.compile(paths))
        schemas |= _schemas(importlib.import_module(f"{package}.models"), label)
    for one in operations:
        one["needs"] = NEEDS.get(one["name"], {})
        if one["name"] in ACCEPTED:
            one["answers"] |= {"202": ACCEPTED[one["name"]]}
    return table(operations, schemas, errors=ref("CloudError"), anywhere=["$skiptoken", "$skipToken"])


# --- operations


def _operations(package: str, label: str, paths: re.Pattern[str]) -> Iterator[Operation]:
    for module in _modules(package):
        for group in vars(module).values():
            if inspect.isclass(group) and group.__module__ == module.__name__ and not group.__name__.startswith("_"):
                for name, method in vars(group).items():
                    if inspect.isfunction(method) and not name.startswith("begin_"):
                        found = _operation(module, group, name, method, label)
                        if found is not None and paths.search(found["path"]):
                            yield found


def _modules(package: str) -> Iterator[types.ModuleType]:
    operations = importlib.import_module(f"{package}.operations")
    names = {group.__module__ for group in vars(operations).values() if inspect.isclass(group)}
    for name in sorted(names):
        if not name.endswith("_patch"):
            yield importlib.import_module(name)


def _operation(module: types.ModuleType, group: type, name: str, method: Any, label: str) -> Operation | None:
    source = inspect.getsource(method)
    built = re.search(r"= (build_\w+_request)\(", source)
    if built is None:
        return None
    builder = getattr(module, built.group(1))
    required, optional, request = _words(module, builder)
    begin = getattr(group, "begin_" + name.removeprefix("_").removesuffix("_initial"), None)
    is_long = name.endswith("_initial")
    full = source + (inspect.getsource(begin) if is_long and begin else "")
    body = re.search(r'_serialize\.body\(\s*\w+,\s*"(\[?\w+\]?)"', source)
    answer = re.search(r'_deserialize\(\s*"([\[\]{}\w]+)",\s*pipeline_response', full)
    statuses = re.search(r"status_code not in \[([\d, ]+)\]", source)
    model = _form(answer.group(1), label) if answer else None
    codes = [code.strip() for code in (statuses.group(1) if statuses else "200").split(",")]
    return operation(
        f"{label}.{group.__name__}.{name.removeprefix('_').removesuffix('_initial')}",
        request.method,
        _template(inspect.getsource(builder)),
        query={word: {**rule, "required": word in required} for word, rule in optional.items()},
        body=_form(body.group(1), label) if body else None,
        answers={code: None if code == "204" or (is_long and code == "202") else model for code in codes},
        version=request.params["api-version"],
        isLong=is_long,
    )


def _words(module: types.ModuleType, builder: Any) -> tuple[set[str], dict[str, Schema], Any]:
    """What the query of a request must hold, what it may hold, and the request itself."""
    signature = inspect.signature(builder)
    needed = {name: "x" for name, one in signature.parameters.items() if one.default is one.empty and one.kind != 4}
    everything = {name: "x" for name, one in signature.parameters.items() if one.kind != 4}
    found = []
    for arguments in (needed, everything):
        noting = Noting()
        vars(module)["_SERIALIZER"] = noting
        vars(module)["HttpRequest"] = types.SimpleNamespace
        request = builder(**arguments)
        spelled = {value: key for key, value in request.params.items()}
        words = {"api-version": {"const": request.params["api-version"]}} if "api-version" in request.params else {}
        words |= {spelled[name]: rule for name, rule in noting.query_words.items() if name in spelled}
        found.append((words, request))
    needed_words = {name for name, rule in found[0][0].items() if "const" in rule or not rule.get("hasDefault")}
    return needed_words, {name: _without_default(rule) for name, rule in found[1][0].items()}, found[0][1]


def _without_default(rule: Schema) -> Schema:
    return {key: one for key, one in rule.items() if key != "hasDefault"}


def _template(source: str) -> str:
    found = re.search(r'"template_url",\s*"([^"]+)"', source) or re.search(r'_url = "([^"]+)"', source)
    assert found, source
    return found.group(1)


def _scalar(kind: str, rules: dict[str, Any]) -> Schema:
    return {
        **SCALARS.get(kind, {"type": "string"}),
        **{RULES[key]: rule for key, rule in rules.items() if key in RULES},
    }


# --- models


def _schemas(models: types.ModuleType, label: str) -> dict[str, Schema]:
    return {
        f"{label}.{name}": _model(model, models, label)
        for name, model in vars(models).items()
        if inspect.isclass(model) and hasattr(model, "_attribute_map")
    }


def _model(model: Any, models: types.ModuleType, label: str) -> Schema:
    own = _fields(model, models, label)
    below = [name for group in getattr(model, "_subtype_map", {}).values() for name in group.values()]
    return {"anyOf": [ref(f"{label}.{name}") for name in below] + [own]} if below else own


def _fields(model: Any, models: types.ModuleType, label: str) -> Schema:
    enums = _enums(model, models)
    whole: Schema = _object()
    for name, field in model._attribute_map.items():
        rules = model._validation.get(name, {})
        schema = _form(field["type"], label)
        if name in enums and schema.get("type") == "string":
            schema = {**schema, "enum": enums[name]}
        schema = {**schema, **{RULES[key]: rule for key, rule in rules.items() if key in RULES}}
        if "pattern" in schema:
            schema["pattern"] = schema["pattern"].replace(r"\Z", "$")
        if rules.get("readonly"):
            schema["readOnly"] = True
        if field["key"] == "":
            whole["additionalProperties"] = schema.get("additionalProperties", {})
            continue
        *outer, last = [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", field["key"])]
        inside = whole
        for part in outer:
            inside = inside["properties"].setdefault(part, _object())
        inside["properties"][last] = schema
        if rules.get("required"):
            inside["required"] = [*inside.get("required", ()), last]
    return whole


def _object() -> Schema:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _form(kind: str, label: str) -> Schema:
    if kind.startswith("["):
        return {"type": "array", "items": _form(kind[1:-1], label)}
    if kind.startswith("{"):
        return {"type": "object", "additionalProperties": _form(kind[1:-1], label)}
    return dict(SCALARS[kind]) if kind in SCALARS else ref(f"{label}.{kind}")


def _enums(model: Any, models: types.ModuleType) -> dict[str, list[str]]:
    """Which values a field may have, as the description of the model links them."""
    found = {}
    for owner in reversed(model.__mro__):
        for name, kind in re.findall(r":vartype (\w+):\s+str\s+or\s+~[\w.]+\.(\w+)", owner.__doc__ or ""):
            values = getattr(models, kind, None)
            if inspect.isclass(values) and issubclass(values, enum.Enum):
                found[name] = [one.value for one in values]
    return found
