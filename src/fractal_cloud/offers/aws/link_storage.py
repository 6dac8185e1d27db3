"""Links to an S3 bucket: rights for that bucket alone, held by an identity of the link's own.

Inside AWS the source gets a role it can assume, and no key at all; on another cloud it gets an IAM user whose key
travels sealed (L9). A new key is made only when nobody can have received the last one. Every such identity is held by
the permissions boundary of the account, which somebody else made (A7).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from fractal_cloud.model.errors import Conflict, NotFound
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.link import InboundLink, OutboundLink, Published, inbound, outbound
from fractal_cloud.offers.link_types import STORAGE_LINK, StorageLink
from fractal_cloud.offers.secret import Secret
from fractal_cloud.offers.storage_links import Keys, bucket_of, identity_name, transfer_key

PATH: Final = "/fractal-cloud/"
BOUNDARY: Final = f"arn:{{}}:iam::{{}}:policy{PATH}boundary"  # of a partition and an account
POLICY: Final = "bucket"
LINK_TAG: Final = "fractal-cloud-link"
_LONGEST_NAME: Final = 64
USE_BUCKET: Final = ["s3:ListBucket", "s3:GetBucketLocation"]
READ_OBJECTS: Final = ["s3:GetObject", "s3:GetObjectVersion"]
WRITE_OBJECTS: Final = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
# Who may take the role: the services in which a source of that type runs.
_PRINCIPALS: Final = {
    "NetworkAndCompute.IaaS.AwsEc2Instance": "ec2.amazonaws.com",
    "CustomWorkloads.PaaS.AwsEcsService": "ecs-tasks.amazonaws.com",
}


@inbound(source="*", target=AwsS3, link_type=STORAGE_LINK, settings=StorageLink)
def grant_bucket(link: InboundLink[StorageLink]) -> Published | None:
    """Give the source rights for this bucket alone: a role inside AWS, a user with a key for other clouds."""
    bucket = bucket_of(link)
    common = {
        "bucket": bucket,
        "region": str(link.there.outputs["region"]),
        "endpoint": f"https://s3.{link.there.outputs['region']}.amazonaws.com",
        "access": link.settings.access,
    }
    if not link.is_cross_cloud():
        return {**common, "roleArn": _bring_role(link, bucket)}
    name = _bring_user(link, bucket)
    return {**common, "user": name, **transfer_key(link, _keys_of(link.cloud, name))}


@grant_bucket.revokes
def withdraw_bucket(link: InboundLink[StorageLink]) -> None:
    """Take the link's identity away, with its keys and rights; one of that name that it did not make is left."""
    cloud, name = link.cloud, _name(link)
    if _is_own(link, _find(cloud, "User", name)):
        for key in _keys(cloud, name):
            cloud.find("iam", "delete_access_key", UserName=name, AccessKeyId=key)
        cloud.find("iam", "delete_user_policy", UserName=name, PolicyName=POLICY)
        cloud.find("iam", "delete_user", UserName=name)
    if _is_own(link, _find(cloud, "Role", name)):
        cloud.find("iam", "delete_role_policy", RoleName=name, PolicyName=POLICY)
        cloud.find("iam", "delete_role", RoleName=name)


@grant_bucket.verifies
def still_granted(links: Sequence[InboundLink[StorageLink]]) -> Iterator[InboundLink[StorageLink]]:
    """Those whose identity is still there: two lists for all of them."""
    if not links:
        return
    cloud = links[0].cloud
    users = {user["UserName"] for page in cloud.pages("iam", "list_users", "Users", PathPrefix=PATH) for user in page}
    roles = {role["RoleName"] for page in cloud.pages("iam", "list_roles", "Roles", PathPrefix=PATH) for role in page}
    for link in links:
        if _name(link) in (users if link.is_cross_cloud() else roles):
            yield link


@grant_bucket.inspects(calls=2)
def is_whole(link: InboundLink[StorageLink]) -> bool:
    """Whether the identity has its rights and its key: IAM returns these of one identity at a time.

    A key that a person switched off is still there, and stays off.
    """
    cloud, name = link.cloud, _name(link)
    if not link.is_cross_cloud():
        found = cloud.find("iam", "get_role_policy", RoleName=name, PolicyName=POLICY)
    elif link.fields.get("accessKeyId") not in _keys(cloud, name):
        return False
    else:
        found = cloud.find("iam", "get_user_policy", UserName=name, PolicyName=POLICY)
    return found is not None and _same_policy(found["PolicyDocument"], _policy(link, bucket_of(link)))


def _same_policy(stored: Any, wanted: str) -> bool:
    document = json.loads(stored) if isinstance(stored, str) else stored
    return bool(document == json.loads(wanted))


def _name(link: InboundLink[StorageLink]) -> str:
    return identity_name(link, _LONGEST_NAME)


def _tags(link: InboundLink[StorageLink]) -> list[dict[str, str]]:
    return [{"Key": LINK_TAG, "Value": link.mark.replace("<", "=")}]


def _policy(link: InboundLink[StorageLink], bucket: str) -> str:
    arn = f"arn:{link.cloud.partition}:s3:::{bucket}"
    objects = [*READ_OBJECTS, *WRITE_OBJECTS] if link.settings.access == "read-write" else READ_OBJECTS
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": USE_BUCKET, "Resource": arn},
        {"Effect": "Allow", "Action": objects, "Resource": f"{arn}/*"},
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, sort_keys=True)


def _find(cloud: Aws, noun: Literal["User", "Role"], name: str) -> dict[str, Any] | None:
    found = cloud.find("iam", f"get_{noun.lower()}", **{f"{noun}Name": name})
    return found[noun] if found else None


def _is_own(link: InboundLink[StorageLink], item: Mapping[str, Any] | None) -> bool:
    """Whether a user or a role is there and bears this link's mark, below the path of links."""
    if item is None or not str(item.get("Path", "")).startswith(PATH):
        return False
    return _tags(link)[0] in (item.get("Tags") or ())


def _find_own(link: InboundLink[StorageLink], noun: Literal["User", "Role"]) -> dict[str, Any] | None:
    """The user or the role the link made, if it is there; one of that name that it did not make is left alone."""
    name = _name(link)
    found = _find(link.cloud, noun, name)
    if found is None:
        return None
    if not _is_own(link, found):
        raise Conflict(f"IAM {noun.lower()} {name!r} is there and was not made by this link: rename or delete it")
    wanted, actual = _boundary(link.cloud), (found.get("PermissionsBoundary") or {}).get("PermissionsBoundaryArn", "")
    if actual != wanted:
        raise Conflict(
            f"IAM {noun.lower()} {name!r} has the permissions boundary {actual!r}: set it with `aws iam "
            f"put-{noun.lower()}-permissions-boundary --{noun.lower()}-name {name} --permissions-boundary {wanted}`"
        )
    return found


def _boundary(cloud: Aws) -> str:
    return BOUNDARY.format(cloud.partition, cloud.account)


def _create(link: InboundLink[StorageLink], noun: Literal["User", "Role"], **parameters: Any) -> dict[str, Any]:
    """Make a user or a role of the link's own, held by the boundary; without the boundary none is made."""
    cloud, boundary = link.cloud, _boundary(link.cloud)
    common = {f"{noun}Name": _name(link), "Path": PATH, "PermissionsBoundary": boundary, "Tags": _tags(link)}
    try:
        made: dict[str, Any] = cloud.call("iam", f"create_{noun.lower()}", **common, **parameters)[noun]
    except NotFound as missing:
        raise Conflict(
            f"the permissions boundary {boundary!r} is not there: create that policy from what "
            "`fractal agent policy --provider aws --boundary` prints",
            code=missing.code,
            request_id=missing.request_id,
        ) from missing
    return made


def _bring_user(link: InboundLink[StorageLink], bucket: str) -> str:
    cloud, name = link.cloud, _name(link)
    if _find_own(link, "User") is None:
        _create(link, "User")
    cloud.call("iam", "put_user_policy", UserName=name, PolicyName=POLICY, PolicyDocument=_policy(link, bucket))
    return name


def _bring_role(link: InboundLink[StorageLink], bucket: str) -> str:
    cloud, name = link.cloud, _name(link)
    found = _find_own(link, "Role")
    if found is None:
        service = _PRINCIPALS.get(link.other_type, "ecs-tasks.amazonaws.com")
        trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        found = _create(link, "Role", AssumeRolePolicyDocument=document)
    cloud.call("iam", "put_role_policy", RoleName=name, PolicyName=POLICY, PolicyDocument=_policy(link, bucket))
    return str(found["Arn"])


def _keys(cloud: Aws, user: str) -> list[str]:
    """The ids of a user's access keys, the oldest first."""
    found = cloud.find("iam", "list_access_keys", UserName=user)
    keys = found["AccessKeyMetadata"] if found else []
    return [key["AccessKeyId"] for key in sorted(keys, key=lambda key: str(key.get("CreateDate")))]


def _keys_of(cloud: Aws, user: str) -> Keys:
    def make() -> tuple[str, Secret]:
        made = cloud.call("iam", "create_access_key", UserName=user)["AccessKey"]
        return made["AccessKeyId"], Secret(made["SecretAccessKey"])

    def drop(key: str) -> None:
        cloud.find("iam", "delete_access_key", UserName=user, AccessKeyId=key)

    return Keys(_keys(cloud, user), make, drop)


def use_bucket(link: OutboundLink[StorageLink]) -> Published | None:
    """Publish which bucket may be used, and with which role."""
    if "bucket" not in link.published:
        return None
    names = ("bucket", "region", "endpoint", "roleArn", "access")
    return {name: link.published[name] for name in names if name in link.published}


ec2_to_bucket = outbound(
    source="NetworkAndCompute.IaaS.AwsEc2Instance", target=AwsS3, link_type=STORAGE_LINK, settings=StorageLink
)(use_bucket)
ecs_to_bucket = outbound(
    source="CustomWorkloads.PaaS.AwsEcsService", target=AwsS3, link_type=STORAGE_LINK, settings=StorageLink
)(use_bucket)
