"""Every type of the catalogue is made, read, patched and deleted by its schema alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.aws.answer import AwsError
from fractal_sandbox.aws.cloudcontrol import handling
from fractal_sandbox.aws.cloudcontrol.parts import parts
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, catalog
from fractal_sandbox.aws.cloudcontrol.shapes import reshaped
from fractal_sandbox.aws.cloudcontrol.store import STORE
from fractal_sandbox.aws.cloudcontrol.twins import find_twin
from fractal_sandbox.aws.cloudcontrol.values import arn_of
from tests.offers.aws_resources.generating import NoValue, Values

REGION = "eu-central-1"
# Whose generated values do not fit its own patterns.
NO_VALUE = {"AWS::QuickSight::OAuthClientApplication"}


def plain_types(step: int) -> Iterator[TypeSchema]:
    """Return every so many-th type that no other service of the sandbox has."""
    for name in catalog().names[::step]:
        schema = catalog().find(name)
        if schema is not None and find_twin(name) is None and name not in NO_VALUE:
            yield schema


class WriteOnlyMissing(Exception):
    """A patch does not bring what is only ever written, and AWS wants it."""


def updated(schema: TypeSchema, shown: dict[str, Any], document: str) -> dict[str, Any]:
    try:
        return handling.updated(schema, shown, document)
    except AwsError as refused:
        if "required key" in refused.message:
            raise WriteOnlyMissing from None
        raise


def live(schema: TypeSchema, seed: int) -> None:
    """Let a resource of a type live once; raises where anything of it fails."""
    wanted = handling.desired(schema, json.dumps(Values(schema.name, seed).properties()))
    identifier = handling.create(schema, wanted, REGION)
    model = STORE.find(schema, identifier, REGION)
    assert model is not None
    shown = reshaped(schema, identifier, STORE.shown(schema, model), REGION, seed)
    arn = arn_of(schema, identifier, model, REGION)
    assert arn.count(":") >= 5, arn
    assert (STORE.by_arn(arn) is None) == (schema.name in parts()), "a part has no ARN of its own"
    if schema.can("update"):
        test = [{"op": "test", "path": f"/{name}", "value": shown[name]} for name in shown]
        with suppress(WriteOnlyMissing):
            after = updated(schema, shown, json.dumps(test))
            handling.update(schema, identifier, shown, after, REGION)
        assert STORE.find(schema, identifier, REGION) == model
    handling.delete(schema, identifier, REGION)
    assert STORE.find(schema, identifier, REGION) is None


def live_all(step: int, seed: int) -> int:
    count = 0
    for schema in plain_types(step):
        try:
            live(schema, seed)
        except NoValue:
            continue
        count += 1
    return count


def test_one_type_in_twenty_lives(sandbox: Sandbox) -> None:
    assert live_all(20, seed=3) > 50


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [3, 4])
def test_every_type_lives(sandbox: Sandbox, seed: int) -> None:
    assert live_all(1, seed) > 1200
