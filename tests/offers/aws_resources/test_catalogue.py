"""The packaged catalogue of AWS's types: what is in it, and that its tables speak of types that AWS has."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.aws.resources.schema import AwsType, SchemaError, Tagging, dotted, parse
from fractal_cloud.offers.aws.resources.tables.data import HOLDS_DATA
from fractal_cloud.offers.aws.resources.tables.names import NAMES
from fractal_cloud.offers.aws.resources.tables.parts import INSTEAD, PARTS
from fractal_cloud.offers.aws.resources.tables.places import home_region
from fractal_cloud.offers.aws.resources.tables.tagging import ADAPTERS

NAMED = {
    "AWS::Logs::LogGroup": ("identifier", "LogGroupName"),
    "AWS::SQS::Queue": ("property", "QueueName"),
    "AWS::SecurityHub::AutomationRule": ("property", "RuleName"),
    "AWS::BedrockAgentCore::Runtime": ("property", "AgentRuntimeName"),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": ("property", "Name"),
    "AWS::EC2::VPC": ("tag", ""),
    "AWS::Lambda::EventSourceMapping": ("tag", ""),
}


def _of(name: str) -> AwsType:
    found = types.find(name)
    assert found is not None, name
    return found


def _known(name: str) -> bool:
    return types.find(name) is not None or bool(types.unusable(name))


def test_every_usable_type_is_found_and_speaks_of_itself() -> None:
    assert len(types.names()) > 1_200
    assert list(types.names()) == sorted(types.names()) == [line.name for line in types.summaries()]
    for name in types.names():
        found = _of(name)
        assert found.name == name
        assert found.identifier
        assert {"create", "read", "delete"} <= set(found.handlers)
        assert found.tags is not None or found.part is not None or found.adapter is not None, name


def test_what_is_not_usable_says_why() -> None:
    assert types.find("AWS::SQS::QueuePolicy") is None
    assert "AWS::SQS::QueueInlinePolicy" in types.unusable("AWS::SQS::QueuePolicy")
    assert types.find("AWS::Nothing::Here") is None
    assert types.unusable("AWS::Nothing::Here") == ""


def test_a_queue_as_its_schema_says() -> None:
    queue = _of("AWS::SQS::Queue")
    assert (queue.named_by, queue.name_parameter) == ("property", "QueueName")
    assert queue.identifier == ("QueueUrl",)
    assert queue.create_only == {"FifoQueue", "QueueName"}
    assert queue.tags == Tagging("Tags", "list")
    assert queue.place == ("region",)
    assert queue.holds_data


def test_names_are_chosen_identifiers_properties_or_the_tag() -> None:
    named = {name: (_of(name).named_by, _of(name).name_parameter) for name in NAMED}
    assert named == NAMED


def test_global_types_have_no_place_and_are_called_at_home() -> None:
    role = _of("AWS::IAM::Role")
    assert role.is_global
    assert home_region(role.name, "eu-west-1") == "us-east-1"
    assert home_region(role.name, "cn-northwest-1") == "cn-north-1"
    assert home_region("AWS::GlobalAccelerator::Accelerator", "eu-west-1") == "us-west-2"


@pytest.mark.rule("S25")
@pytest.mark.parametrize("name", sorted(PARTS))
def test_a_part_and_its_parent_fit_their_schemas(name: str) -> None:
    row, part = PARTS[name], _of(name)
    parent = _of(row.parent_type)
    assert parent.tags is not None, "only what carries tags guards its parts"
    assert parent.part is None
    assert part.place == parent.place
    properties = part.properties["properties"]
    assert {row.property, *row.key} <= set(properties)
    assert {row.output, *row.also} <= set(parent.properties["properties"])
    assert {one for one, _, _ in row.derived} <= set(part.identifier)
    unknown = {one for one in part.identifier if one in part.read_only} - {one for one, _, _ in row.derived}
    assert not unknown or "list" in part.handlers, "what AWS chooses is found in a list"


def test_every_row_of_a_table_is_about_a_type_that_aws_has() -> None:
    rows = {*HOLDS_DATA, *NAMES, *PARTS, *ADAPTERS, *INSTEAD}
    assert [name for name in sorted(rows) if not _known(name)] == []


def test_adapters_name_properties_of_their_types() -> None:
    for name, adapter in ADAPTERS.items():
        found = _of(name)
        assert found.adapter == adapter
        assert {adapter.property, *filter(None, [adapter.at_creation])} <= set(found.properties["properties"])


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(SchemaError, match="typeName"):
        parse({"properties": {}})
    with pytest.raises(SchemaError, match="primaryIdentifier"):
        parse({"typeName": "AWS::A::B", "properties": {}})
    assert dotted("/properties/A/*/B") == "A.*.B"


def test_the_file_is_small_and_its_index_is_readable() -> None:
    file = resources.files("fractal_cloud.offers.aws.resources").joinpath(types.FILE)
    assert len(file.read_bytes()) <= 2_000_000
    assert json.loads(types._read(types.INDEX))["asOf"] == types.as_of()
