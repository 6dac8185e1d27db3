"""SOAP of vSphere as JSON of its table's form, and back: what is sent, what is answered, and refusals.

Elements are read by the type that the table declares, or that they name themselves; an element that the table does not
know is read as it stands. Whether any of it is as the vendor says does not belong here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from fractal_sandbox.vsphere.simulator import ENVELOPE
from tests.vendors.contract import Contract, Exchange

TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"
XSD = ' xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
REFERENCE = "ManagedObjectReference"
BY_OWNER = {"ObjectContent": "obj", "PropertySpec": "type"}
"""Types whose form depends on a type that one of their elements names."""
Schema = Mapping[str, Any]


def translated(contract: Contract, raw: Exchange) -> Exchange:
    """Return an exchange in the words of the table."""
    if raw.path != "/sdk":
        return replace(raw, target=rest_path(raw.target))
    soap = Soap(contract)
    path, body = soap.request(raw.body)
    answer = None if raw.answer is None else soap.answer(path, raw.answer)
    return replace(
        raw,
        target=path,
        body=json.dumps(body),
        answer=None if answer is None else json.dumps(answer) if answer != "" else "",
    )


def rest_path(target: str) -> str:
    """The path of a call about tags, with its action in it."""
    split = urlsplit(target)
    return split.path + (f"/{unquote(split.query)}" if split.query else "")


class Soap:
    """Bodies in the types of one table."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._schemas = contract.schemas

    def request(self, text: str) -> tuple[str, Any]:
        """Return the path of a call in the table, and what it carries."""
        method = _content(text)
        name = _local(method.tag)
        this = next((one for one in method if _local(one.tag) == "_this"), None)
        kind = this.get("type", "") if this is not None else ""
        if name == "Fetch":
            name = f"Fetch.{next((one.text for one in method if _local(one.tag) == 'prop'), '')}"
        path = f"/sdk/{kind}.{name}"
        found = self._contract.operation_of("POST", path)
        return path, self._object(found["body"] if found else {}, method)

    def answer(self, path: str, text: str) -> Any:
        """Return what is answered to a call; nothing where it is no SOAP."""
        try:
            content = _content(text)
        except ElementTree.ParseError:
            return ""
        if _local(content.tag) == "Fault":
            parts = {_local(one.tag): one for one in content}
            detail = next(iter(parts["detail"]), None) if "detail" in parts else None
            return {
                **{name: one.text or "" for name, one in parts.items() if name != "detail"},
                **({} if detail is None else {"detail": self._detail(detail)}),
            }
        found = self._contract.operation_of("POST", path)
        return self._object(found["answers"]["200"] if found else {}, content)

    def written(self, path: str, answer: Mapping[str, Any]) -> str:
        """Return the SOAP of an answer to a call that the table knows."""
        found = self._contract.operation_of("POST", path)
        assert found
        method = path.rpartition(".")[2] if ".Fetch." not in path else "Fetch"
        is_any = method == "Fetch"
        inner = "".join(
            self._element(found["answers"]["200"]["properties"].get(name, {}), name, value, is_any=is_any)
            for name, value in answer.items()
        )
        return ENVELOPE.format(f'<{method}Response xmlns="urn:vim25"{XSD}>{inner}</{method}Response>')

    # --- reading

    def _detail(self, element: ElementTree.Element) -> Any:
        """The error itself: its element is called like its type, which it names, too."""
        name = _local(element.tag).removesuffix("Fault")
        return {"@type": _given(element) or name, **self._object(self._schemas.get(name, {}), element)}

    def _value(self, schema: Schema, element: ElementTree.Element) -> Any:
        given = _given(element)
        declared = schema.get("ofType", "")
        if given.startswith("ArrayOf"):
            items = schema.get("items") or self._named(given.removeprefix("ArrayOf"))
            return [self._value(items, one) for one in element]
        if given == REFERENCE or (not given and "type" in element.attrib):
            return {"type": element.get("type"), "value": element.text or ""}
        name = given or declared
        form = self._schemas.get(name)
        if form is not None and "bases" in form:
            found = self._object(form, element)
            named = {"@type": given} if given else {}
            if name in BY_OWNER:
                named = self._by_owner(name, found)
            return {**named, **found}
        if declared == "anyType" and given:
            return {"@type": given, "value": _scalar(self._resolved(self._named(given)), element.text or "")}
        if len(element):
            return self._object({}, element)
        return _scalar(self._resolved(self._named(given) if given else schema), element.text or "")

    def _by_owner(self, name: str, found: dict[str, Any]) -> dict[str, Any]:
        owner = found.get(BY_OWNER[name])
        special = f"{name} of {owner['type'] if isinstance(owner, dict) else owner}"
        return {"@type": special} if special in self._schemas else {}

    def _object(self, schema: Schema, element: ElementTree.Element) -> dict[str, Any]:
        fields = schema.get("properties", {})
        made: dict[str, Any] = {}
        for one in element:
            name = _local(one.tag)
            form = fields.get(name, {})
            if name == "propSet" and _local(element.tag) in ("objects", "returnval"):
                made.setdefault(name, {}).update(self._property(element, one))
            elif form.get("type") == "array" and not _given(one).startswith("ArrayOf"):
                made.setdefault(name, []).append(self._value(form["items"], one))
            elif name in made:
                made[name] = [*(made[name] if isinstance(made[name], list) else [made[name]]), self._value(form, one)]
            else:
                made[name] = self._value(form, one)
        return made

    def _property(self, content: ElementTree.Element, pair: ElementTree.Element) -> dict[str, Any]:
        """One property of an object, by its path."""
        owner = next((one.get("type", "") for one in content if _local(one.tag) == "obj"), "")
        paths = self._schemas.get(f"ObjectContent of {owner}", {}).get("properties", {}).get("propSet", {})
        name = next((one.text or "" for one in pair if _local(one.tag) == "name"), "")
        value = next((one for one in pair if _local(one.tag) == "val"), None)
        return {} if value is None else {name: self._value(paths.get("properties", {}).get(name, {}), value)}

    def _named(self, name: str) -> Schema:
        plain = f"xsd:{name[:1].lower()}{name[1:]}"
        if plain in self._schemas:
            return {"$ref": f"#/$defs/{plain}"}
        return {"ofType": name} if name in self._schemas else {}

    def _resolved(self, schema: Schema) -> Schema:
        if "ofType" in schema:
            found: Schema = self._schemas.get(schema["ofType"], {})
            return found
        return self._schemas[schema["$ref"].removeprefix("#/$defs/")] if "$ref" in schema else schema

    # --- writing

    def _element(self, schema: Schema, tag: str, value: Any, *, is_any: bool = False) -> str:
        """An element; ``is_any``: what it is must stand with it. What is null is left out: XML has no such value."""
        if value is None:
            return ""
        if isinstance(value, list):
            if not is_any:
                return "".join(self._element(schema.get("items", {}), tag, one) for one in value)
            kind = self._kind(schema.get("items", {}))
            inner = "".join(self._element(schema.get("items", {}), kind.removeprefix("xsd:"), one) for one in value)
            return _tagged(tag, inner, f"ArrayOf{kind.removeprefix('xsd:')[:1].upper()}{kind.removeprefix('xsd:')[1:]}")
        if not isinstance(value, dict):
            text = json.dumps(value) if isinstance(value, bool | int | float) else escape(str(value))
            return _tagged(tag, text, self._kind(schema) if is_any else "")
        if set(value) >= {"type", "value"} and not schema.get("ofType"):
            named = f' xsi:type="{REFERENCE}"' if is_any else ""
            return f"<{tag} type={quoteattr(str(value['type']))}{named}>{escape(str(value['value']))}</{tag}>"
        given = str(value.get("@type", ""))
        if schema.get("ofType") == "anyType" and set(value) == {"@type", "value"}:
            return _tagged(tag, escape(str(value["value"])), f"xsd:{given}")
        form = self._schemas.get(given or schema.get("ofType", ""), {})
        inner = "".join(self._inner(form, value))
        plain = "" if " of " in given else given
        return _tagged(tag, inner, plain or (schema.get("ofType", "") if is_any else ""))

    def _inner(self, form: Schema, value: Mapping[str, Any]) -> Iterator[str]:
        fields = form.get("properties", {})
        for name, one in value.items():
            if name == "propSet" and isinstance(one, dict):
                paths = fields.get(name, {}).get("properties", {})
                for path, found in one.items():
                    if found is not None and path in paths:  # what was not asked for is not answered
                        inner = self._element(paths[path], "val", found, is_any=True)
                        yield f"<propSet><name>{path}</name>{inner}</propSet>"
            elif name != "@type":
                yield self._element(fields.get(name, {}), name, one)

    def _kind(self, schema: Schema) -> str:
        name = str(schema.get("ofType") or schema.get("$ref", "xsd:string").removeprefix("#/$defs/"))
        return REFERENCE if name.startswith(REFERENCE) else name


def _content(text: str) -> ElementTree.Element:
    body = next(one for one in ElementTree.fromstring(text) if _local(one.tag) == "Body")
    return body[0]


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _given(element: ElementTree.Element) -> str:
    return element.get(TYPE, "").rpartition(":")[2]


def _tagged(tag: str, inner: str, kind: str) -> str:
    named = f' xsi:type="{kind}"' if kind else ""
    return f"<{tag}{named}>{inner}</{tag}>"


def _scalar(schema: Schema, text: str) -> Any:
    kind = schema.get("type")
    if kind == "integer" and re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if kind == "number" and re.fullmatch(r"[+-]?[\d.]+([eE][+-]?\d+)?", text):
        return float(text)
    if kind == "boolean" and text in ("true", "false", "1", "0"):
        return text in ("true", "1")
    return text
