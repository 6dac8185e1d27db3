"""EC2 instances: found by their tag ``Name`` in a region, of which there may be several equal ones.

A terminated instance stays listed for an hour, tags and all; it counts as absent.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from fractal_cloud.model.component import Reference, References, parameter, reference_id
from fractal_cloud.model.errors import CloudError, Conflict, Protected
from fractal_cloud.model.referable import SensitiveText, text_of
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.ec2_descriptor import INSTANCE
from fractal_cloud.offers.aws.ec2_settings import (
    METADATA,
    ROOT_VOLUME,
    delete_on_termination,
    give_profile,
    metadata,
    profile,
    root_device,
    root_mapping,
    root_volume,
    root_volumes,
    settings,
)
from fractal_cloud.offers.aws.kinds import AwsComponent, ImageId, InstanceProfile, KeyArn, Region
from fractal_cloud.offers.aws.security_group import AwsSecurityGroup
from fractal_cloud.offers.aws.subnet import AwsSubnet
from fractal_cloud.offers.aws.tags import NAME, NAMED_RULES, from_list, interned, to_list
from fractal_cloud.offers.link_types import WorkloadSource
from fractal_cloud.offers.offer import Query, Recognition, Wanted

# The vendor's state: our run state, and whether AWS is at work.
_STATES: Mapping[str, tuple[str, Condition]] = {
    "pending": ("running", Condition.CREATING),
    "running": ("running", Condition.SETTLED),
    "stopping": ("stopped", Condition.CHANGING),
    "stopped": ("stopped", Condition.SETTLED),
    "shutting-down": ("stopped", Condition.DYING),
}
_DEAD = "terminated"
_LIVING = {"Name": "instance-state-name", "Values": list(_STATES)}
_CHANGED_WHEN_STOPPED = ("ebsOptimized", "instanceType", "userData")
# The run state comes last: a machine is started once everything that needs it stopped is done.
_ORDER = (
    *("securityGroups", "disableApiTermination", *METADATA, "sourceDestCheck", "rootVolumeDeleteOnTermination"),
    *("iamInstanceProfile", "monitoring", *_CHANGED_WHEN_STOPPED, "state"),
)
_OUTPUTS: Mapping[str, str] = {
    "privateIp": "PrivateIpAddress",
    "privateIpAddress": "PrivateIpAddress",
    "privateDnsName": "PrivateDnsName",
    "publicIpAddress": "PublicIpAddress",
    "publicDnsName": "PublicDnsName",
    "vpcId": "VpcId",
    "subnetId": "SubnetId",
    "rootDeviceName": "RootDeviceName",
}


class AwsEc2Instance(AwsComponent, WorkloadSource):
    """A virtual machine."""

    type = "NetworkAndCompute.IaaS.AwsEc2Instance"

    region: Region | None = parameter(
        default=None, immutable=True, description="AWS region it runs in; that of its subnet where none is given."
    )
    subnet: Reference[AwsSubnet] | None = parameter(
        default=None,
        immutable=True,
        reference=(AwsSubnet.type, "subnetId"),
        description="The subnet it is in; without one, the region's default.",
    )
    image_id: ImageId = parameter(
        immutable=True, description="The machine image it starts from: its id, or the output of a component."
    )
    instance_type: str = parameter(
        description="Its size. Changing it stops the machine and starts it again.", examples=["t3.medium"]
    )
    key_name: str | None = parameter(
        default=None, immutable=True, description="Name of the key pair for its first user."
    )
    security_groups: References[AwsSecurityGroup] | None = parameter(
        default=None,
        compare="unordered",
        reference=(AwsSecurityGroup.type, "groupId"),
        description="The security groups it is in; without any, its VPC's default group.",
    )
    user_data: SensitiveText | None = parameter(
        default=None,
        swept=True,
        lines=True,
        sensitive=True,
        description="Text handed to the machine's first start. Changing it stops the machine and starts it again.",
        max_length=16_384,
    )
    disable_api_termination: bool | None = parameter(
        default=None,
        swept=True,
        description="Whether it is protected from termination, also from ours; AWS starts with false.",
    )
    iam_instance_profile: InstanceProfile | None = parameter(
        default=None,
        compare="arn",
        description="Name or ARN of the instance profile whose role it has, or the output of a component; the agent "
        "must be allowed to pass that role.",
        examples=["web"],
    )
    http_endpoint: Literal["enabled", "disabled"] | None = parameter(
        default=None, description="Whether it reaches its metadata service; AWS starts with enabled."
    )
    http_tokens: Literal["optional", "required"] | None = parameter(
        default=None, description="Whether its metadata service asks for a token (IMDSv2): required."
    )
    http_put_response_hop_limit: int | None = parameter(
        default=None, ge=1, le=64, description="How many hops the token of its metadata service may go."
    )
    instance_metadata_tags: Literal["enabled", "disabled"] | None = parameter(
        default=None, description="Whether its metadata service shows its tags; AWS starts with disabled."
    )
    associate_public_ip_address: bool | None = parameter(
        default=None,
        immutable=True,
        description="Whether it gets a public address of Amazon's; that of its subnet where it is not given. It is "
        "compared while the machine runs and has no address of your own.",
    )
    monitoring: bool | None = parameter(
        default=None, description="Whether it is monitored in detail, each minute; AWS starts with false."
    )
    ebs_optimized: bool | None = parameter(
        default=None,
        description="Whether it has throughput of its own to its volumes, on sizes where that is a choice. Changing it "
        "stops the machine and starts it again.",
    )
    source_dest_check: bool | None = parameter(
        default=None, description="Whether it takes only traffic of its own; false for a machine that routes."
    )
    root_volume_size: int | None = parameter(
        default=None, immutable=True, swept=True, ge=1, le=65_536, description="Size of its root volume in GiB."
    )
    root_volume_type: Literal["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"] | None = parameter(
        default=None, immutable=True, swept=True, description="Kind of its root volume; that of its image if not given."
    )
    root_volume_iops: int | None = parameter(
        default=None, immutable=True, swept=True, ge=100, description="Operations a second of a gp3, io1 or io2 volume."
    )
    root_volume_throughput: int | None = parameter(
        default=None, immutable=True, swept=True, ge=125, description="MiB a second of a gp3 volume."
    )
    root_volume_encrypted: bool | None = parameter(
        default=None, immutable=True, swept=True, description="Whether its root volume is encrypted."
    )
    root_volume_kms_key_id: KeyArn | None = parameter(
        default=None,
        immutable=True,
        swept=True,
        description="ARN of the KMS key of its root volume, or the output of a component; with rootVolumeEncrypted. "
        "The key must let the agent use it.",
    )
    root_volume_delete_on_termination: bool | None = parameter(
        default=None, description="Whether its root volume goes when it is terminated; AWS starts with true."
    )
    state: Literal["running", "stopped"] = parameter(
        default="running",
        enforced=True,
        description="Whether it runs. Listed in ignoreDrift, it is never stopped: what needs that waits until you do.",
    )


class AwsEc2InstanceOffer(AwsOffer[AwsEc2Instance]):
    """How instances are read and changed."""

    component = AwsEc2Instance
    tag_rules = NAMED_RULES
    title = "EC2 instance"
    vendor_type = "AWS::EC2::Instance"
    short_name = "ec2"
    resource = INSTANCE
    place = ("region",)
    recognition = Recognition.TOKEN
    swept_in_bulk = frozenset(ROOT_VOLUME)
    outputs: ClassVar[Mapping[str, str]] = {
        "instanceId": "id of the instance",
        "instanceArn": "its ARN",
        "region": "region it runs in",
        "availabilityZone": "zone it runs in",
        "state": "pending, running, stopping, stopped or shutting-down",
        "privateIp": "its private address",
        "privateIpAddress": "its private address, under the vendor's name",
        "privateDnsName": "its private DNS name",
        "publicIpAddress": "its public address, while it has one",
        "publicDnsName": "its public DNS name, while it has one",
        "vpcId": "id of its VPC",
        "subnetId": "id of its subnet",
        "rootDeviceName": "device of its root volume",
        "rootVolumeId": "id of its root volume, while it has one",
    }

    def sightings(self, cloud: Aws, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All living instances of the region, a thousand a call."""
        return cloud.sightings(
            query, INSTANCE, lambda answer: _sightings(cloud, answer["Reservations"]), Filters=[_LIVING]
        )

    def sweep(self, cloud: Aws, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """User data and termination protection, which AWS returns one a call, and its root volume, all in one."""
        alone = {name: _attribute(cloud, sighting.resource_id, name) for name in names if name not in ROOT_VOLUME}
        volume = sighting.outputs.get("rootVolumeId")
        asked = [name for name in names if name in ROOT_VOLUME]
        return {**alone, **(root_volume(cloud, str(volume), asked) if asked and volume else {})}

    def sweep_in_bulk(
        self, cloud: Aws, asked: Sequence[tuple[Sighting, Collection[str]]]
    ) -> Iterator[tuple[str, Mapping[str, Any] | CloudError]]:
        """What their root volumes report, two hundred a call."""
        return root_volumes(cloud, ((one.resource_id, one.outputs.get("rootVolumeId"), names) for one, names in asked))

    def read(self, cloud: Aws, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One instance by its id."""
        answer = cloud.find("ec2", "describe_instances", InstanceIds=[resource_id])
        found = next(_sightings(cloud, answer["Reservations"]), None) if answer else None
        if found is None or not sweep:
            return found
        return replace(found, actual={**found.actual, **self.sweep(cloud, found, sweep)})

    def create(self, cloud: Aws, wanted: Wanted[AwsEc2Instance], tags: ProtocolTags) -> Sighting:
        """Start it; the same token never starts a second one."""
        machine = wanted.component
        name = [{"Key": NAME, "Value": machine.name}]
        declared = machine.parameters()
        optional = {
            **_network(machine),
            "KeyName": machine.key_name,
            "UserData": text_of(machine.user_data),
            "DisableApiTermination": machine.disable_api_termination,
            "IamInstanceProfile": machine.iam_instance_profile and profile(machine.iam_instance_profile),
            "MetadataOptions": metadata(declared, METADATA),
            "Monitoring": machine.monitoring and {"Enabled": True},
            "EbsOptimized": machine.ebs_optimized,
            "BlockDeviceMappings": root_device(cloud, machine.image_id, declared),
            "ClientToken": wanted.token[:64],
        }
        answer = cloud.call(
            "ec2",
            "run_instances",
            ImageId=machine.image_id,
            InstanceType=machine.instance_type,
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": to_list(tags, machine.name)},
                {"ResourceType": "volume", "Tags": name},
                {"ResourceType": "network-interface", "Tags": name},
            ],
            **{key: value for key, value in optional.items() if value},
        )
        return next(_sightings(cloud, [answer]))

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[AwsEc2Instance], drift: Collection[str]) -> None:
        """Make the next call needed: stop, change, start are three, each found to be next by what was seen."""
        machine = wanted.component
        change = next((name for name in _ORDER if name in drift), None)
        instance = sighting.resource_id
        if change in _CHANGED_WHEN_STOPPED and sighting.actual["state"] == "running":
            wanted.may_stop_for(change, sighting.name)
            cloud.call("ec2", "stop_instances", InstanceIds=[instance])
        elif change == "state":
            verb = "start_instances" if machine.state == "running" else "stop_instances"
            cloud.call("ec2", verb, InstanceIds=[instance])
        elif change == "monitoring":
            verb = "monitor_instances" if machine.monitoring else "unmonitor_instances"
            cloud.call("ec2", verb, InstanceIds=[instance])
        elif change == "iamInstanceProfile":
            give_profile(cloud, instance, machine.iam_instance_profile or "")
        elif change in METADATA:
            options = metadata(machine.parameters(), [name for name in METADATA if name in drift])
            cloud.call("ec2", "modify_instance_metadata_options", InstanceId=instance, **options)
        elif change == "rootVolumeDeleteOnTermination":
            kept = delete_on_termination(sighting.outputs["rootDeviceName"], machine.root_volume_delete_on_termination)
            cloud.call("ec2", "modify_instance_attribute", InstanceId=instance, BlockDeviceMappings=[kept])
        elif change is not None:
            cloud.call("ec2", "modify_instance_attribute", InstanceId=instance, **_attribute_change(machine, change))

    def delete(self, cloud: Aws, sighting: Sighting) -> None:
        """Terminate it; termination protection is respected."""
        try:
            cloud.find("ec2", "terminate_instances", InstanceIds=[sighting.resource_id])
        except Conflict as refusal:
            if refusal.code == "OperationNotPermitted":
                raise _protected(sighting, refusal) from refusal
            raise

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What stops the machine."""
        return [
            f"changing {name} stops the machine and starts it again" for name in _CHANGED_WHEN_STOPPED if name in drift
        ]


def _groups(machine: AwsEc2Instance) -> list[str]:
    return [reference_id(group) for group in machine.security_groups or []]


def _network(machine: AwsEc2Instance) -> dict[str, Any]:
    """Where it lies: with a choice of a public address, AWS takes all of it in the interface and nowhere else."""
    placed = {"SubnetId": machine.subnet and reference_id(machine.subnet)}
    if machine.associate_public_ip_address is None:
        return {**placed, "SecurityGroupIds": _groups(machine)}
    interface = {
        "DeviceIndex": 0,
        "DeleteOnTermination": True,
        "AssociatePublicIpAddress": machine.associate_public_ip_address,
        **{key: value for key, value in {**placed, "Groups": _groups(machine)}.items() if value},
    }
    return {"NetworkInterfaces": [interface]}


def _attribute_change(machine: AwsEc2Instance, name: str) -> dict[str, Any]:
    match name:
        case "securityGroups":
            return {"Groups": _groups(machine)}
        case "disableApiTermination":
            return {"DisableApiTermination": {"Value": bool(machine.disable_api_termination)}}
        case "instanceType":
            return {"InstanceType": {"Value": machine.instance_type}}
        case "ebsOptimized":
            return {"EbsOptimized": {"Value": bool(machine.ebs_optimized)}}
        case "sourceDestCheck":
            return {"SourceDestCheck": {"Value": bool(machine.source_dest_check)}}
        case _:
            return {"Attribute": "userData", "Value": b64encode((text_of(machine.user_data) or "").encode()).decode()}


def _attribute(cloud: Aws, instance_id: str, name: str) -> Any:
    answer = cloud.call("ec2", "describe_instance_attribute", InstanceId=instance_id, Attribute=name)
    if name == "userData":
        return b64decode(answer.get("UserData", {}).get("Value") or "").decode("utf-8", "replace")
    return bool(answer["DisableApiTermination"]["Value"])


def _protected(sighting: Sighting, refusal: Conflict) -> Protected:
    return Protected(
        f"instance {sighting.resource_id!r} is protected from termination ({refusal.code}): "
        "switch disableApiTermination off, and it is tried again",
        code=refusal.code,
        request_id=refusal.request_id,
    )


def _sightings(cloud: Aws, reservations: Iterable[Mapping[str, Any]]) -> Iterator[Sighting]:
    for reservation in reservations:
        for instance in reservation["Instances"]:
            state = interned(instance["State"]["Name"])
            if state != _DEAD:
                yield _sighting(cloud, instance, state)


def _sighting(cloud: Aws, instance: Mapping[str, Any], state: str) -> Sighting:
    instance_id = instance["InstanceId"]
    region = interned(cloud.region)
    tags = from_list(instance.get("Tags"))
    run_state, condition = _STATES.get(state, (None, Condition.CHANGING))
    known = {name: instance[key] for name, key in _OUTPUTS.items() if instance.get(key)}
    volume = root_mapping(instance).get("VolumeId")
    return Sighting(
        type=AwsEc2Instance.type,
        name=tags.get(NAME, ""),
        resource_id=instance_id,
        protocol=ProtocolTags.from_mapping(tags),
        tags=tags,
        actual={
            "region": region,
            "subnet": instance.get("SubnetId"),
            "imageId": interned(instance["ImageId"]),
            "instanceType": interned(instance["InstanceType"]),
            "keyName": instance.get("KeyName"),
            "securityGroups": sorted(interned(group["GroupId"]) for group in instance.get("SecurityGroups") or ()),
            **settings(instance),
            **({"state": run_state} if run_state else {}),
        },
        outputs={
            "instanceId": instance_id,
            "instanceArn": cloud.arn(INSTANCE, instance_id),
            "region": region,
            "availabilityZone": interned(instance.get("Placement", {}).get("AvailabilityZone") or ""),
            "state": state,
            **known,
            **({"rootVolumeId": volume} if volume else {}),
        },
        condition=condition,
        detail="" if condition is Condition.SETTLED else state,
    )
