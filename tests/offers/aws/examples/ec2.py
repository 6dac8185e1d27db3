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

_PATH = "/fractal-cloud/"  # of profiles whose machines the agent may still give another start-up script
_KEY = "arn:aws:kms:eu-west-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
_OPTIONS = ("httpEndpoint", "httpTokens", "httpPutResponseHopLimit", "instanceMetadataTags")
IMAGE, OTHER_IMAGE = "ami-03cf127a", "ami-12c6146b"


def _make_profiles(clients: Clients) -> None:
    iam = clients("iam")
    iam.create_role(RoleName="web", AssumeRolePolicyDocument="{}")
    for name in ("web", "web-b"):
        iam.create_instance_profile(InstanceProfileName=name, Path=_PATH)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName="web")


def _edit_profile(ec2: Any, instance_id: str, name: str) -> None:
    where = [{"Name": "instance-id", "Values": [instance_id]}]
    [held] = ec2.describe_iam_instance_profile_associations(Filters=where)["IamInstanceProfileAssociations"]
    ec2.replace_iam_instance_profile_association(AssociationId=held["AssociationId"], IamInstanceProfile={"Name": name})


def _edit_root_volume(ec2: Any, instance_id: str, value: bool) -> None:
    [shown] = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"]
    change = {"DeviceName": shown["RootDeviceName"], "Ebs": {"DeleteOnTermination": value}}
    ec2.modify_instance_attribute(InstanceId=instance_id, BlockDeviceMappings=[change])


def _edit_instance(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    ec2 = clients("ec2")
    match name:
        case "state":
            (ec2.start_instances if value == "running" else ec2.stop_instances)(InstanceIds=[resource_id])
        case "securityGroups":
            ec2.modify_instance_attribute(InstanceId=resource_id, Groups=value)
        case "iamInstanceProfile":
            _edit_profile(ec2, resource_id, value)
        case "rootVolumeDeleteOnTermination":
            _edit_root_volume(ec2, resource_id, value)
        case "monitoring":
            (ec2.monitor_instances if value else ec2.unmonitor_instances)(InstanceIds=[resource_id])
        case "sourceDestCheck":
            ec2.modify_instance_attribute(InstanceId=resource_id, SourceDestCheck={"Value": value})
        case "ebsOptimized":
            ec2.stop_instances(InstanceIds=[resource_id])
            ec2.modify_instance_attribute(InstanceId=resource_id, EbsOptimized={"Value": value})
            ec2.start_instances(InstanceIds=[resource_id])
        case option if option in _OPTIONS:
            change = {option[0].upper() + option[1:]: value}
            ec2.modify_instance_metadata_options(InstanceId=resource_id, **change)
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
            iamInstanceProfile="web",
            httpEndpoint="enabled",
            httpTokens="required",
            httpPutResponseHopLimit=1,
            instanceMetadataTags="disabled",
            associatePublicIpAddress=True,
            monitoring=False,
            ebsOptimized=False,
            sourceDestCheck=True,
            rootVolumeSize=20,
            rootVolumeType="gp3",
            rootVolumeIops=3000,
            rootVolumeThroughput=125,
            rootVolumeEncrypted=True,
            rootVolumeKmsKeyId=_KEY,
            rootVolumeDeleteOnTermination=True,
            state="running",
        ),
    ],
    changes={
        "instanceType": "t3.large",
        "securityGroups": ["other"],
        "userData": "#!/bin/sh\necho bye",
        "disableApiTermination": True,
        "iamInstanceProfile": "web-b",
        "httpEndpoint": "disabled",
        "httpTokens": "optional",
        "httpPutResponseHopLimit": 2,
        "instanceMetadataTags": "enabled",
        "monitoring": True,
        "ebsOptimized": True,
        "sourceDestCheck": False,
        "rootVolumeDeleteOnTermination": False,
        "state": "stopped",
    },
    immutable_changes={
        "imageId": OTHER_IMAGE,
        "keyName": "another",
        "associatePublicIpAddress": False,
        "rootVolumeSize": 30,
        "rootVolumeType": "gp2",
        "rootVolumeIops": 4000,
        "rootVolumeThroughput": 250,
        "rootVolumeEncrypted": False,
        "rootVolumeKmsKeyId": _KEY.replace("0123-4", "0000-4"),
    },
    prepare=_make_profiles,
    foreign_edit=_edit_instance,
    operator=InstanceActions,
    name_tag="Name",
    hazards={"termination protection": ("Failed", _protected_instance)},
    effects=29,
)
