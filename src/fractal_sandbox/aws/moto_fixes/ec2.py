"""Fixes for moto's EC2."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any

from moto.core.types import Base64EncodedString
from moto.ec2.models.amis import Ami
from moto.ec2.models.elastic_network_interfaces import NetworkInterface

from fractal_sandbox.aws.answer import Answer, AwsError, read, written
from fractal_sandbox.aws.cloudcontrol import refs
from fractal_sandbox.aws.moto_fixes.registry import FixContext, fix
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.aws.resources import Ref, backend, find, live
from fractal_sandbox.calls import Call

__all__: list[str] = []

_GROUP_ID = re.compile(r"sg-[0-9a-f]{8}([0-9a-f]{9})?")
_LONGEST_KEY = 128
_MOST_TAGS = 50
_SHOWN_BY_MOTO = NetworkInterface.association


def _association(interface: NetworkInterface) -> dict[str, Any]:
    """moto says that an account owns every public address; AWS says `amazon` of those that nobody allocated.

    It is a property of moto's own, so that listings of thousands of machines are not read twice.
    """
    shown: dict[str, Any] = _SHOWN_BY_MOTO.fget(interface)  # type: ignore[attr-defined]
    is_allocated = not shown or shown.get("allocationId")
    return shown if is_allocated else {**shown, "ipOwnerId": "amazon"}


setattr(NetworkInterface, "association", property(_association))  # noqa: B010  # assigned, it would be no property


def _platform(image: Ami) -> str | None:
    """moto says `Linux/UNIX` of some images, and so of their machines; AWS names Windows alone, or nothing."""
    known = vars(image).get("platform")
    return known if known == "windows" else None


def _set_platform(image: Ami, platform: str | None) -> None:
    vars(image)["platform"] = platform


def _platform_details(image: Ami) -> str:
    """moto leaves it out; AWS says it of every image."""
    return "Windows" if image.platform else "Linux/UNIX"


setattr(Ami, "platform", property(_platform, _set_platform))  # noqa: B010
setattr(Ami, "platform_details", property(_platform_details))  # noqa: B010


@fix("ec2", "CreateTags")
def check_tag_keys(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto accepts reserved and overlong keys, and any number of them; AWS refuses them, and the 51st."""
    for tag in call.parameters.get("Tags") or []:
        key = tag.get("Key", "")
        if key.lower().startswith("aws:"):
            raise AwsError(
                "InvalidParameterValue", f"Tag keys starting with 'aws:' are reserved for internal use: {key}"
            )
        if len(key) > _LONGEST_KEY:
            raise AwsError("InvalidParameterValue", f"Tag key exceeds the maximum length of {_LONGEST_KEY}: {key}")
    added = {tag.get("Key", "") for tag in call.parameters.get("Tags") or []}
    for resource_id in call.parameters.get("Resources") or []:
        present = {key for key in backend("ec2", call.region).tags.get(resource_id, {}) if not key.startswith("aws:")}
        if len(present | added) > _MOST_TAGS:
            raise AwsError(
                "TagLimitExceeded", f"The maximum number of Tags for a resource has been reached: {_MOST_TAGS}"
            )
    return context.dispatch(request)


@fix("ec2", "DeleteTags")
def delete_all_tags_if_none_is_named(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto removes nothing when no tag is named; AWS removes all of them."""
    answer = context.dispatch(request)
    if answer.is_success and not call.parameters.get("Tags"):
        tags = backend("ec2", call.region).tags
        for resource_id in call.parameters.get("Resources") or []:
            tags.pop(resource_id, None)
    return answer


@fix("ec2", "RunInstances")
def honour_client_token(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto ignores ClientToken and makes a second instance; AWS answers with the first, or refuses other parameters."""
    token = call.parameters.get("ClientToken")
    key = (call.operation, call.region, token)
    if context.is_repeat(call):
        parameters, reservation_id = context.memory[key]
        if parameters != call.parameters:
            raise AwsError(
                "IdempotentParameterMismatch",
                "The request uses the same client token as a previous, but non-identical request.",
            )
        return replace(written(request, _reservation(context, request, reservation_id)), is_replay=True)
    answer = context.dispatch(request)
    if not answer.is_success:
        return answer
    newest = list(backend("ec2", call.region).reservations)[-1]
    if token:
        context.memory[key] = (dict(call.parameters), newest)
    _keep_speed_of_volumes(call, newest)
    if not call.parameters.get("NetworkInterfaces"):
        return answer
    _show_groups_of_interfaces(call, newest)
    return written(request, _reservation(context, request, newest), answer)


def _keep_speed_of_volumes(call: Call, reservation_id: str) -> None:
    """moto forgets how fast a machine's volumes were asked to be."""
    ec2 = backend("ec2", call.region)
    for instance in ec2.reservations[reservation_id].instances:
        for mapping in call.parameters.get("BlockDeviceMappings") or []:
            volume = ec2.volumes[instance.block_device_mapping[mapping["DeviceName"]].volume_id]
            asked = mapping.get("Ebs") or {}
            volume.iops = asked.get("Iops") or volume.iops
            volume.throughput = asked.get("Throughput") or volume.throughput


def _show_groups_of_interfaces(call: Call, reservation_id: str) -> None:
    """moto leaves a machine without the groups of its interface; AWS shows them as its own."""
    ec2 = backend("ec2", call.region)
    wanted = [one for interface in call.parameters["NetworkInterfaces"] for one in interface.get("Groups") or []]
    for instance in ec2.reservations[reservation_id].instances:
        instance.security_groups = [ec2.get_security_group_from_id(one) for one in wanted] or instance.security_groups


@fix("ec2", "MonitorInstances", "UnmonitorInstances")
def switch_detailed_monitoring(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto has neither call."""
    del context
    is_on = call.operation == "MonitorInstances"
    shown = []
    for instance_id in call.parameters.get("InstanceIds") or []:
        instance = find(Ref("instance", instance_id, call.region))
        if instance is None:
            raise AwsError("InvalidInstanceID.NotFound", f"The instance ID '{instance_id}' does not exist")
        instance.monitoring_state = "enabled" if is_on else "disabled"
        shown.append({"InstanceId": instance_id, "Monitoring": {"State": "pending" if is_on else "disabling"}})
    return written(request, {"InstanceMonitorings": shown})


@fix("ec2", "ModifyInstanceMetadataOptions")
def keep_options_that_are_not_given(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto forgets the options that a call does not name; AWS keeps them."""
    instance = find(Ref("instance", call.parameters.get("InstanceId", ""), call.region))
    before = dict(vars(instance.metadata_options)) if instance is not None else {}
    answer = context.dispatch(request)
    if answer.is_success and instance is not None:
        given = {_snake(name) for name in call.parameters}
        for name, value in before.items():
            if name not in given and name != "state":
                setattr(instance.metadata_options, name, value)
    return answer


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


@fix("ec2", "ReplaceIamInstanceProfileAssociation")
def show_the_new_profile(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto shows the former profile on the machine; AWS shows the new one, under an association of its own."""
    answer = context.dispatch(request)
    held = backend("ec2", call.region).iam_instance_profile_associations
    if answer.is_success:
        for association in held.values():
            if association.association_id == call.parameters["AssociationId"]:
                profile = association.iam_instance_profile
                association.instance.iam_instance_profile = {"Arn": profile.arn, "Id": profile.id}
    return answer


def _reservation(context: FixContext, request: AwsRequest, reservation_id: str) -> dict[str, Any]:
    instances = backend("ec2", request.call.region).reservations[reservation_id].instances
    wanted = {"InstanceIds": [instance.id for instance in instances]}
    found: dict[str, Any] = context.ask(request, "DescribeInstances", wanted)["Reservations"][0]
    return found


@fix("ec2", "ModifyInstanceAttribute")
def change_type_only_while_stopped(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto changes the type of a running instance; AWS changes that, user data and EBS optimisation only of a stopped
    one.
    """
    attribute = call.parameters.get("Attribute")
    sets = {*call.parameters, *([attribute[0].upper() + attribute[1:]] if attribute else [])}
    wants_stop = sets & {"EbsOptimized", "InstanceType", "UserData"}
    ref = Ref("instance", call.parameters.get("InstanceId", ""), call.region)
    instance = find(ref)
    if wants_stop and instance is not None and (instance.state != "stopped" or context.lifecycle.phase(ref)):
        raise AwsError("IncorrectInstanceState", f"The instance '{ref.id}' is not in the 'stopped' state.")
    user_data = (call.parameters.get("UserData") or {}).get("Value")
    if user_data is None or instance is None:
        return context.dispatch(request)
    # The wire carries it in base64 once; moto expects twice, and refuses what the SDK sends.
    instance.user_data = Base64EncodedString(base64.b64encode(user_data).decode())
    return written(request, {})


@fix("ec2", "StartInstances", "StopInstances")
def start_and_stop_only_from_a_fitting_state(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto starts what is still stopping, and what is terminated; AWS refuses both."""
    for instance_id in call.parameters.get("InstanceIds") or []:
        ref = Ref("instance", instance_id, call.region)
        instance = find(ref)
        phase = context.lifecycle.phase(ref)
        is_stopping = phase == "stopping" and call.operation == "StartInstances"
        if instance is not None and (instance.state == "terminated" or phase == "deleting" or is_stopping):
            raise AwsError(
                "IncorrectInstanceState",
                f"The instance '{instance_id}' is not in a state from which it can be started or stopped.",
            )
    return context.dispatch(request)


@fix("ec2", "CreateSecurityGroup")
def compare_group_names_without_case(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto distinguishes `Web` and `web`; AWS does not, and refuses the second in one VPC."""
    ec2 = backend("ec2", call.region)
    vpc_id = call.parameters.get("VpcId") or getattr(ec2.get_default_vpc(), "id", None)
    name = call.parameters.get("GroupName", "")
    for group in ec2.groups.get(vpc_id, {}).values():
        if group.name.lower() == name.lower():
            raise AwsError("InvalidGroup.Duplicate", f"The security group '{name}' already exists for VPC '{vpc_id}'")
    answer = context.dispatch(request)
    if not answer.is_success:
        return answer
    # moto answers without the tags; AWS shows them.
    data = read(request, answer)
    tags = ec2.tags.get(data["GroupId"], {})
    shown = [{"Key": key, "Value": value} for key, value in tags.items()]
    return written(request, {**data, "Tags": shown}, answer)


@fix(
    "ec2",
    "AuthorizeSecurityGroupIngress",
    "AuthorizeSecurityGroupEgress",
    "RevokeSecurityGroupIngress",
    "RevokeSecurityGroupEgress",
)
def accept_only_ids_of_groups_as_peers(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto takes a group's name for its id in a rule's peer, and stores it; AWS refuses what is no id."""
    for permission in call.parameters.get("IpPermissions") or []:
        for pair in permission.get("UserIdGroupPairs") or []:
            group_id = pair.get("GroupId")
            if group_id and not _GROUP_ID.fullmatch(group_id):
                raise AwsError("InvalidGroupId.Malformed", f'Invalid id: "{group_id}" (expecting "sg-...")')
    return context.dispatch(request)


@fix("ec2", "DeleteVpc")
def keep_a_vpc_that_is_in_use(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto deletes a VPC that has security groups, gateways, or anything that Cloud Control made; AWS refuses."""
    vpc_id = call.parameters.get("VpcId", "")
    ec2 = backend("ec2", call.region)
    groups = [group for group in ec2.groups.get(vpc_id, {}).values() if group.name != "default"]
    gateways = [gateway for gateway in ec2.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id]
    if groups or gateways or refs.is_named("EC2", vpc_id, call.region):
        raise AwsError("DependencyViolation", f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
    return context.dispatch(request)


@fix("ec2", "DeleteSubnet")
def keep_a_subnet_that_is_in_use(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto deletes a subnet under its instances; AWS refuses as long as any network interface is in it."""
    subnet_id = call.parameters.get("SubnetId", "")
    interfaces = [eni for eni in backend("ec2", call.region).enis.values() if not eni.instance]
    if any(one.subnet_id == subnet_id for one in _present_instances(context, call.region)) or any(
        eni.subnet.id == subnet_id for eni in interfaces
    ):
        raise AwsError("DependencyViolation", f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    return context.dispatch(request)


@fix("ec2", "DeleteSecurityGroup")
def keep_a_group_that_is_in_use(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto deletes a group that interfaces, instances, databases or other groups use; AWS refuses."""
    group_id = call.parameters.get("GroupId")
    group = find(Ref("security-group", group_id or "", call.region))
    if group is None:
        return context.dispatch(request)
    if group.name == "default":
        raise AwsError("CannotDelete", f"the specified group: '{group_id}' name: 'default' cannot be deleted by a user")
    if group_id in _groups_in_use(context, call.region) or _is_named_by_others(group_id, call.region):
        raise AwsError("DependencyViolation", f"resource {group_id} has a dependent object")
    return context.dispatch(request)


def _present_instances(context: FixContext, region: str) -> list[Any]:
    """Return the instances that still have their network interface: all but those which are really gone."""
    shutting_down = [
        instance
        for reservation in backend("ec2", region).reservations.values()
        for instance in reservation.instances
        if context.lifecycle.phase(Ref("instance", instance.id, region)) == "deleting"
    ]
    return [find(ref) for ref in live("instance", region)] + shutting_down


def _groups_in_use(context: FixContext, region: str) -> set[str]:
    used = {
        group.id
        for instance in _present_instances(context, region)
        for group in [*instance.security_groups, *(one for nic in instance.nics.values() for one in nic.group_set)]
    }
    for eni in backend("ec2", region).enis.values():
        used |= set() if eni.instance else {group.id for group in eni.group_set}
    for ref in live("db", region):
        used |= set(getattr(find(ref), "vpc_security_group_ids", None) or [])
    return used


def _is_named_by_others(group_id: str | None, region: str) -> bool:
    for ref in live("security-group", region):
        other = find(ref)
        if other is None or other.id == group_id:
            continue
        for rule in [*other.ingress_rules, *other.egress_rules]:
            if rule.source_group.get("GroupId") == group_id:
                return True
    return False
