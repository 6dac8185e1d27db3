"""From a published schema to the schema of a type's parameters, with the marks by which declared and actual compare.

The marks are those of nested parameters: by what elements of lists are distinguished, whose the other entries are,
what the server fills in. Pure. Which parameters a type has beside its object's own fields does not belong here.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from fractal_cloud.model.wording import FACTS
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import KindFacts, Schema
from fractal_cloud.offers.kubernetes.any_kind.tables import (
    DEFAULTS,
    EMPTY_SAYS_SOMETHING,
    FALSE_SAYS_SOMETHING,
    FILLED_IN,
    ZERO_IS_NOTHING,
)

_PREFIXES: Final = (
    "io.k8s.apiextensions-apiserver.pkg.apis.",
    "io.k8s.apimachinery.pkg.apis.",
    "io.k8s.kube-aggregator.pkg.apis.",
    "io.k8s.apimachinery.pkg.",
    "io.k8s.api.",
)
_OBJECT_META: Final = "ObjectMeta"
_OF_OTHERS: Final = {"labels", "annotations"}
_QUANTITY: Final = {"type": ["string", "number"], FACTS: {"compare": "quantity"}}
_INT_OR_STRING: Final = {"type": ["integer", "string"], FACTS: {"compare": "intOrString"}}
_ANY: Final = "anything"
ANYTHING: Final[Schema] = {"$ref": f"#/$defs/{_ANY}"}
"""A value of which no schema is known: of objects in it, what is declared is compared, and nothing else."""
OF_ANYTHING: Final[Schema] = {"additionalProperties": ANYTHING, FACTS: {"others": True}}
_SPECIAL: Final[Mapping[str, Schema]] = {
    "Quantity": _QUANTITY,
    "IntOrString": _INT_OR_STRING,
    "JSONSchemaPropsOrArray": {},
    "JSONSchemaPropsOrBool": {},
    "JSONSchemaPropsOrStringArray": {},
}
_UNKNOWN: Final = frozenset({"JSON", "RawExtension"})
_KEPT: Final = ("enum", "minimum", "maximum", "pattern", "minLength", "maxLength", "minItems", "maxItems", "required")


def converted(facts: KindFacts) -> tuple[Schema, dict[str, Schema]]:
    """The schema of an object's fields, and the definitions that it refers to."""
    converter = _Converter(facts.definitions)
    return converter.schema(facts.schema), converter.found


def marked(schema: Schema, defs: dict[str, Schema], path: str, marks: Mapping[str, Any]) -> None:
    """Put marks on the field at a dotted path; definitions on the way are copied first, for others use them, too."""
    here, at = schema, ""
    for name in path.split("."):
        here = _entered(here, defs, at)
        properties = here.get("properties", {})
        if name not in properties:
            return
        at = f"{at}.{name}" if at else name
        properties[name] = here = dict(properties[name])
    here[FACTS] = {**here.get(FACTS, {}), **marks}


def _entered(schema: Schema, defs: dict[str, Schema], at: str) -> Schema:
    """The schema itself, or the definition it refers to: under a name of its own, so that it can be changed."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    name = reference.rpartition("/")[2]
    own = f"at {at}"
    if name != own:
        defs[own] = deepcopy(defs[name])
        schema["$ref"] = f"#/$defs/{own}"
    return defs[own]


def short_name(name: str) -> str:
    """A definition's name without what all of them begin with."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


class _Converter:
    """Converts schemas, and the definitions they lead to."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self.found: dict[str, Schema] = {_ANY: deepcopy(OF_ANYTHING)}

    def schema(self, said: Mapping[str, Any], name: str = "") -> Schema:
        """One schema; ``name``: the field whose it is."""
        inner = said.get("allOf")
        if isinstance(inner, list) and len(inner) == 1:
            said = {**inner[0], **{key: value for key, value in said.items() if key != "allOf"}}
        if "$ref" in said:
            return self._referred(str(said["$ref"]).rpartition("/")[2])
        if said.get("x-kubernetes-int-or-string") or said.get("format") == "int-or-string":
            return deepcopy(_INT_OR_STRING)
        if said.get("format") == "quantity":
            return deepcopy(_QUANTITY)
        match said.get("type"):
            case "object":
                return self._object(said)
            case "array":
                return self._array(said)
            case None:
                return self._object(said) if "properties" in said else dict(ANYTHING)
        found = {"type": said["type"], **{key: said[key] for key in _KEPT if key in said and key != "required"}}
        default = _default(name, said)
        return found if default is None else {**found, FACTS: {"default": default}}

    def _referred(self, name: str) -> Schema:
        last = name.rpartition(".")[2]
        if last in _SPECIAL:
            return deepcopy(dict(_SPECIAL[last]))
        definition = self._definitions.get(name)
        if definition is None or last in _UNKNOWN:
            return dict(ANYTHING)
        if definition.get("type") not in (None, "object"):
            return self.schema(definition)
        if not definition.get("properties") and "additionalProperties" not in definition:
            return dict(ANYTHING)
        short = short_name(name)
        if short not in self.found:
            self.found[short] = {}
            self.found[short] = self._object(definition, short)
        return {"$ref": f"#/$defs/{short}"}

    def _object(self, said: Mapping[str, Any], name: str = "") -> Schema:
        properties = said.get("properties")
        if not properties:
            entries = said.get("additionalProperties")
            if not isinstance(entries, Mapping):
                return dict(ANYTHING)
            return {"type": "object", "additionalProperties": self.schema(entries)}
        fields = {field: self.schema(one, field) for field, one in properties.items()}
        for field, default in DEFAULTS.get(name, {}).items():
            if field in fields:
                fields[field] = {**fields[field], FACTS: {**fields[field].get(FACTS, {}), "default": default}}
        of_others = _OF_OTHERS if name.endswith(_OBJECT_META) else FILLED_IN
        for field in of_others & fields.keys():
            if isinstance(fields[field].get("additionalProperties"), Mapping):
                fields[field] = {**fields[field], FACTS: {"others": True}}
        found: Schema = {"type": "object", "properties": fields}
        required = [one for one in said.get("required", ()) if one in fields]
        if required:
            found["required"] = required
        is_open = said.get("x-kubernetes-preserve-unknown-fields") or said.get("additionalProperties")
        found["additionalProperties"] = dict(ANYTHING) if is_open else False
        return found

    def _array(self, said: Mapping[str, Any]) -> Schema:
        found: Schema = {"type": "array", "items": self.schema(said.get("items") or {})}
        found |= {key: said[key] for key in _KEPT if key in said and key != "required"}
        marks = _list_marks(said)
        return {**found, FACTS: marks} if marks else found


def _list_marks(said: Mapping[str, Any]) -> dict[str, Any]:
    """How the elements of a list are distinguished: as the server itself merges them."""
    kind = said.get("x-kubernetes-list-type")
    keys = said.get("x-kubernetes-list-map-keys")
    if kind is None and said.get("x-kubernetes-patch-strategy", "").startswith("merge"):
        key = said.get("x-kubernetes-patch-merge-key")
        kind, keys = ("map", [key]) if key else ("set", None)
    if kind == "map" and keys:
        return {"list": "keyed", "keys": list(keys), "others": True}
    return {"list": "set", "others": True} if kind == "set" else {}


def _default(name: str, said: Mapping[str, Any]) -> Any:
    """What the server fills in, or leaves out because it says nothing; entries of maps and lists have no name."""
    if "default" in said or not name:
        return said.get("default")
    match said["type"]:
        case "boolean":
            return None if name in FALSE_SAYS_SOMETHING else False
        case "integer":
            return 0 if name in ZERO_IS_NOTHING else None
        case "string":
            return None if name in EMPTY_SAYS_SOMETHING or "enum" in said else ""
    return None
