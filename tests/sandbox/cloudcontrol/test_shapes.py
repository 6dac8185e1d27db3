"""Reads in the shapes that AWS is known to return: other texts, the same meaning, and alike in every read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.aws.cloudcontrol.schemas import catalog
from fractal_sandbox.aws.cloudcontrol.shapes import SHAPES, reshaped
from tests.sandbox.cloudcontrol.making import STREAM, create, pairs, patch, read
from tests.sandbox.conftest import Tools

PAGE = Path(__file__).parents[3] / "docs" / "aws-shapes.md"
POLICY = {
    "Version": "2012-10-17",
    "Statement": {
        "Effect": "Allow",
        "Principal": {"AWS": "123456789012"},
        "Action": ["sqs:SendMessage", "sqs:ReceiveMessage"],
        "Resource": ["*"],
    },
}


def shapes_of(type_name: str, model: dict[str, Any], *only: str) -> list[dict[str, Any]]:
    """Return what 40 seeds make of properties."""
    schema = catalog().find(type_name)
    assert schema is not None
    return [reshaped(schema, "one", model, "eu-central-1", seed, only) for seed in range(40)]


def test_every_shape_has_a_source_and_stands_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    for shape in SHAPES:
        assert shape.sources
        assert f"| `{shape.name}` | {shape.what} |" in page
        assert all(source in page for source in shape.sources)


def test_nothing_is_reshaped_without_a_seed() -> None:
    schema = catalog().find(STREAM)
    assert schema is not None
    model = {"Name": "jobs", "Tags": pairs({"a": "1", "b": "2"})}
    assert reshaped(schema, "one", model, "eu-central-1", None) is model


@pytest.mark.parametrize(
    ("shape", "type_name", "written", "returned"),
    [
        ("reordered", STREAM, {"Tags": pairs({"a": "1", "b": "2"})}, {"Tags": pairs({"b": "2", "a": "1"})}),
        ("default-filled", STREAM, {"Name": "jobs"}, {"Name": "jobs", "RetentionPeriodHours": 24}),
        ("default-left-out", "AWS::S3::Bucket", {"ObjectLockEnabled": False}, {}),
        ("empty-list", STREAM, {"Name": "jobs", "Tags": []}, {"Name": "jobs"}),
        ("empty-list", STREAM, {"Name": "jobs"}, {"Name": "jobs", "Tags": []}),
        ("number-as-text", STREAM, {"ShardCount": 2}, {"ShardCount": "2"}),
        ("case", "AWS::RDS::DBCluster", {"DBClusterIdentifier": "Main"}, {"DBClusterIdentifier": "main"}),
        (
            "arn-for-name",
            "AWS::ECS::TaskDefinition",
            {"TaskRoleArn": "jobs"},
            {"TaskRoleArn": "arn:aws:iam::123456789012:role/jobs"},
        ),
        ("trailing-dot", "AWS::Route53::HostedZone", {"Name": "example.com"}, {"Name": "example.com."}),
        ("concrete-version", "AWS::RDS::DBCluster", {"EngineVersion": "16"}, {"EngineVersion": "16.4"}),
        (
            "log-group-arn",
            "AWS::ApiGateway::Stage",
            {"AccessLogSetting": {"DestinationArn": "arn:aws:logs:eu-central-1:123456789012:log-group:a:*"}},
            {"AccessLogSetting": {"DestinationArn": "arn:aws:logs:eu-central-1:123456789012:log-group:a"}},
        ),
    ],
)
def test_a_shape_is_returned_by_some_seed_and_not_by_every(
    shape: str, type_name: str, written: dict[str, Any], returned: dict[str, Any]
) -> None:
    found = shapes_of(type_name, written, shape)
    assert returned in found
    assert written in found


def test_a_policy_comes_back_in_other_words(sandbox: Sandbox) -> None:
    found = [one["PolicyDocument"] for one in shapes_of("AWS::SQS::QueueInlinePolicy", {"PolicyDocument": POLICY})]
    documents = [json.loads(one) if isinstance(one, str) else one for one in found]
    statements = [one["Statement"][0] for one in documents]
    assert {isinstance(one, str) for one in found} == {True, False}
    assert "arn:aws:iam::123456789012:root" in [one["Principal"]["AWS"] for one in statements]
    assert ["sqs:ReceiveMessage", "sqs:SendMessage"] in [one["Action"] for one in statements]
    assert "*" in [one["Resource"] for one in statements]
    assert {one["Effect"] for one in statements} == {"Allow"}


def test_a_list_whose_order_means_something_keeps_it() -> None:
    written = {"PipelineConfig": {"Functions": ["authorize", "load", "answer"]}}
    found = shapes_of("AWS::AppSync::Resolver", written, "reordered")
    assert found == [written] * 40


def test_reads_agree_and_patches_fit_them(sandbox: Sandbox, person: Tools) -> None:
    tags = {"a": "1", "b": "2", "c": "3"}
    identifier = create(person, STREAM, {"Name": "jobs", "ShardCount": 2, "Tags": pairs(tags)})
    sandbox.aws.knobs.reshape = 5
    shown = read(person, STREAM, identifier)
    assert read(person, STREAM, identifier) == shown
    test = {"op": "test", "path": "/Tags", "value": shown["Tags"]}
    done = patch(person, STREAM, identifier, test, {"op": "add", "path": "/RetentionPeriodHours", "value": 48})
    assert done["OperationStatus"] == "SUCCESS"
    sandbox.aws.knobs.reshape = None
    kept = read(person, STREAM, identifier)
    assert (kept["ShardCount"], kept["RetentionPeriodHours"]) == (2, 48)
    assert kept["Tags"] == pairs(tags)
