"""What an EC2 instance is given beside its place and size (profile, metadata service, root volume), and its reading."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.offers.aws.cloud import Aws

METADATA: Final[Mapping[str, str]] = {
    "httpEndpoint": "HttpEndpoint",
    "httpTokens": "HttpTokens",
    "httpPutResponseHopLimit": "HttpPutResponseHopLimit",
    "instanceMetadataTags": "InstanceMetadataTags",
}
"""Settings of the metadata service, by parameter; one call sets all of them."""

ROOT_VOLUME: Final[Mapping[str, tuple[str, str]]] = {
    "rootVolumeSize": ("VolumeSize", "Size"),
    "rootVolumeType": ("VolumeType", "VolumeType"),
    "rootVolumeIops": ("Iops", "Iops"),
    "rootVolumeThroughput": ("Throughput", "Throughput"),
    "rootVolumeEncrypted": ("Encrypted", "Encrypted"),
    "rootVolumeKmsKeyId": ("KmsKeyId", "KmsKeyId"),
}
"""What the root volume itself reports: its name in requests and in answers.

A volume can be changed in place, but it is a resource of its own that does not bear the protocol's tags: not by us.
"""

_ALWAYS_REPORTED: Final = ("Size", "VolumeType", "Encrypted")
_VALUES_OF_A_FILTER: Final = 200
_DELETED: Final = "rootVolumeDeleteOnTermination"
_MONITORED: Final = ("enabled", "pending")
_OF_AMAZON: Final = "amazon"


def profile(text: str) -> dict[str, str]:
    """A profile as requests name it."""
    return {"Arn" if text.startswith("arn:") else "Name": text}


def give_profile(cloud: Aws, instance_id: str, text: str) -> None:
    """Give it a profile: in the place of the one it has, or as its first."""
    held = cloud.call(
        "ec2",
        "describe_iam_instance_profile_associations",
        Filters=[{"Name": "instance-id", "Values": [instance_id]}, {"Name": "state", "Values": ["associated"]}],
    )["IamInstanceProfileAssociations"]
    if held:
        cloud.call(
            "ec2",
            "replace_iam_instance_profile_association",
            AssociationId=held[0]["AssociationId"],
            IamInstanceProfile=profile(text),
        )
    else:
        cloud.call("ec2", "associate_iam_instance_profile", InstanceId=instance_id, IamInstanceProfile=profile(text))


def metadata(declared: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Those settings of the metadata service that are declared, as requests spell them."""
    return {METADATA[name]: declared[name] for name in names if name in declared}


def root_device(cloud: Aws, image_id: str, declared: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The root volume as a request describes it, empty where nothing of it is declared: its image names the device."""
    ebs = {sent: declared[name] for name, (sent, _) in ROOT_VOLUME.items() if name in declared}
    if _DELETED in declared:
        ebs["DeleteOnTermination"] = declared[_DELETED]
    if not ebs:
        return []
    images = cloud.call("ec2", "describe_images", ImageIds=[image_id])["Images"]
    # An image that is not shown is refused by the call that starts the machine, which says why.
    device = next((image["RootDeviceName"] for image in images if image.get("RootDeviceName")), "/dev/xvda")
    return [{"DeviceName": device, "Ebs": ebs}]


def delete_on_termination(device: str, value: bool | None) -> dict[str, Any]:
    """The change of what becomes of the root volume."""
    return {"DeviceName": device, "Ebs": {"DeleteOnTermination": bool(value)}}


def root_volume(cloud: Aws, volume_id: str, names: Collection[str]) -> dict[str, Any]:
    """What the root volume reports; nothing where it is gone."""
    answer = cloud.find("ec2", "describe_volumes", VolumeIds=[volume_id])
    volume = next(iter(answer["Volumes"]), None) if answer else None
    return {} if volume is None else {name: volume.get(ROOT_VOLUME[name][1]) for name in names}


def root_volumes(
    cloud: Aws, asked: Iterable[tuple[str, str | None, Collection[str]]]
) -> Iterator[tuple[str, Mapping[str, Any] | CloudError]]:
    """What the root volumes of many instances report, two hundred a call; for each its instance, volume and names.

    They are asked for by a filter, which leaves out what is gone: by ids, one that is gone would refuse them all.
    """
    known = []
    for instance_id, volume_id, names in asked:
        if volume_id:
            known.append((instance_id, volume_id, names))
        else:
            yield instance_id, Unreadable("no root volume is attached to it")
    for start in range(0, len(known), _VALUES_OF_A_FILTER):
        some = known[start : start + _VALUES_OF_A_FILTER]
        try:
            volumes = _volumes(cloud, [volume_id for _, volume_id, _ in some])
        except CloudError as error:
            yield from ((instance_id, error) for instance_id, _, _ in some)
            continue
        for instance_id, volume_id, names in some:
            yield instance_id, _reported(volumes.get(volume_id), volume_id, names)


def _volumes(cloud: Aws, volume_ids: list[str]) -> dict[str, Mapping[str, Any]]:
    by_id = [{"Name": "volume-id", "Values": volume_ids}]
    pages = cloud.pages("ec2", "describe_volumes", "Volumes", Filters=by_id, MaxResults=_VALUES_OF_A_FILTER)
    return {volume["VolumeId"]: volume for page in pages for volume in page}


def _reported(
    volume: Mapping[str, Any] | None, volume_id: str, names: Collection[str]
) -> Mapping[str, Any] | CloudError:
    if volume is None:
        return Unreadable(f"AWS does not show its root volume {volume_id!r}")
    lacking = [key for key in _ALWAYS_REPORTED if volume.get(key) is None]
    if lacking:
        return Unreadable(f"the answer about its root volume {volume_id!r} lacks {', '.join(lacking)}")
    return {name: volume.get(ROOT_VOLUME[name][1]) for name in names}


def root_mapping(instance: Mapping[str, Any]) -> Mapping[str, Any]:
    """How the root volume hangs on an instance."""
    root = instance.get("RootDeviceName")
    mappings = instance.get("BlockDeviceMappings") or ()
    return next((one.get("Ebs") or {} for one in mappings if one["DeviceName"] == root), {})


def settings(instance: Mapping[str, Any]) -> dict[str, Any]:
    """What the list of instances shows of the settings; what it does not show is not compared."""
    options = instance.get("MetadataOptions") or {}
    found = {name: options[key] for name, key in METADATA.items() if options.get(key) is not None}
    found["iamInstanceProfile"] = (instance.get("IamInstanceProfile") or {}).get("Arn")
    found["monitoring"] = (instance.get("Monitoring") or {}).get("State") in _MONITORED
    found["ebsOptimized"] = bool(instance.get("EbsOptimized"))
    if instance.get("SourceDestCheck") is not None:  # with several interfaces, each has its own
        found["sourceDestCheck"] = instance["SourceDestCheck"]
    deleted = root_mapping(instance).get("DeleteOnTermination")
    if deleted is not None:
        found[_DELETED] = deleted
    return {**found, **_public_address(instance)}


def _public_address(instance: Mapping[str, Any]) -> dict[str, bool]:
    """Whether it has an address of Amazon's; unknown while it is stopped, and behind an address of somebody's own."""
    interfaces = instance.get("NetworkInterfaces") or ()
    primary = next((one for one in interfaces if (one.get("Attachment") or {}).get("DeviceIndex") == 0), None)
    if primary is None or instance["State"]["Name"] != "running":
        return {}
    owner = (primary.get("Association") or {}).get("IpOwnerId")
    return {"associatePublicIpAddress": owner == _OF_AMAZON} if owner in (None, _OF_AMAZON) else {}
