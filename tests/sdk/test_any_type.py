"""Any type by its own name in Python: no vendor's library, the same document as in YAML, references that are texts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from fractal_cloud import Component, DeclarationError, LiveSystem, aws, find, kubernetes, secret
from fractal_cloud import network_and_compute as nc
from fractal_cloud.model.component import ComponentError
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.validation import check

QUEUE = "AWS::SQS::Queue"


def _parameters(component: Component) -> object:
    return json.loads(json.dumps(component.parameters()))


def test_a_resource_keeps_the_vendors_names_and_what_every_component_has() -> None:
    jobs = aws.resource(QUEUE, id="jobs", region="eu-west-1", QueueName="jobs", import_only=True)
    assert (jobs.type, jobs.provider, jobs.id, jobs.import_only) == (QUEUE, "aws", "jobs", True)
    assert _parameters(jobs) == {"region": "eu-west-1", "QueueName": "jobs"}
    assert _parameters(aws.resource(QUEUE, "jobs", parameters={"dependencies": 1, "class": 2})) == {
        "dependencies": 1,
        "class": 2,
    }


def test_an_output_is_a_text_wherever_one_may_stand() -> None:
    dead = aws.resource(QUEUE, "dead", region="eu-west-1")
    arn = dead.output("Arn")
    jobs = aws.resource(
        QUEUE, "jobs", RedrivePolicy={"deadLetterTargetArn": arn}, Policy=f"of {arn}, {dead.output('A.b')}"
    )
    assert _parameters(jobs) == {
        "RedrivePolicy": {"deadLetterTargetArn": "${dead.Arn}"},
        "Policy": "of ${dead.Arn}, ${dead.A.b}",
    }
    document = LiveSystem(id="shop", components=[dead, jobs]).to_json()
    assert document["components"][1]["dependencies"] == ["dead"]
    assert yaml.safe_load(yaml.safe_dump(document)) == document


def test_lookups_and_secrets_stand_where_they_are_given() -> None:
    where = find("AWS::EC2::Subnet", tags={"tier": "private"}, where={"VpcId": "vpc-1"}, region="eu-west-1")
    made = aws.resource("AWS::RDS::DBInstance", "db", MasterUserPassword=secret("pw"), Subnets=where)
    assert _parameters(made) == {
        "MasterUserPassword": {"$secret": "pw"},
        "Subnets": {
            "$find": {
                "type": "AWS::EC2::Subnet",
                "tags": {"tier": "private"},
                "where": {"VpcId": "vpc-1"},
                "region": "eu-west-1",
            }
        },
    }


def test_create_once_travels_in_the_document() -> None:
    made = aws.resource("AWS::X::Y", "once", create_once=True)
    [found] = LiveSystem(id="shop", components=[made]).to_json()["components"]
    assert found["createOnce"] is True
    [other] = LiveSystem(id="shop", components=[aws.resource("AWS::X::Y", "once")]).to_json()["components"]
    assert "createOnce" not in other


def test_a_reference_to_what_is_not_there_is_refused_with_its_place() -> None:
    jobs = aws.resource(QUEUE, "jobs", RedrivePolicy={"deadLetterTargetArn": "${ded.Arn}"})
    with pytest.raises(DeclarationError, match=r"components\[jobs\].parameters.RedrivePolicy.deadLetterTargetArn"):
        LiveSystem(id="shop", components=[jobs, aws.resource(QUEUE, "dead")])


def test_what_is_no_type_or_no_output_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="they look like 'AWS::SQS::Queue'"):
        aws.resource("sqs.queue", "jobs")
    with pytest.raises(ValueError, match="they look like 'batch/v1/CronJob'"):
        kubernetes.resource("CronJob", "nightly")
    with pytest.raises(ValueError, match="names no output"):
        aws.resource(QUEUE, "jobs").output("a b")
    with pytest.raises(ComponentError, match="say which of its fields is meant"):
        aws.resource(QUEUE, "jobs", Queue=aws.resource(QUEUE, "dead"))


def test_a_manifest_becomes_a_component() -> None:
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "shop.config", "namespace": "shop", "labels": {"app": "shop"}},
        "data": {"A": "b"},
        "status": {},
    }
    made = kubernetes.manifest(document, cluster="main")
    assert (made.id, made.type, made.provider) == ("configmap-shop-config", "v1/ConfigMap", "kubernetes")
    assert _parameters(made) == {
        "cluster": "main",
        "name": "shop.config",
        "namespace": "shop",
        "metadata": {"labels": {"app": "shop"}},
        "data": {"A": "b"},
    }
    assert kubernetes.manifest(document, "own").id == "own"
    nightly = kubernetes.resource("batch/v1/CronJob", "nightly", namespace="shop", spec={"schedule": "@daily"})
    assert _parameters(nightly) == {"namespace": "shop", "spec": {"schedule": "@daily"}}


def test_types_with_classes_accept_references_too() -> None:
    net = nc.aws.vpc(id="net", region="eu-west-1", cidr_block="10.0.0.0/16")
    sub = nc.aws.subnet(id="sub", vpc=net.output("vpcId"), cidr_block=net.output("cidrBlock"))
    assert sub.parameters() == {"vpc": "${net.vpcId}", "cidrBlock": "${net.cidrBlock}"}
    found = check(LiveSystem(id="shop", components=[net, sub]).to_json(), installed().catalog())
    assert found.components[1].parameters == {"vpc": "net", "cidrBlock": "${net.cidrBlock}"}
    assert found.components[1].dependencies == ["net"]
    with pytest.raises(ComponentError, match="is missing"):
        nc.aws.subnet(id="sub", vpc=net.output("vpcId"))  # type: ignore[call-arg]


def test_declaring_needs_no_vendors_library_and_no_schema() -> None:
    program = (
        "import sys\nfrom fractal_cloud import aws, kubernetes, LiveSystem\n"
        "jobs = aws.resource('AWS::SQS::Queue', 'jobs', QueueName='jobs')\n"
        "LiveSystem(id='shop', components=[jobs]).to_json()\n"
        "print(sorted({'boto3', 'botocore', 'kubernetes', 'jsonschema', 're2', 'sqlalchemy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
