"""A type that the catalogue lacks is learned from the account (DescribeType), and lives like all others."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.aws.cloudcontrol.schemas import catalog
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, REGION, one
from tests.world import World, vpc, world

THING: Final = "AWS::Private::Thing"
_VERBS: Final = ("create", "read", "update", "delete", "list")
SCHEMA: Final[dict[str, Any]] = {
    "typeName": THING,
    "description": "A thing of this account alone.",
    "properties": {
        "ThingName": {"type": "string"},
        "Power": {"type": "integer"},
        "Arn": {"type": "string"},
        "Tags": {
            "type": "array",
            "insertionOrder": False,
            "items": {
                "type": "object",
                "properties": {"Key": {"type": "string"}, "Value": {"type": "string"}},
                "required": ["Key", "Value"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["ThingName"],
    "additionalProperties": False,
    "primaryIdentifier": ["/properties/ThingName"],
    "createOnlyProperties": ["/properties/ThingName"],
    "readOnlyProperties": ["/properties/Arn"],
    "tagging": {"taggable": True, "tagOnCreate": True, "tagUpdatable": True, "tagProperty": "/properties/Tags"},
    "handlers": {verb: {"permissions": []} for verb in _VERBS},
}


@pytest.fixture
def aws(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=0.02) as made:
        session_sandbox.aws.lift_limits()
        yield made
        made.assert_safe()


@contextmanager
def running(aws: World) -> Iterator[None]:
    """The agent at work in a thread of its own: whoever deploys what is to be learned waits for it."""
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            aws.cycle()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.rule("A4", "S4", "S9")
def test_a_type_of_the_account_alone_is_learned_and_lives(aws: World) -> None:
    catalog().register(SCHEMA)
    aws.cycle()  # an agent that has never called in cannot be asked
    with running(aws):
        aws.deploy(LIVE_SYSTEM, one(THING, "thing", region=REGION, ThingName="thing", Power=3))
    aws.settle()
    assert aws.status(LIVE_SYSTEM, "thing") == "Active", aws.component(LIVE_SYSTEM, "thing")
    control = aws.person.client("cloudcontrol")
    where = {"TypeName": THING, "Identifier": "thing"}
    edit = json.dumps([{"op": "replace", "path": "/Power", "value": 9}])
    control.update_resource(**where, PatchDocument=edit)
    aws.settle()
    held = json.loads(control.get_resource(**where)["ResourceDescription"]["Properties"])
    tags = {"managed-by": "fractal-cloud", "fractal-cloud-owner": LIVE_SYSTEM}
    assert (held["Power"], {tag["Key"]: tag["Value"] for tag in held["Tags"]}) == (3, tags)
    aws.delete(LIVE_SYSTEM)
    aws.settle()
    assert control.list_resources(TypeName=THING)["ResourceDescriptions"] == []


def test_one_network_by_both_names_of_its_type_is_refused(aws: World) -> None:
    other = one("AWS::EC2::VPC", "other", region=REGION, name="net", CidrBlock="10.0.0.0/16")
    body = {"id": LIVE_SYSTEM, "components": [vpc(), other]}
    refused = aws.api.put(f"/livesystems/{LIVE_SYSTEM}", json=body)
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["path"] == "components[other]"
    assert "by another name of its type" in error["message"]
    elsewhere = {**other, "parameters": {**other["parameters"], "name": "another"}}
    assert aws.api.put(f"/livesystems/{LIVE_SYSTEM}", json={**body, "components": [vpc(), elsewhere]}).is_success
