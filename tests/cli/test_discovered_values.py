"""What `fractal discover` writes of nested values: nothing that only the cloud sets, and no secret (A8)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fractal_cloud.cli.discovery.nested_values import MayBeSecretError, NestedValues
from fractal_cloud.model.wording import FACTS
from fractal_cloud.rules.nested.shape import shape_of

SCHEMA = {
    "type": "object",
    "properties": {
        "Password": {"type": "string", FACTS: {"sensitive": True}},
        "PartitionKey": {"type": "string"},
        "Inside": {
            "type": "object",
            "properties": {
                "Arn": {"type": "string", FACTS: {"readOnly": True}},
                "Sent": {"type": "string", FACTS: {"writeOnly": True}},
                "Kept": {"type": "array", "items": {"type": "string"}},
            },
        },
        "Free": {"type": "object", "additionalProperties": {"type": "string"}},
        "Pairs": {
            "type": "array",
            "items": {"type": "object", "properties": {"Name": {"type": "string"}, "Value": {"type": "string"}}},
        },
        "Text": {"type": "string"},
    },
}
PROGRAM = base64.b64encode(b"#!/bin/sh\nlogin hunter2\n").decode()


def declared(name: str, value: Any) -> Any:
    values = NestedValues({"arn:dead": "${dead.Arn}"}.get, lambda path: path.lower())
    return values.declared(value, shape_of(SCHEMA).property(name), (name,))


def test_only_what_can_be_declared_is_kept() -> None:
    read = {"Arn": "arn:x", "Sent": "x", "Kept": ["arn:dead", "${a.b}", 1, None], "Unknown": None}
    assert declared("Inside", read) == {"Kept": ["${dead.Arn}", "$${a.b}", 1, None]}


@pytest.mark.rule("A8")
def test_what_the_schema_calls_a_secret_becomes_a_reference() -> None:
    assert declared("Password", "hunter2") == {"$secret": "password"}
    assert declared("Password", "") == ""


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Free", {"DB_PASSWORD": "hunter2"}),
        ("Pairs", [{"Name": "MODE", "Value": "fast"}, {"Name": "DB_PASSWORD", "Value": "hunter2"}]),
        ("Pairs", [{"Value": "hunter2", "Name": "api-token"}]),
        ("Text", "postgres://me:hunter2@db/shop"),
        ("Text", '{"Environment": [{"Name": "DB_PASSWORD", "Value": "hunter2"}]}'),
        ("Text", '{"dbPassword": "hunter2"}'),
        ("Text", "run:\n  echo hunter2\n"),
        ("Text", PROGRAM),
    ],
)
def test_what_may_be_a_secret_is_not_written_where_no_reference_can_stand(name: str, value: Any) -> None:
    with pytest.raises(MayBeSecretError) as refused:
        declared(name, value)
    assert str(refused.value).startswith(name)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PartitionKey", "customer"),
        ("Free", {"MODE": "fast"}),
        ("Free", {"key": "images/"}),
        ("Pairs", [{"Name": "MODE", "Value": "fast"}]),
        ("Text", '{\n  "widgets": [{"type": "metric"}]\n}'),
        ("Text", "abcdefghijklmnopqrst"),
    ],
)
def test_what_is_no_secret_stays_as_it_is(name: str, value: Any) -> None:
    assert declared(name, value) == value
