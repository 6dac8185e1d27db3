"""A type with one parameter of every nested kind."""

from __future__ import annotations

from typing import Any

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.rules.drift import ComparedType


def marked(node: dict[str, Any], **marks: Any) -> dict[str, Any]:
    """A schema with marks of ours."""
    return {**node, "x-fractal": {**node.get("x-fractal", {}), **marks}}


TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
TAG: dict[str, Any] = {
    "type": "object",
    "properties": {
        "Key": TEXT,
        "Value": TEXT,
        "Size": NUMBER,
        "Names": marked({"type": "array", "items": TEXT}, list="set"),
    },
}
PORT: dict[str, Any] = {
    "type": "object",
    "properties": {"port": NUMBER, "protocol": marked(TEXT, default="TCP"), "name": TEXT},
}

PROPERTIES: dict[str, Any] = {
    "region": marked(TEXT, immutable=True),
    "Name": TEXT,
    "Size": NUMBER,
    "Fast": {"type": "boolean"},
    "Anything": {},
    "Types": marked({"type": "array", "items": TEXT}, list="set", default=["audio", "video"]),
    "Order": marked({"type": "array", "items": TEXT}, default=["first", "second"]),
    "Log": marked({"type": "object", "properties": {"Level": TEXT, "Format": TEXT}}, default={"Level": "info"}),
    "Processors": marked(
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {name: {"type": "object", "properties": {"Of": TEXT}} for name in ("Lower", "Upper")},
                "maxProperties": 1,
            },
        },
        list="set",
    ),
    "Mode": marked(TEXT, default="standard"),
    "Policy": {
        "type": "object",
        "properties": {
            "Target": marked(TEXT, immutable=True),
            "Count": NUMBER,
            "Deep": {"type": "object", "properties": {"Flag": {"type": "boolean"}, "Text": TEXT}},
            "Secret": marked(TEXT, writeOnly=True, sensitive=True),
            "Made": marked(TEXT, readOnly=True),
        },
    },
    "Labels": {"type": "object", "additionalProperties": TEXT},
    "Shared": marked({"type": "object", "additionalProperties": TEXT}, others=True),
    "Steps": {"type": "array", "items": TAG},
    "Tags": marked({"type": "array", "items": TAG}, list="set"),
    "Groups": marked({"type": "array", "items": TEXT}, list="set"),
    "Finalizers": marked({"type": "array", "items": TEXT}, list="set", others=True),
    "Ports": marked({"type": "array", "items": PORT}, list="keyed", keys=["port", "protocol"]),
    "Containers": marked(
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": TEXT,
                    "image": TEXT,
                    "args": {"type": "array", "items": TEXT},
                    "env": marked({"type": "array", "items": TAG}, list="keyed", keys=["Key"]),
                    "token": marked(TEXT, writeOnly=True),
                },
            },
        },
        list="keyed",
        keys=["name"],
        others=True,
    ),
    "Users": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"Name": TEXT, "Password": marked(TEXT, writeOnly=True, secret=True)},
        },
    },
    "Document": marked({"type": ["object", "string"]}, compare="json"),
    "Access": marked({"type": ["object", "string"]}, compare="policy"),
    "Role": marked(TEXT, compare="arn"),
    "Roles": marked({"type": "array", "items": marked(TEXT, compare="arn")}, list="set"),
    "Range": marked(TEXT, compare="cidr"),
    "Engine": marked(TEXT, compare="caseless"),
    "Memory": marked(TEXT, compare="quantity"),
    "Every": marked(TEXT, compare="duration"),
    "Domain": marked(TEXT, compare="domain"),
    "PortOrName": marked({}, compare="intOrString"),
    "Tree": {"$ref": "#/$defs/Tree"},
    "Loop": {"$ref": "#/$defs/Loop"},
    "Lost": {"$ref": "#/$defs/Nowhere"},
    "Either": {
        "oneOf": [{"type": "object", "properties": {"A": NUMBER}}, {"type": "object", "properties": {"B": TEXT}}]
    },
}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": PROPERTIES,
    "additionalProperties": False,
    "$defs": {
        "Tree": {
            "type": "object",
            "properties": {"Value": NUMBER, "Branches": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
        },
        "Loop": {"$ref": "#/$defs/Pool"},
        "Pool": {"$ref": "#/$defs/Loop"},
    },
}

FACTS = TypeFacts(
    type="Toy::Nested::Thing",
    provider="toys",
    title="Thing",
    parameter_schema=SCHEMA,
    place=["region"],
    family="toy-types",
    name_parameter="Name",
    nested=True,
)
COMPARED = ComparedType(FACTS)
