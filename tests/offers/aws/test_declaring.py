"""What a declaration of AWS components may say, checked before anything is called."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from fractal_cloud.model.component import Component, ComponentError
from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.offers.aws.ec2 import AwsEc2Instance
from fractal_cloud.offers.aws.ecs_service import AwsEcsService
from fractal_cloud.offers.aws.eks import AwsEks
from fractal_cloud.offers.aws.rds import AwsRdsPostgres
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.aws.security_group import AwsSecurityGroup
from fractal_cloud.offers.aws.subnet import AwsSubnet
from fractal_cloud.offers.aws.vpc import AwsVpc
from fractal_cloud.offers.registry import installed
from tests.offers.aws.examples import EXAMPLES

KINDS = [pytest.param(kind, id=kind.__name__) for kind in EXAMPLES]


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_is_accepted_and_says_what_it_said(kind: type[Component]) -> None:
    declaration = EXAMPLES[kind].components[-1]
    component = kind.from_parameters(declaration["id"], declaration["parameters"])
    assert component.parameters() == declaration["parameters"]
    assert component.name == declaration["id"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_and_output_is_explained(kind: type[Component]) -> None:
    facts = installed()[kind.type].facts()
    assert facts.description
    assert facts.guard
    assert all(schema.get("description") for schema in facts.parameter_schema["properties"].values())
    assert all(facts.outputs.values())


RULE = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "10.0.0.0/8"}
REFUSED: list[tuple[type[Component], dict[str, Any], str]] = [
    (AwsVpc, {"cidrBlock": "10.0.0.1/16"}, "write '10.0.0.0/16'"),
    (AwsVpc, {"cidrBlock": "10.0.0.0/8"}, "between /16 and /28"),
    (AwsVpc, {"cidrBlock": "10.0.0.0/29"}, "between /16 and /28"),
    (AwsVpc, {"cidrBlock": "300.0.0.0/16"}, "is no IPv4 block"),
    (AwsVpc, {"region": "mars"}, "region"),
    (AwsVpc, {"instanceTenancy": "host"}, "must be one of"),
    (AwsVpc, {"color": "red"}, "color"),
    (AwsSubnet, {"cidrBlock": "10.0.1.0"}, "must be text like '10.0.0.0/16'"),
    (AwsSecurityGroup, {"name": "sg-mine"}, "must not start with 'sg-'"),
    (AwsSecurityGroup, {"ingress": [{**RULE, "cidrIpv6": "::/0"}]}, "exactly one of"),
    (AwsSecurityGroup, {"ingress": [{"ipProtocol": "-1"}]}, "exactly one of"),
    (AwsSecurityGroup, {"ingress": [{"ipProtocol": "udp", "cidrIp": "10.0.0.0/8"}]}, "needs fromPort and toPort"),
    (AwsSecurityGroup, {"ingress": [{**RULE, "cidrIp": "everywhere"}]}, "is no network"),
    (AwsSecurityGroup, {"ingress": [{**RULE, "toPort": 70_000}]}, "toPort"),
    (AwsSecurityGroup, {"ingress": [{**RULE, "description": "fractal-cloud-link:x"}]}, "marks the rules which links"),
    (AwsSecurityGroup, {"egress": [RULE, {**RULE, "description": "x"}]}, "rule 2 is rule 1 once more"),
    (AwsEc2Instance, {"imageId": "ubuntu"}, "'ubuntu' is no id of an image"),
    (AwsEc2Instance, {"imageId": "ami-web"}, "'ami-web' is no id of an image"),
    (AwsEc2Instance, {"imageId": "resolve:ssm:/aws/image"}, "is no id of an image"),
    (AwsEks, {"roleArn": "role"}, '{"$output": "role.Arn"}'),
    (AwsEc2Instance, {"state": "paused"}, "state"),
    (AwsS3, {"name": "No_Bucket"}, "is no bucket name"),
    (AwsS3, {"name": "a..b"}, "is no bucket name"),
    (AwsRdsPostgres, {"name": "Orders"}, "is no name for a database"),
    (AwsRdsPostgres, {"engineVersion": "16"}, "must be text that matches"),
    (AwsRdsPostgres, {"allocatedStorage": 5}, "from 20 to"),
    (AwsEcsService, {"taskDefinition": "web"}, "names no revision"),
    (AwsEcsService, {"taskDefinition": "arn:aws:ecs:eu-west-1:1:task-definition/web"}, "names no revision"),
    (AwsEcsService, {"loadBalancers": [{"targetGroupArn": "web", "containerName": "a", "containerPort": 1}]}, "no ARN"),
    (AwsEcsService, {"capacityProviderStrategy": [], "launchType": "EC2"}, "declare one of them"),
    (AwsEcsService, {"subnets": []}, "launchType FARGATE needs subnets"),
    (AwsEks, {"subnets": ["one"]}, "at least two"),
    (AwsEks, {"version": "latest"}, "version"),
    (AwsEks, {"publicAccessCidrs": ["home"]}, "is no network"),
]


@pytest.mark.parametrize(("kind", "change", "text"), REFUSED, ids=[f"{r[0].__name__}-{r[2][:20]}" for r in REFUSED])
def test_what_aws_would_refuse_is_refused_when_it_is_declared(
    kind: type[Component], change: dict[str, Any], text: str
) -> None:
    declaration = EXAMPLES[kind].components[-1]
    with pytest.raises((ValidationError, DeclarationError)) as refused:
        kind.from_parameters(declaration["id"], {**declaration["parameters"], **change})
    assert text in str(refused.value)


def test_a_name_taken_from_the_id_is_checked_too() -> None:
    with pytest.raises((ValidationError, DeclarationError), match="is no name for a database"):
        AwsRdsPostgres(id="1orders", db_instance_class="db.t4g.medium", allocated_storage=20)


def test_a_component_can_be_named_by_itself() -> None:
    vpc = AwsVpc(id="net", region="eu-west-1", cidr_block="10.0.0.0/16")
    assert AwsSubnet(id="part", vpc=vpc, cidr_block="10.0.1.0/24").parameters()["vpc"] == "net"


@pytest.mark.parametrize(
    "written",
    [
        {**RULE, "ipProtocol": "6"},
        {**RULE, "cidrIp": "10.1.2.3/8"},
        {**RULE, "description": ""},
        {**RULE, "cidrIpv6": None},
    ],
    ids=["protocol by number", "bits behind the prefix", "nothing said", "null"],
)
def test_a_rule_is_declared_as_it_is_compared_or_the_error_says_the_spelling(written: dict[str, Any]) -> None:
    with pytest.raises((ValidationError, DeclarationError)) as refused:
        AwsSecurityGroup.from_parameters("web", {"vpc": "net", "ingress": [written]})
    assert f"write {json.dumps(RULE)}" in str(refused.value)


@pytest.mark.parametrize(
    ("parameter", "text", "said"),
    [
        ("iamInstanceProfile", "arn:aws:iam::123456789012:role/web", "is no name or ARN of an instance profile"),
        ("rootVolumeKmsKeyId", "arn:aws:kms:eu-west-1:123456789012:alias/web", "is no ARN of a KMS key"),
        ("rootVolumeKmsKeyId", "key", '{"$output": "key.Arn"}'),
    ],
)
def test_a_text_that_is_not_of_awss_form_is_refused_with_what_to_write(parameter: str, text: str, said: str) -> None:
    declared = {"imageId": "${image.ImageId}", "instanceType": "t3.medium"}
    AwsEc2Instance.from_parameters("machine", {**declared, parameter: f"${{key.{parameter}}}"})
    with pytest.raises(ComponentError) as refused:
        AwsEc2Instance.from_parameters("machine", {**declared, parameter: text})
    assert said in str(refused.value)
