"""Hetzner's table, from the package ``hcloud``: field names of its classes, and what its clients send.

The vendor publishes no contract in a package. What requests may hold stands in the source of the clients' methods; what
answers hold, in the classes they are read into. Neither says which fields are required, so nothing is.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import hcloud

from tests.vendors.tables.form import Operation, Schema, operation, ref, table

PLURALS = {
    "servers": "servers.Server",
    "networks": "networks.Network",
    "volumes": "volumes.Volume",
    "firewalls": "firewalls.Firewall",
    "load_balancers": "load_balancers.LoadBalancer",
    "ssh_keys": "ssh_keys.SSHKey",
    "images": "images.Image",
    "locations": "locations.Location",
    "datacenters": "datacenters.Datacenter",
    "server_types": "server_types.ServerType",
    "load_balancer_types": "load_balancer_types.LoadBalancerType",
    "actions": "actions.Action",
    "primary_ips": "primary_ips.PrimaryIP",
    "placement_groups": "placement_groups.PlacementGroup",
}
"""What the list of a collection holds; a single one stands under the singular."""

# Not in the classes, but in https://docs.hetzner.cloud: what the package reads without a class of its own.
EXTRA: dict[str, dict[str, Schema]] = {
    "servers.Server": {"load_balancers": {"type": "array"}, "datacenter": {}},
    "servers.IPv4Address": {"id": {"type": ["integer", "null"]}},
    "servers.IPv6Network": {"id": {"type": ["integer", "null"]}},
    "servers.PublicNetworkFirewall": {"id": {"type": "integer"}},
    "images.Image": {"deleted": {"type": ["string", "null"]}, "deprecated": {"type": ["string", "null"]}},
    "networks.Network": {"load_balancers": {"type": "array", "items": {"type": "integer"}}},
    "load_balancers.LoadBalancerServiceHttp": {"cookie_lifetime": {"type": "integer"}},
    "load_balancer_types.LoadBalancerType": {"deprecated": {"type": ["string", "null"]}},
}
ERRORS: dict[str, Schema] = {
    "Error": {
        "type": "object",
        "required": ["error"],
        "additionalProperties": False,
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "additionalProperties": False,
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "details": {}},
            }
        },
    },
    "Meta": {"type": "object", "required": ["pagination"], "properties": {"pagination": ref("Pagination")}},
    "Pagination": {
        "type": "object",
        "additionalProperties": False,
        "required": ["page", "per_page", "previous_page", "next_page", "last_page", "total_entries"],
        "properties": {
            name: {"type": ["integer", "null"]}
            for name in ("page", "per_page", "previous_page", "next_page", "last_page", "total_entries")
        },
    },
}
"""https://docs.hetzner.cloud/#errors and #pagination."""


def make() -> dict[str, Any]:
    """Return the whole table."""
    schemas: dict[str, Schema] = dict(ERRORS)
    operations: list[Operation] = []
    for found in pkgutil.iter_modules(hcloud.__path__):
        if found.ispkg and found.name not in ("core", "helpers", "exp"):
            domain = importlib.import_module(f"hcloud.{found.name}.domain")
            schemas |= {f"{found.name}.{name}": _schema(found.name, name, one) for name, one in _classes(domain)}
            with_client = importlib.util.find_spec(f"hcloud.{found.name}.client")
            if with_client is not None:
                operations += _operations(importlib.import_module(f"hcloud.{found.name}.client"))
    _resolve(schemas)
    operations = list({(one["method"], one["path"]): one for one in operations}.values())
    return table(operations, schemas, errors=ref("Error"), anywhere=["page", "per_page", "sort"])


# --- answers: the classes


def _classes(domain: types.ModuleType) -> Iterator[tuple[str, Any]]:
    for name, one in vars(domain).items():
        if inspect.isclass(one) and one.__module__ == domain.__name__:
            yield name, one


def _schema(module: str, name: str, model: Any) -> Schema:
    hints = {**getattr(model, "__annotations__", {}), **getattr(model.__init__, "__annotations__", {})}
    names = getattr(model, "__api_properties__", None) or [one for one in hints if one != "return"]
    fields = {field: _form(_text(hints.get(field, "Any")), module) for field in names}
    return {
        "type": "object",
        "properties": {**fields, **EXTRA.get(f"{module}.{name}", {})},
        "additionalProperties": False,
    }


def _text(hint: Any) -> str:
    return getattr(hint, "__forward_arg__", None) or (hint.__name__ if isinstance(hint, type) else str(hint))


def _form(hint: str, module: str) -> Schema:
    forms = (
        [_one(part.strip(), module) for part in hint.split(" | ")]
        if "[" not in hint
        else [_one(hint.split(" | None", maxsplit=1)[0], module)]
    )
    if {} in forms:
        return {}
    return {"anyOf": [*forms, {"type": "null"}]}


def _one(hint: str, module: str) -> Schema:
    plain = {"int": "integer", "str": "string", "bool": "boolean", "float": "number", "None": "null"}
    if hint in plain:
        return {"type": plain[hint]}
    if hint.startswith("list["):
        inner = hint[5:-1]
        return {"type": "array", "items": _form(inner, module) if inner in plain else _linked(inner, module)}
    if hint.startswith("dict["):
        return {"type": "object"}
    return _linked(hint, module)


def _linked(hint: str, module: str) -> Schema:
    """Another resource: its id, or all of it."""
    name = hint.strip('"').removeprefix("Bound")
    return (
        {}
        if not name.isidentifier() or name == "Any"
        else {"anyOf": [ref(f"{module}.{name}"), {"type": ["integer", "string"]}]}
    )


def _resolve(schemas: dict[str, Schema]) -> None:
    """Let names of classes of other modules point there; what has no class may be anything."""
    homes = {name.rpartition(".")[2]: name for name in schemas}
    text = repr(schemas)
    for wanted in {part.split("'")[0] for part in text.split("#/$defs/")[1:]} - set(schemas):
        home = homes.get(wanted.rpartition(".")[2])
        schemas[wanted] = ref(home) if home else {}


# --- requests: the clients' methods


def _operations(client: types.ModuleType) -> Iterator[Operation]:
    for one in vars(client).values():
        if inspect.isclass(one) and one.__module__ == client.__name__ and hasattr(one, "_base_url"):
            for name, method in vars(one).items():
                if inspect.isfunction(method):
                    tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
                    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
                        if isinstance(call.func, ast.Attribute) and call.func.attr == "request":
                            yield _operation(f"{one.__name__}.{name}", one._base_url, tree, call)


def _operation(name: str, base: str, tree: ast.AST, call: ast.Call) -> Operation:
    given = {one.arg: one.value for one in call.keywords}
    path = _path(given["url"], base)
    method = ast.literal_eval(given["method"])
    data, words = given.get("json"), given.get("params")
    plural = base.strip("/")
    is_action = "/actions/" in path
    return operation(
        name,
        method,
        f"/v1{path}",
        query={key: {} for key in _keys(tree, words)} if words is not None else {},
        body=_body(tree, data),
        answers=_answers(method, path, plural, is_action=is_action),
    )


def _answers(method: str, path: str, plural: str, *, is_action: bool) -> dict[str, Schema | None]:
    kind = PLURALS.get(plural)
    if kind is None:
        return dict.fromkeys(("200", "201", "202", "204"))
    singular = plural.removesuffix("s")
    one = {"type": "object", "required": [singular], "properties": {singular: ref(kind)}}
    action = {"type": "object", "properties": {"action": ref("actions.Action"), "actions": {"type": "array"}}}
    if is_action:
        return {"200": action, "201": action, "202": action}
    if method == "DELETE":
        return {"204": None, "200": action}
    if method == "GET" and path == f"/{plural}":
        listed = {plural: {"type": "array", "items": ref(kind)}, "meta": ref("Meta")}
        return {"200": {"type": "object", "required": [plural, "meta"], "properties": listed}}
    return {"201" if method == "POST" else "200": one if path.count("/") <= 2 else None}


def _path(url: ast.expr, base: str) -> str:
    if isinstance(url, ast.JoinedStr):
        return "".join(
            str(part.value)
            if isinstance(part, ast.Constant)
            else base
            if ast.unparse(part).find("_base_url") >= 0
            else "{id}"
            for part in url.values
        )
    return base


def _body(tree: ast.AST, data: ast.expr | None) -> Schema | None:
    if data is None:
        return None
    keys = _keys(tree, data)
    return {"type": "object", "properties": {key: {} for key in keys}, "additionalProperties": False}


def _keys(tree: ast.AST, data: ast.expr) -> list[str]:
    """All names that a method puts into what it sends."""
    found = [data] if isinstance(data, ast.Dict) else []
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if ast.unparse(target) == ast.unparse(data) and isinstance(node.value, ast.Dict):
                    found.append(node.value)
                if isinstance(target, ast.Subscript) and ast.unparse(target.value) == ast.unparse(data):
                    names.append(ast.literal_eval(target.slice))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{ast.unparse(data)}.update":
            found += [one for one in node.args if isinstance(one, ast.Dict)]
    return names + [one.value for part in found for one in part.keys if isinstance(one, ast.Constant)]
