"""Declarations of AWS's types by their own names: values made of their schemas are accepted, the rest is named."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud import LiveSystem, aws
from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.offers.aws.resources import types
from fractal_cloud.offers.installed_types import Catalog, InstalledTypes
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.validation import check
from tests.offers.aws_resources.generating import Values

REGION = "eu-west-1"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog({}, InstalledTypes.of(installed()))


def _errors(catalog: Catalog, *components: dict[str, Any]) -> dict[str, str]:
    try:
        check({"id": "shop", "components": list(components)}, catalog)
    except DeclarationError as refused:
        return {error.path.removeprefix("components[one]."): error.message for error in refused.errors}
    return {}


def _component(name: str, catalog: Catalog) -> dict[str, Any]:
    """A component with values made of a type's schema alone."""
    facts = catalog[name]
    known = facts.parameter_schema["properties"]
    values = {key: value for key, value in Values(name).properties().items() if key in known}
    return {
        "id": "one",
        "type": name,
        "parameters": {**values, **({"region": REGION} if "region" in facts.place else {})},
    }


def _check_types(names: tuple[str, ...], catalog: Catalog) -> None:
    for name in names:
        one, facts = _component(name, catalog), catalog[name]
        of_parent = {f"parameters.{facts.parent}"} if facts.parent else set()
        # The values are made for patterns as Python reads them, which is not always as AWS means them.
        errors = {path for path, message in _errors(catalog, one).items() if " that matches " not in message}
        assert errors <= of_parent, name
        one["parameters"]["NoSuchProperty"] = {"a": ["${b.c}", {"$find": 5}]}
        assert "parameters.NoSuchProperty" in {path[:25] for path in _errors(catalog, one)}, name


def test_values_of_the_vendors_schema_are_accepted(catalog: Catalog) -> None:
    _check_types(types.names()[::40], catalog)


@pytest.mark.soak
def test_values_of_every_schema_are_accepted(catalog: Catalog) -> None:
    _check_types(types.names(), catalog)


def test_a_network_is_declared_by_references_alone(catalog: Catalog) -> None:
    vpc = aws.resource("AWS::EC2::VPC", "vpc", region=REGION, CidrBlock="10.0.0.0/16")
    subnet = aws.resource("AWS::EC2::Subnet", "subnet", VpcId=vpc.output("VpcId"), CidrBlock="10.0.1.0/24")
    table = aws.resource("AWS::EC2::RouteTable", "table", VpcId=vpc.output("VpcId"))
    gateway = aws.resource("AWS::EC2::InternetGateway", "gateway", region=REGION)
    route = aws.resource(
        "AWS::EC2::Route",
        "route",
        RouteTableId=table.output("RouteTableId"),
        DestinationCidrBlock="0.0.0.0/0",
        GatewayId=gateway.output("InternetGatewayId"),
    )
    found = check(LiveSystem(id="net", components=[vpc, subnet, table, gateway, route]).to_json(), catalog)
    assert {one.id: one.dependencies for one in found.components} == {
        "vpc": [],
        "subnet": ["vpc"],
        "table": ["vpc"],
        "gateway": [],
        "route": ["table", "gateway"],
    }


def test_what_is_wrong_is_said_with_its_path_and_what_to_do(catalog: Catalog) -> None:
    policy = {"deadLetterTargetArn": "arn", "maxReceiveCount": "x", "nope": 1}
    queue = {"region": REGION, "RedrivePolicy": policy, "DelaySeconds": 1000, "QueueUrl": "x", "Tags": []}
    assert _errors(catalog, {"id": "one", "type": "AWS::SQS::Queue", "parameters": queue}) == {
        "parameters.DelaySeconds": "is 1000: must be a whole number from 0 to 900",
        "parameters.RedrivePolicy.maxReceiveCount": "is 'x': must be a whole number",
        "parameters.RedrivePolicy.nope": (
            "is no parameter of this type: there is deadLetterTargetArn, maxReceiveCount"
        ),
        "parameters.QueueUrl": "is set by the cloud alone, and other components may refer to it: take it out",
        "parameters.Tags": "is declared with every component's own `tags`, beside its parameters: write them there",
    }
    route = {"RouteTableId": "rtb-1", "DestinationCidrBlock": "0.0.0.0/0", "region": REGION}
    assert _errors(catalog, {"id": "one", "type": "AWS::EC2::Route", "parameters": route})[
        "parameters.RouteTableId"
    ] == (
        "is 'rtb-1': declare the AWS::EC2::RouteTable in this LiveSystem, and write "
        '{"$output": "ID.RouteTableId"} with its id'
    )
    assert "did you mean 'AWS::SQS::Queue'?" in _errors(catalog, {"id": "one", "type": "AWS::SQS::Que"})["type"]
