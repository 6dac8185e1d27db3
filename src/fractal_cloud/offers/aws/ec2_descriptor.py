"""What AWS defines of EC2 instances: how they are listed, made, changed and ended."""

from __future__ import annotations

from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.services.ec2 import EC2

INSTANCE = Resource(
    service=EC2,
    kind="instance",
    named_by=("InstanceId", "InstanceIds"),
    arn="instance/{id}",
    id_prefix="i-",
    creates={"RunInstances": "Instances.InstanceId"},
    modifies=(
        "AssociateIamInstanceProfile",
        "ModifyInstanceAttribute",
        "ModifyInstanceMetadataOptions",
        "MonitorInstances",
        "ReplaceIamInstanceProfileAssociation",
        "StartInstances",
        "StopInstances",
        "UnmonitorInstances",
    ),
    deletes=("TerminateInstances",),
    set_by={
        "securityGroups": ("groupSet",),
        "state": ("StartInstances", "StopInstances"),
        "iamInstanceProfile": (
            "AssociateIamInstanceProfile",
            "DisassociateIamInstanceProfile",
            "ReplaceIamInstanceProfileAssociation",
        ),
        "monitoring": ("MonitorInstances", "UnmonitorInstances"),
        "rootVolumeDeleteOnTermination": ("deleteOnTermination",),
    },
    also_modifies=("DisassociateIamInstanceProfile", "ModifyInstancePlacement", "RebootInstances"),
    touches={
        "RunInstances": (
            "image/*",
            "key-pair/*",
            "network-interface/*",
            "security-group/*",
            "subnet/*",
            "volume/*",
        ),
        "ModifyInstanceAttribute": ("security-group/*", "volume/*"),
    },
    listings=(
        Listing(
            operation="DescribeInstances", path="Reservations.Instances", id="InstanceId", page_key="ReservationId"
        ),
    ),
    not_found=("InvalidInstanceID.NotFound", 400, "The instance ID '{id}' does not exist"),
    phases={
        "creating": {"State": {"Code": 0, "Name": "pending"}},
        "starting": {"State": {"Code": 0, "Name": "pending"}},
        "stopping": {"State": {"Code": 64, "Name": "stopping"}},
        "deleting": {"State": {"Code": 32, "Name": "shutting-down"}},
    },
)
