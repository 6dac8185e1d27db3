"""vSphere's table, from the type information of ``pyVmomi``, which the project's own environment has.

A SOAP call is an operation whose path is the type of the object it goes to, and the method; ``tests.vendors.soap``
reads bodies into the form described here. Beside JSON Schema there are ``ofType`` (a data object of this type or of one
derived from it, which ``@type`` names), ``order`` (of a data object's elements), ``always`` (what is never left out of
an answer), ``newer`` (the fields that a server of the oldest version has not) and ``isName`` (which object is meant, so
that another value would be another object). Tags have no SOAP: their calls are facts of our own, from the reference of
the vSphere Automation API.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyVmomi import VmomiSupport

from tests.vendors.tables.form import Operation, Schema, operation, ref, table

MANAGED = (
    *("ServiceInstance", "SessionManager", "PropertyCollector", "SearchIndex", "ViewManager", "Task"),
    *("Folder", "Datacenter", "VirtualMachine", "VirtualMachineSnapshot", "ResourcePool", "Datastore", "Network"),
    *("ComputeResource", "ClusterComputeResource", "HostSystem", "ManagedEntity", "VirtualApp"),
    *("DistributedVirtualPortgroup", "DistributedVirtualSwitch", "VmwareDistributedVirtualSwitch"),
)
"""The types of managed objects that are asked something."""
DEPTH = 3
"""How many names a property path has at most."""
OLDEST = "vim.version.version11"
"""The oldest version that the product asks in: 6.5. What is newer is not answered then."""
LINK, OPTIONAL = "ManagedObjectReference to ", 4
XML = ("text/xml",)
SCALARS: dict[str, Schema] = {
    **{name: {"type": "integer"} for name in ("byte", "short", "int", "long")},
    **{name: {"type": "number"} for name in ("float", "double")},
    **{name: {"type": "string"} for name in ("string", "anyURI", "base64Binary", "Link")},
    **{name: {"type": "string"} for name in ("TypeName", "MethodName", "PropertyPath")},
    "boolean": {"type": "boolean"},
    "dateTime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)?$"},
}
NUMBERS = {"byte": 7, "short": 15, "int": 31, "long": 63}
"""How many bits each whole number has, beside its sign."""


def make() -> dict[str, Any]:
    """Return the whole table. All types are kept: any of them may stand where one that it derives from is declared."""
    types = {name: VmomiSupport.GetWsdlType(ns, name) for ns, name in VmomiSupport._wsdlDefMap if ns == "urn:vim25"}
    managed = {name: one for name, one in types.items() if issubclass(one, VmomiSupport.ManagedObject)}
    schemas: dict[str, Schema] = {f"xsd:{name}": one for name, one in SCALARS.items()}
    for name, bits in NUMBERS.items():
        schemas[f"xsd:{name}"] = {"type": "integer", "minimum": -(2**bits), "maximum": 2**bits - 1}
    for name, one in types.items():
        if name in managed:
            derived = sorted(other for other, found in managed.items() if issubclass(found, one))
            schemas[LINK + name] = _reference(derived)
        elif issubclass(one, VmomiSupport.Enum):
            schemas[name] = {"type": "string", "enum": list(one.values)}
        else:
            schemas[name] = _data(one)
    schemas[f"{LINK}ManagedObject"] = _reference(sorted(managed))
    schemas["PropertySpec"]["properties"]["type"] = {"type": "string", "enum": sorted(managed)}
    for name in MANAGED:
        schemas |= _properties(name, managed[name], schemas)
    found = [one for name in MANAGED for one in _operations(name, managed[name])]
    kept = table([*found, *_tagging()], schemas | FACTS, errors=ref("Refusal"), hasTypes=True)
    return {**kept, "schemas": schemas | FACTS}


def wsdl_name(kind: Any) -> str:
    """The name of a type on the wire."""
    return str(VmomiSupport.GetWsdlName(kind))


def _reference(types: Iterable[str]) -> Schema:
    return {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": list(types), "isName": True},
            "value": {"type": "string", "minLength": 1},
        },
        "required": ["type", "value"],
        "additionalProperties": False,
    }


def _form(kind: Any) -> Schema:
    if issubclass(kind, list):
        return {"type": "array", "items": _form(kind.Item)}
    if issubclass(kind, VmomiSupport.ManagedObject):
        return ref(LINK + wsdl_name(kind))
    name = wsdl_name(kind)
    if name in SCALARS:
        return ref(f"xsd:{name}")
    return ref(name) if issubclass(kind, VmomiSupport.Enum) else {"ofType": name}


def _fields(found: Iterable[Any]) -> Schema:
    fields = list(found)
    return {
        "type": "object",
        "properties": {one.name: _form(one.type) for one in fields},
        "required": [one.name for one in fields if not one.flags & OPTIONAL],
        "additionalProperties": False,
        "order": [one.name for one in fields],
    }


def _data(kind: Any) -> Schema:
    newer = [one.name for one in kind._GetPropertyList() if not VmomiSupport.IsChildVersion(OLDEST, one.version)]
    bases = [wsdl_name(one) for one in kind.__mro__ if issubclass(one, VmomiSupport.DataObject)]
    return {**_fields(kind._GetPropertyList()), "bases": bases, "newer": newer}


# --- what the property collector is asked for and answers


def _properties(name: str, kind: Any, schemas: dict[str, Schema]) -> Iterator[tuple[str, Schema]]:
    """Return what is asked and answered of one type: its properties by their paths."""
    paths = {path: (form, is_always) for path, form, is_always in _paths(kind, DEPTH)}
    spec, content = schemas["PropertySpec"], schemas["ObjectContent"]
    asked = {"type": "array", "items": {"type": "string", "enum": sorted(paths)}}
    answered = {
        "type": "object",
        "properties": {path: form for path, (form, _) in paths.items()},
        "additionalProperties": False,
        "always": sorted(path for path, (_, is_always) in paths.items() if is_always),
    }
    yield (
        f"PropertySpec of {name}",
        {
            **spec,
            "properties": {**spec["properties"], "pathSet": asked},
            "bases": ["PropertySpec"],
        },
    )
    yield (
        f"ObjectContent of {name}",
        {
            **content,
            "properties": {**content["properties"], "propSet": answered},
            "bases": ["ObjectContent"],
        },
    )


def _paths(kind: Any, depth: int) -> Iterator[tuple[str, Schema, bool]]:
    for one in kind._GetPropertyList():
        is_always = not one.flags & OPTIONAL
        yield one.name, _form(one.type), is_always
        if depth > 1 and issubclass(one.type, VmomiSupport.DataObject):
            for path, form, is_inner in _paths(one.type, depth - 1):
                yield f"{one.name}.{path}", form, is_always and is_inner


# --- methods


def _operations(name: str, kind: Any) -> Iterator[Operation]:
    this = {"_this": ref(LINK + name)}
    for one in kind._GetMethodList():
        sent = _fields(one.params)
        body = {
            **sent,
            "properties": {**this, **sent["properties"]},
            "required": ["_this", *sent["required"]],
            "order": ["_this", *sent["order"]],
        }
        yield _operation(name, one.wsdlName, body, _result(one.result, is_optional=bool(one.resultFlags & OPTIONAL)))
    for one in kind._GetPropertyList():
        fields = {**this, "prop": {"const": one.name}}
        body = {
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
            "order": list(fields),
        }
        yield _operation(
            name,
            f"Fetch.{one.name}",
            body,
            _result(one.type, is_optional=bool(one.flags & OPTIONAL) or issubclass(one.type, list)),
        )


def _operation(name: str, method: str, body: Schema, answer: Schema) -> Operation:
    return operation(
        f"{name}.{method}", "POST", f"/sdk/{name}.{method}", body=body, answers={"200": answer}, accepts=XML
    )


def _result(kind: Any, *, is_optional: bool) -> Schema:
    is_void = kind is None or kind is VmomiSupport.NoneType
    return {
        "type": "object",
        "properties": {} if is_void else {"returnval": _form(kind)},
        "required": [] if is_void or is_optional else ["returnval"],
        "additionalProperties": False,
    }


# --- tags: https://developer.broadcom.com/xapis/vsphere-automation-api, com.vmware.cis.tagging as /rest serves it


def _object(required: dict[str, Schema], **optional: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
TAG: Schema = {"type": "string", "pattern": "^urn:vmomi:InventoryServiceTag:.+"}
TAGS: Schema = {"type": "array", "items": TAG}
CATEGORY: Schema = {"type": "string", "pattern": "^urn:vmomi:InventoryServiceCategory:.+"}
OBJECT = _object({"id": TEXT, "type": TEXT})
NEW_CATEGORY: dict[str, Schema] = {
    "name": TEXT,
    "description": TEXT,
    "cardinality": {"type": "string", "enum": ["SINGLE", "MULTIPLE"]},
    "associable_types": TEXTS,
}
NEW_TAG: dict[str, Schema] = {"name": TEXT, "description": TEXT, "category_id": CATEGORY}
FACTS: dict[str, Schema] = {
    "tagging.Tag": _object({"id": TAG, **NEW_TAG, "used_by": TEXTS}),
    "tagging.Category": _object({"id": CATEGORY, **NEW_CATEGORY, "used_by": TEXTS}),
    "tagging.Attached": _object({"object_id": OBJECT, "tag_ids": TAGS}),
    "tagging.Outcome": _object({"success": {"type": "boolean"}, "error_messages": {"type": "array"}}),
    "Refusal": {
        "anyOf": [
            _object({"faultcode": TEXT, "faultstring": TEXT, "detail": {"ofType": "MethodFault"}}),
            _object(
                {
                    "type": {"type": "string", "pattern": r"^com\.vmware\.vapi\.std\.errors\."},
                    "value": {
                        "type": "object",
                        "required": ["messages"],
                        "properties": {"messages": {"type": "array"}},
                    },
                }
            ),
        ]
    },
}


def _tagging() -> Iterator[Operation]:
    yield _rest("category.list", "GET", "category", None, {"type": "array", "items": CATEGORY})
    yield _rest("category.get", "GET", "category/id:{id}", None, ref("tagging.Category"))
    spec = _object(NEW_CATEGORY, category_id=TEXT)
    yield _rest("category.create", "POST", "category", _object({"create_spec": spec}), CATEGORY)
    yield _rest("tag.list", "GET", "tag", None, TAGS)
    yield _rest("tag.get", "GET", "tag/id:{id}", None, ref("tagging.Tag"))
    spec = _object(NEW_TAG, tag_id=TEXT)
    yield _rest("tag.create", "POST", "tag", _object({"create_spec": spec}), TAG)
    yield _rest("tag.list-tags-for-category", "POST", "tag/id:{id}", None, TAGS)
    one, several = _object({"object_id": OBJECT}), _object({"object_ids": {"type": "array", "items": OBJECT}})
    many = _object({"object_id": OBJECT, "tag_ids": TAGS})
    attached: Schema = {"type": "array", "items": ref("tagging.Attached")}
    yield _rest("tag-association.attach", "POST", "tag-association/id:{id}", one, None)
    yield _rest("tag-association.detach", "POST", "tag-association/id:{id}", one, None)
    for verb in ("attach-multiple-tags-to-object", "detach-multiple-tags-from-object"):
        yield _rest(f"tag-association.{verb}", "POST", "tag-association", many, ref("tagging.Outcome"))
    yield _rest("tag-association.list-attached-tags", "POST", "tag-association", one, TAGS)
    yield _rest("tag-association.list-attached-tags-on-objects", "POST", "tag-association", several, attached)


def _rest(name: str, method: str, path: str, body: Schema | None, value: Schema | None) -> Operation:
    """One call about tags; which of those at one path, ``~action`` says, which therefore stands in the path here."""
    noun, _, verb = name.partition(".")
    action = "" if verb in ("list", "get", "create") else f"/~action={verb}"
    answer = {"isEmpty": True} if value is None else _object({"value": value})
    return operation(
        f"{noun}.{verb}",
        method,
        f"/rest/com/vmware/cis/tagging/{path}{action}",
        body=body,
        answers={"200": answer},
        headers={"vmware-api-session-id": {"type": "string", "required": True}},
    )
