"""`fractal absorb`: what stands in the cloud is written into the declaration, and nothing else changes in the file."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

from fractal_cloud.cli import client
from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane
from tests.cli.test_reading import component
from tests.world import ADMIN_TOKEN, World

OFFER = {
    "type": "NetworkAndCompute.IaaS.AwsEc2Instance",
    "parameterSchema": {
        "properties": {
            "instanceType": {"type": "string"},
            "securityGroups": {"x-fractal": {"compare": "unordered"}},
            "subnet": {"x-fractal": {"reference": {"type": "x", "output": "subnetId"}}},
            "zones": {"x-fractal": {"compare": "unordered"}},
            "ingress": {"x-fractal": {"compare": "unordered"}},
            "command": {},
            "labels": {},
            "size": {},
        }
    },
}
pytestmark = pytest.mark.rule("G14")


@pytest.fixture
def absorb(fractal: Fractal, control: FakeControlPlane, tmp_path: Path) -> Any:
    """Have the given differences absorbed into a file; what the program did, and the file's text afterwards."""

    def run(
        suffix: str, text: str, *more: str, about: str = "web", status: str = "ManualOverride", **actual: Any
    ) -> tuple[Any, str]:
        path = tmp_path / f"shop{suffix}"
        path.write_text(dedent(text))
        drift = {name: {"declared": "?", "actual": value} for name, value in actual.items()}
        shown = component(about, status, drift=drift)
        control.on("GET", "/livesystems/shop/components", {"items": [shown], "cursor": None})
        control.on("GET", "/offers", {"items": [OFFER], "cursor": None})
        return fractal("absorb", str(path), "shop", *more), path.read_text()

    return run


YAML = """\
    # Who is on call: the shop team
    id: shop
    components:
      - id: web   # the front
        type: NetworkAndCompute.IaaS.AwsEc2Instance
        provider: aws
        parameters:
          instanceType: t3.medium   # enough for now
          size: '10'
          command: ["serve", "--fast"]
          zones:
            - a   # the first
            - b   # the second
          labels:
            team: shop   # ours
    """


def test_one_value_changes_in_yaml_and_every_comment_stays(absorb: Any) -> None:
    ran, text = absorb(".yaml", YAML, instanceType="t3.large", size="20")
    assert ran.code == 0, ran.words
    expected = dedent(YAML).replace("t3.medium ", "t3.large ").replace("'10'", "'20'")
    assert text == expected
    assert "+      instanceType: t3.large   # enough for now" in ran.out
    assert "nothing is deployed" in ran.words


def test_lists_and_maps_change_part_by_part(absorb: Any) -> None:
    ran, text = absorb(".yaml", YAML, zones=["c", "b"], labels={"team": "web"}, command=["serve", "--slow"])
    assert ran.code == 0, ran.words
    assert "        - b   # the second\n        - c\n" in text
    assert "the first" not in text
    assert "team: web   # ours" in text
    assert 'command: ["serve", "--slow"]' in text


def test_what_yaml_would_read_otherwise_is_quoted(absorb: Any) -> None:
    ran, text = absorb(".yaml", YAML, instanceType="true", zones=["a", "b", "x: y"])
    assert ran.code == 0, ran.words
    assert 'instanceType: "true"' in text
    assert '- "x: y"' in text


def test_a_value_that_an_anchor_shares_is_left_and_nothing_is_written(absorb: Any) -> None:
    shared = YAML.replace("instanceType: t3.medium   # enough", "instanceType: &size t3.medium   # enough").replace(
        "size: '10'", "size: *size"
    )
    ran, text = absorb(".yaml", shared, instanceType="t3.large")
    assert ran.code == 1
    assert "left as it is" in ran.words
    assert text == dedent(shared)


JSON = """\
    {
      "id": "shop",
      "components": [
        {"id": "web", "type": "NetworkAndCompute.IaaS.AwsEc2Instance", "provider": "aws",
         "parameters": {
           "instanceType": "t3.medium", "size": 10,
           "zones": [
             "a",
             "b"
           ]}}
      ]
    }
    """


def test_json_keeps_its_layout(absorb: Any) -> None:
    ran, text = absorb(".json", JSON, instanceType="t3.large", size=None, zones=["a"])
    assert ran.code == 0, ran.words
    assert '       "instanceType": "t3.large", "size": null,\n       "zones": [\n         "a"\n       ]}}\n' in text


PYTHON = '''\
    """The shop."""
    from fractal_cloud import LiveSystem
    from fractal_cloud import network_and_compute as nc

    REGION = "eu-central-1"
    net = nc.aws.vpc(id="web", name="é", region=REGION, cidr_block="10.0.0.0/16",  # wide enough
                     enable_dns_support=True)
    group = nc.aws.security_group(
        id="group",
        vpc=net,
        description="front",
        ingress=[
            nc.aws.security_group_rule(ip_protocol="tcp", from_port=443, to_port=443, cidr_ip="0.0.0.0/0"),  # all
        ],
    )
    shop = LiveSystem(id="shop", components=[net, group])
    '''


def test_an_argument_changes_in_python_and_nothing_around_it(absorb: Any) -> None:
    ran, text = absorb(".py", PYTHON, cidrBlock="10.1.0.0/16", enableDnsSupport=False)
    assert ran.code == 0, ran.words
    expected = dedent(PYTHON).replace("10.0.0.0/16", "10.1.0.0/16").replace("support=True", "support=False")
    assert text == expected


def test_a_list_of_calls_in_python_changes_rule_by_rule(absorb: Any) -> None:
    web = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "10.0.0.0/8"}
    ran, text = absorb(".py", PYTHON, about="group", ingress=[web])
    assert ran.code == 0, ran.words
    assert 'to_port=443, cidr_ip="10.0.0.0/8"),  # all\n' in text
    ssh = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIp": "10.0.0.0/8"}
    everybody = {**web, "cidrIp": "0.0.0.0/0"}
    ran, text = absorb(".py", PYTHON, about="group", ingress=[ssh, everybody])
    assert ran.code == 0, ran.words
    expected = '        {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIp": "10.0.0.0/8"},\n'
    assert text == dedent(PYTHON).replace("  # all\n", f"  # all\n{expected}")


def test_what_is_computed_is_listed_and_left_to_a_person(absorb: Any) -> None:
    ran, text = absorb(".py", PYTHON, region="eu-west-1", cidrBlock="10.1.0.0/16")
    assert ran.code == 1
    assert "web: region is 'eu-west-1' and must be changed by hand: line 6 computes it: REGION" in ran.words
    assert 'cidr_block="10.1.0.0/16"' in text
    assert "region=REGION" in text


def test_a_component_that_no_single_call_makes_is_left(absorb: Any) -> None:
    made = PYTHON.replace('id="web"', 'id="w" + "eb"')
    ran, text = absorb(".py", made, cidrBlock="10.1.0.0/16")
    assert ran.code == 1
    assert 'no call makes a component with id="web"' in ran.words
    assert text == dedent(made)


def test_a_reference_to_another_component_is_left(absorb: Any) -> None:
    ran, text = absorb(".yaml", YAML, subnet="subnet-1234")
    assert ran.code == 1
    assert "subnet names another component, and is 'subnet-1234' in the cloud" in ran.words
    assert text == dedent(YAML)


def test_a_dry_run_shows_the_change_and_writes_nothing(absorb: Any) -> None:
    ran, text = absorb(".yaml", YAML, "--dry-run", instanceType="t3.large")
    assert ran.code == 0
    assert "-      instanceType: t3.medium" in ran.out
    assert text == dedent(YAML)


def test_what_the_agent_manages_is_not_absorbed(absorb: Any) -> None:
    ran, text = absorb(".yaml", YAML, "web", status="Active", instanceType="t3.large")
    assert ran.code == 1
    assert "web is Active, not in override" in ran.words
    assert text == dedent(YAML)


def test_without_a_difference_nothing_happens(absorb: Any) -> None:
    ran, text = absorb(".yaml", YAML)
    assert ran.code == 0
    assert "nothing in override differs" in ran.words
    assert text == dedent(YAML)


def test_a_component_nobody_knows_is_refused(absorb: Any) -> None:
    ran, _ = absorb(".yaml", YAML, "wbe")
    assert ran.code == 1
    assert "has no component 'wbe'" in ran.words


@pytest.mark.rule("G8")
def test_changes_are_kept_by_absorbing_deploying_and_handing_back(
    world: World, fractal: Fractal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The whole way on a real drift: nothing is written to the cloud but the removal of the reconcile tag."""
    transport = world.api._transport
    monkeypatch.setattr(client, "connect", lambda url, _: client.ControlPlane(url, ADMIN_TOKEN, transport))
    path = tmp_path / "net.yaml"
    path.write_text(
        dedent("""\
        id: ls-a
        components:
          - id: net
            type: NetworkAndCompute.IaaS.AwsVpc
            provider: aws
            parameters:
              region: eu-west-1
              cidrBlock: 10.0.0.0/16
              enableDnsHostnames: true  # the agents need names
        """)
    )
    assert fractal("deploy", str(path)).code == 0
    world.settle()
    resource = world.component("ls-a", "net")["resourceId"]
    world.person.break_glass(resource)
    world.person.ec2.modify_vpc_attribute(VpcId=resource, EnableDnsHostnames={"Value": False})
    world.settle()
    assert world.drift("ls-a", "net") == {"enableDnsHostnames": {"declared": True, "actual": False}}
    ran = fractal("absorb", str(path), "ls-a", "net")
    assert ran.code == 0, ran.words
    assert "enableDnsHostnames: false  # the agents need names" in path.read_text()
    assert fractal("deploy", str(path)).code == 0
    world.settle()
    assert world.drift("ls-a", "net") is None
    before = len(world.sandbox.aws.calls.find(actor="agent", writes_only=True))
    world.person.hand_back(resource)
    world.settle()
    writes = world.sandbox.aws.calls.find(actor="agent", writes_only=True)[before:]
    assert [call.operation for call in writes] == ["DeleteTags"]
    assert world.status("ls-a", "net") == "Active"
    world.assert_safe()


SECRETS = """\
    id: shop
    components:
      - id: web
        type: NetworkAndCompute.IaaS.AwsEc2Instance
        provider: aws
        parameters:
          instanceType: t3.medium
          labels:
            LEVEL: info   # how much
            DB: {$secret: db}   # from the agent
            DB_PASSWORD: hunter2   # to be moved
    """


@pytest.mark.rule("A8", "G14")
def test_a_secret_is_never_written_into_a_file(absorb: Any) -> None:
    changed = {
        "LEVEL": "debug",
        "DB": "(secret: differs)",
        "DB_PASSWORD": "(sensitive)",
        "NEW_TOKEN": "(sensitive)",
    }
    ran, text = absorb(".yaml", SECRETS, labels=changed)
    assert text == dedent(SECRETS).replace("LEVEL: info ", "LEVEL: debug ")
    assert "web: labels.DB differs, and is not shown: change it by hand" in ran.words
    assert "web: labels.NEW_TOKEN differs, and is not shown" in ran.words
    assert "labels.DB_PASSWORD" not in ran.words, "it is as declared"
    assert ran.code == 1, "not all of it was written"


@pytest.mark.rule("A8", "G14")
def test_a_text_that_is_hidden_is_left_to_a_person(absorb: Any) -> None:
    ran, text = absorb(".yaml", SECRETS, instanceType="(sensitive: differs)")
    assert text == dedent(SECRETS)
    assert "web: instanceType differs, and is not shown" in ran.words
    assert ran.code == 1


@pytest.mark.rule("A8", "G14")
def test_what_must_be_changed_by_hand_is_printed_without_secrets(absorb: Any) -> None:
    ran, text = absorb(".yaml", SECRETS, labels={"LEVEL": "info", "DB_PASSWORD": "(sensitive)", "PLAIN": "1"})
    assert text == dedent(SECRETS), "a comment would be lost"
    assert "'PLAIN': '1'" in ran.words
    assert "hunter2" not in ran.words


NESTED = """\
    id: shop
    components:
      - id: web
        type: AWS::SQS::Queue
        parameters:
          QueueName: jobs
          DelaySeconds: 1
          RedrivePolicy:
            deadLetterTargetArn: ${dead.Arn}
            maxReceiveCount: 3   # tries
    """
QUEUE = {
    "type": "AWS::SQS::Queue",
    "nested": True,
    "parameterSchema": {"properties": {"RedrivePolicy": {"type": "object"}, "DelaySeconds": {"type": "integer"}}},
}


@pytest.fixture
def absorb_nested(fractal: Fractal, control: FakeControlPlane, tmp_path: Path) -> Any:
    """Have differences by path absorbed into a declaration of a type that no class was written for."""

    def run(drift: dict[str, Any]) -> tuple[Any, Any]:
        path = tmp_path / "shop.yaml"
        path.write_text(dedent(NESTED))
        seen = component("web", "ManualOverride", drift={name: {"actual": value} for name, value in drift.items()})
        control.on("GET", "/livesystems/shop/components", {"items": [{**seen, "type": QUEUE["type"]}], "cursor": None})
        control.on("GET", "/offers", {"items": [QUEUE], "cursor": None})
        ran = fractal("absorb", str(path), "shop")
        return ran, yaml.safe_load(path.read_text())["components"][0]["parameters"]

    return run


def test_what_differs_within_a_parameter_is_written_there_alone(absorb_nested: Any) -> None:
    ran, parameters = absorb_nested({"RedrivePolicy.maxReceiveCount": 5, "DelaySeconds": 7})
    assert ran.code == 0, ran.words
    assert parameters == {
        "QueueName": "jobs",
        "RedrivePolicy": {"deadLetterTargetArn": "${dead.Arn}", "maxReceiveCount": 5},
        "DelaySeconds": 7,
    }


def test_what_a_reference_stands_for_is_left_to_a_person(absorb_nested: Any) -> None:
    ran, parameters = absorb_nested(
        {"RedrivePolicy.deadLetterTargetArn": "arn:other", "RedrivePolicy.maxReceiveCount": 5, "A[x=1].b": 2}
    )
    assert ran.code != 0
    assert "RedrivePolicy.deadLetterTargetArn is 'arn:other': write it by hand" in ran.words
    assert "A[x=1].b is 2: write it by hand" in ran.words
    assert parameters["RedrivePolicy"] == {"deadLetterTargetArn": "${dead.Arn}", "maxReceiveCount": 5}
