"""What a request to a vCenter says: which call it is, about which machine, and what it carries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from xml.etree import ElementTree

from fractal_sandbox.rest.routes import Request

__all__ = ["Asked", "read_rest", "read_soap"]

Kind = Literal["read", "create", "modify", "delete", "attach", "detach", "word", "unknown"]
_MODIFIES = frozenset({"ReconfigVM_Task", "PowerOnVM_Task", "PowerOffVM_Task", "ShutdownGuest", "Rename_Task"})
_MACHINE: Final = "VirtualMachine"
# What only reads, or keeps something for its own session alone; whatever is not here and does nothing known to a
# machine is unknown, and no read.
_READS: Final = frozenset(
    {
        *("Login", "Logout", "SessionIsActive", "CurrentTime"),
        *("RetrieveServiceContent", "RetrieveProperties", "RetrievePropertiesEx", "Fetch"),
        *("ContinueRetrievePropertiesEx", "CancelRetrievePropertiesEx"),
        *("CreateFilter", "CreatePropertyCollector", "DestroyPropertyCollector", "DestroyPropertyFilter"),
        *("CheckForUpdates", "WaitForUpdates", "WaitForUpdatesEx", "CancelWaitForUpdates"),
        *("CreateContainerView", "CreateListView", "DestroyView"),
        *("FindByUuid", "FindAllByUuid", "FindByInventoryPath", "FindByDnsName", "FindByIp", "FindChild"),
        *("QueryOptions", "QueryConfigOption", "QueryConfigOptionDescriptor", "QueryConfigOptionEx"),
    }
)
_LISTS: Mapping[str, str] = {
    "list-attached-tags-on-objects": "listAttachedTagsOnObjects",
    "list-attached-tags": "getAttachedTags",
    "list-attached-objects-on-tags": "listAttachedObjectsOnTags",
    "list-tags-for-category": "readTagsOfCategory",
}
_ASSOCIATIONS: Final[Mapping[str, Literal["attach", "detach"]]] = {
    "attach": "attach",
    "attach-multiple-tags-to-object": "attach",
    "detach": "detach",
    "detach-multiple-tags-from-object": "detach",
}
_TAG_SPECS = re.compile(rb"<tagSpecs[^>]*>.*?</tagSpecs>", re.DOTALL)


@dataclass(frozen=True)
class Asked:
    """One call. `kind` says what it does; a `word` is a tag or a category that is made, and is nobody's resource;
    `unknown` is what nobody knows here."""

    service: str
    operation: str
    kind: Kind
    machine: str = ""
    parent: str = ""
    name: str = ""
    tag_ids: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    task: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_write(self) -> bool:
        return self.kind != "read"

    @property
    def page(self) -> int:
        return 2 if self.operation == "listMachinesContinued" else 1


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _child(element: ElementTree.Element, name: str) -> ElementTree.Element | None:
    return next((one for one in element if _local(one) == name), None)


def _text(element: ElementTree.Element, name: str) -> str:
    found = next((one for one in element.iter() if _local(one) == name), None)
    return (found.text or "") if found is not None else ""


def read_soap(body: bytes) -> Asked:
    """A SOAP call. Raises `ValueError` where it is none."""
    try:
        root = ElementTree.fromstring(body)  # noqa: S314  # from a client on this machine
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from error
    found = next((one for one in root if _local(one) == "Body"), None)
    if found is None or not len(found):
        raise ValueError("no SOAP body")
    method = found[0]
    name = _local(method)
    this = _child(method, "_this")
    target = (this.text or "") if this is not None else ""
    if name == "CreateVM_Task":
        config = _child(method, "config")
        assert config is not None
        ids = tuple(_text(one, "uuid") for one in config if _local(one) == "tagSpecs")
        called = _child(config, "name")
        return Asked(
            "vim", "createMachine", "create", "", target, (called.text or "") if called is not None else "", ids
        )
    is_machine = this is not None and this.get("type") == _MACHINE
    if name == "Destroy_Task" and is_machine:
        return Asked("vim", "deleteMachine", "delete", target)
    if name in _MODIFIES and is_machine:
        given = {_local(one) for part in method if _local(part) == "spec" for one in part}
        return Asked("vim", name, "modify", target, parameters=dict.fromkeys(sorted(given), True))
    if name in _READS:
        return _read(name, method, this)
    return Asked("vim", name, "unknown", target)


def _read(name: str, method: ElementTree.Element, this: ElementTree.Element | None) -> Asked:
    """A call that changes nothing, by what it asks for."""
    if name == "RetrievePropertiesEx":
        kinds = {one.get("type") for one in method.iter() if _local(one) == "obj"}
        if "Folder" in kinds:
            return Asked("vim", "listMachines", "read")
        if kinds == {_MACHINE}:
            return Asked("vim", "getMachine", "read", _text(method, "obj"))
        return Asked("vim", name, "read")
    if name == "Fetch":
        kind, target = (this.get("type"), this.text or "") if this is not None else ("", "")
        machine, task = (target if kind == one else "" for one in (_MACHINE, "Task"))
        return Asked("vim", name, "read", machine, name=_text(method, "prop"), task=task)
    if name == "ContinueRetrievePropertiesEx":
        return Asked("vim", "listMachinesContinued", "read", name=_text(method, "token"))
    return Asked("vim", "getMachineByUuid" if name == "FindByUuid" else name, "read")


def without_tags(body: bytes) -> bytes:
    """A creation as a vCenter without tags in that call would get it."""
    return _TAG_SPECS.sub(b"", body)


def read_rest(request: Request) -> Asked:
    """A REST call about tags."""
    noun = request.path.partition("/tagging/")[2]
    noun, _, one = noun.partition("/id:")
    action = request.query.get("~action", "")
    if request.method == "GET" or (request.method == "POST" and action.startswith("list-")):
        body = _body(request)
        several = tuple(str(item["id"]) for item in body.get("object_ids") or ())
        single = body.get("object_id") or {}
        operation = _LISTS.get(action, action) or f"read{noun.title()}"
        return Asked("tagging", operation, "read", str(single.get("id") or ""), machines=several)
    operation = action or f"{request.method.lower()}{noun.title()}"
    if noun == "tag-association" and request.method == "POST" and action in _ASSOCIATIONS:
        body = _body(request)
        ids = (one,) if one else tuple(str(tag) for tag in body.get("tag_ids") or ())
        target = body.get("object_id") or {}
        if target.get("type") == _MACHINE and target.get("id"):
            return Asked("tagging", action, _ASSOCIATIONS[action], str(target["id"]), tag_ids=ids)
    if noun in ("category", "tag") and request.method == "POST" and not one and not action:
        spec = _body(request).get("create_spec") or {}
        return Asked(
            "tagging", operation, "word", parent=str(spec.get("category_id") or ""), name=str(spec.get("name") or "")
        )
    return Asked("tagging", operation, "unknown")


def _body(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(request.body) if request.body else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
