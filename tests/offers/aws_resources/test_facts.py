"""What the protocol knows of every type of AWS, by its schema: walked over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from fractal_cloud.model.commands import command_errors, values_of
from fractal_cloud.model.wording import FACTS
from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.aws.resources.facts import Described
from fractal_cloud.offers.aws.resources.family import aws_resources
from fractal_cloud.offers.aws.resources.schema import dotted
from fractal_cloud.offers.aws.resources.tables import normalisations as table
from fractal_cloud.offers.registry import installed


@cache
def described(name: str) -> Described:
    found = types.find(name)
    assert found is not None, name
    return Described(found)


def at(schema: Any, path: str) -> Iterator[dict[str, Any]]:
    """The subschemas of a property path, as they are written out for it."""
    if not path:
        yield schema
        return
    step, _, rest = path.partition(".")
    inner = (
        [schema.get("items"), schema.get("additionalProperties")]
        if step == "*"
        else [schema.get("properties", {}).get(step)]
    )
    for one in [*inner, *(option for nest in ("oneOf", "anyOf") for option in schema.get(nest, ()))]:
        if isinstance(one, dict):
            yield from at(one, rest if one in inner else path)


def test_every_type_has_facts_that_name_no_word_twice() -> None:
    for name in types.names():
        facts = described(name).facts()
        properties = facts.parameter_schema["properties"]
        assert set(facts.parameter_schema["required"]) <= set(properties), name
        assert facts.nested
        assert facts.family == "aws-resources"
        assert not (facts.is_part and facts.taggable), name
        assert all(one in properties for one in facts.key), name
        assert "Tags" not in properties or described(name).type.tags is None, name
        if facts.is_part:
            assert facts.parent is not None
            assert facts.parent in properties, name
            assert facts.references()[facts.parent][0].startswith("AWS::"), name


@pytest.mark.rule("S15", "S17")
def test_nothing_is_named_by_what_no_read_returns() -> None:
    """It would never be found again, and be made a second time after its answer was lost."""
    hidden = {
        name: sorted({described(name).name_parameter, *described(name).key} & described(name).type.write_only)
        for name in types.names()
    }
    assert {name: found for name, found in hidden.items() if found} == {}


def test_what_only_creation_can_set_is_immutable() -> None:
    for name in types.names():
        kind = described(name).type
        schema = described(name).facts().parameter_schema
        for path in kind.create_only:
            if path in schema["properties"] and "." not in path:
                assert schema["properties"][path].get(FACTS, {}).get("immutable"), f"{name}: {path}"


@pytest.mark.rule("A8")
def test_what_is_only_written_is_never_swept() -> None:
    facts = described("AWS::RDS::DBInstance").facts().parameter_schema["properties"]
    password = facts["MasterUserPassword"][FACTS]
    assert password["writeOnly"]
    assert password["sensitive"]
    assert "swept" not in password
    assert facts["AllocatedStorage"][FACTS]["swept"]


def test_marks_of_one_path_do_not_reach_others_of_the_same_definition() -> None:
    schema = described("AWS::EC2::SecurityGroup").facts().parameter_schema
    ingress = next(at(schema, "SecurityGroupIngress.*.SourceSecurityGroupName"))
    assert ingress[FACTS]["writeOnly"]


def test_lists_without_order_are_sets_and_documents_are_compared_by_value() -> None:
    queue = described("AWS::SQS::Queue").facts().parameter_schema["properties"]
    assert queue["RedrivePolicy"][FACTS]["compare"] == "json"
    role = described("AWS::IAM::Role").facts().parameter_schema["properties"]
    assert role["AssumeRolePolicyDocument"][FACTS]["compare"] == "policy"
    assert role["ManagedPolicyArns"][FACTS]["list"] == "set"
    table_ = described("AWS::DynamoDB::Table").facts().parameter_schema["properties"]
    assert table_["AttributeDefinitions"][FACTS] == {"list": "keyed", "keys": ["AttributeName"], "swept": True}


@pytest.mark.rule("G12")
def test_every_type_with_tags_that_change_has_commands_that_work_with_its_outputs() -> None:
    for name in types.names():
        facts = described(name).facts()
        known = {*facts.outputs, "resourceId", "region", "account"}
        for command in [*facts.glass.break_glass, *facts.glass.readopt]:
            assert not command_errors(command), f"{name}: {command}"
            assert values_of(command) <= known, f"{name}: {command}"
        by_tags = facts.taggable and not facts.tags_frozen
        assert (facts.glass.break_glass and facts.glass.readopt) or not by_tags, name


def test_every_row_of_the_normalisations_is_of_a_property_that_exists() -> None:
    tables = [
        *table.COMPARED.values(),
        *table.SPELLED.values(),
        table.SETS,
        table.DOCUMENTS,
        table.SETTINGS,
        table.DEFAULTS,
    ]
    for rows in tables:
        for name, paths in rows.items():
            properties = described(name).type.properties["properties"]
            for path in paths:
                assert path.partition(".")[0] in properties, f"{name}: {path}"


def test_identifiers_that_return_are_said_and_generated_ones_do_not() -> None:
    assert described("AWS::SQS::Queue").ids_return
    assert not described("AWS::EC2::VPC").ids_return
    assert described("AWS::IAM::Role").incarnation == "RoleId"
    assert not described("AWS::IAM::Role").ids_return


def test_parts_and_compound_identifiers_are_named_by_their_keys() -> None:
    assert described("AWS::IAM::RolePolicy").key == ("PolicyName",)
    assert described("AWS::S3::BucketPolicy").is_only_part
    assert described("AWS::EKS::Addon").key == ("ClusterName", "AddonName")
    assert described("AWS::SQS::Queue").key == ()
    assert dotted("/properties/A/*/B") == "A.*.B"


def test_what_is_no_type_is_refused_with_what_to_declare() -> None:
    assert "did you mean 'AWS::SQS::Queue'" in aws_resources.refusal("AWS::SQS::Queu")
    assert "AWS::SQS::QueueInlinePolicy" in aws_resources.refusal("AWS::SQS::QueuePolicy")
    twins = {offer.vendor_type for offer in installed("aws").of_provider("aws")}
    assert "AWS::S3::Bucket" in twins
    assert all(types.find(one) is not None for one in twins if one)
