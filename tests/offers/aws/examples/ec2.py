"""The example of instances: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from fractal_cloud.offers.aws.ec2 import AwsEc2Instance
from fractal_cloud.testing import Found, Obstacle
from tests.offers.aws.example import Clients, Ec2Actions, Example, component
from tests.offers.aws.examples.security_group import GROUP, OTHER_GROUP
from tests.offers.aws.examples.subnet import SUBNET_A
from tests.offers.aws.examples.vpc import VPC

IMAGE, OTHER_IMAGE = "ami-03cf127a", "ami-12c6146b"


def _edit_instance(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    ec2 = clients("ec2")
    match name:
        case "state":
            (ec2.start_instances if value == "running" else ec2.stop_instances)(InstanceIds=[resource_id])
        case "securityGroups":
            ec2.modify_instance_attribute(InstanceId=resource_id, Groups=value)
        case "disableApiTermination":
            ec2.modify_instance_attribute(InstanceId=resource_id, DisableApiTermination={"Value": value})
        case _:
            text = b64encode(value.encode()).decode() if name == "userData" else value
            ec2.stop_instances(InstanceIds=[resource_id])
            ec2.modify_instance_attribute(InstanceId=resource_id, Attribute=name, Value=text)
            ec2.start_instances(InstanceIds=[resource_id])


class InstanceActions(Ec2Actions):
    def find(self, name: str) -> list[Found]:
        living = ["pending", "running", "stopping", "stopped"]
        where = [{"Name": "tag:Name", "Values": [name]}, {"Name": "instance-state-name", "Values": living}]
        reservations = self._clients("ec2").describe_instances(Filters=where)["Reservations"]
        return self._found([one for some in reservations for one in some["Instances"]], "InstanceId")

    def delete(self, found: Found) -> None:
        self._clients("ec2").terminate_instances(InstanceIds=[found.resource_id])


def _protected_instance(clients: Clients, found: Found) -> Obstacle:
    def protect(value: bool) -> None:
        clients("ec2").modify_instance_attribute(InstanceId=found.resource_id, DisableApiTermination={"Value": value})

    protect(True)
    return Obstacle((found.resource_id, "protected from termination"), lambda: protect(False))


EXAMPLE = Example(
    kind=AwsEc2Instance,
    components=[
        VPC,
        SUBNET_A,
        GROUP,
        OTHER_GROUP,
        component(
            AwsEc2Instance,
            "machine",
            subnet="part-a",
            imageId=IMAGE,
            instanceType="t3.medium",
            securityGroups=["web"],
            userData="#!/bin/sh\necho hello",
            disableApiTermination=False,
            state="running",
        ),
    ],
    changes={
        "instanceType": "t3.large",
        "securityGroups": ["other"],
        "userData": "#!/bin/sh\necho bye",
        "disableApiTermination": True,
        "state": "stopped",
    },
    immutable_changes={"imageId": OTHER_IMAGE, "keyName": "another"},
    foreign_edit=_edit_instance,
    operator=InstanceActions,
    name_tag="Name",
    hazards={"termination protection": ("Failed", _protected_instance)},
    effects=29,
)
