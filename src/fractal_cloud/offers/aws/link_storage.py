"""Links to an S3 bucket: rights for that bucket alone, held by an identity of the link's own.

Inside AWS the source gets a role it can assume, and no key at all; on another cloud it gets an IAM user whose key
travels sealed (L9). A new key is made only when nobody can have received the last one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from fractal_cloud.model.errors import Conflict
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.link import InboundLink, OutboundLink, Published, inbound, outbound
from fractal_cloud.offers.link_types import STORAGE_LINK, StorageLink

PATH: Final = "/fractal-cloud/"
POLICY: Final = "bucket"
LINK_TAG: Final = "fractal-cloud-link"
_LONGEST_NAME: Final = 64
_READ: Final = ["s3:GetObject", "s3:GetObjectVersion"]
_WRITE: Final = ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
# Who may take the role: the services in which a source of that type runs.
_PRINCIPALS: Final = {
    "NetworkAndCompute.IaaS.AwsEc2Instance": "ec2.amazonaws.com",
    "CustomWorkloads.PaaS.AwsEcsService": "ecs-tasks.amazonaws.com",
}


@inbound(source="*", target=AwsS3, link_type=STORAGE_LINK, settings=StorageLink)
def grant_bucket(link: InboundLink[StorageLink]) -> Published | None:
    """Give the source rights for this bucket alone: a role inside AWS, a user with a key for other clouds."""
    bucket = _bucket(link)
    common = {
        "bucket": bucket,
        "region": str(link.there.outputs["region"]),
        "endpoint": f"https://s3.{link.there.outputs['region']}.amazonaws.com",
        "access": link.settings.access,
    }
    if not link.is_cross_cloud():
        return {**common, "roleArn": _bring_role(link, bucket)}
    name = _bring_user(link, bucket)
    keys = _keys(link.cloud, name)
    sent, received = link.fields.get("accessKeyId"), link.published.get("received")
    lock = hashlib.sha256(link.key.encode()).hexdigest()[:12]
    if sent in keys and sent == received:
        _drop_keys(link, name, keys, keep=str(sent))
        return {**common, "user": name, "accessKeyId": str(sent)}
    if sent in keys and link.fields.get("sealedTo") == lock:
        return {**common, "user": name, **{key: link.fields[key] for key in ("accessKeyId", "sealedTo", "sealed")}}
    return {**common, "user": name, **_new_key(link, name, keys, lock)}


@grant_bucket.revokes
def withdraw_bucket(link: InboundLink[StorageLink]) -> None:
    """Take the link's identity away, with its keys and rights."""
    cloud, name = link.cloud, _name(link)
    for key in _keys(cloud, name):
        cloud.find("iam", "delete_access_key", UserName=name, AccessKeyId=key)
    cloud.find("iam", "delete_user_policy", UserName=name, PolicyName=POLICY)
    cloud.find("iam", "delete_user", UserName=name)
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
    """Whether the identity has its rights and its key: IAM tells these of one identity at a time.

    A key that a person switched off is still there, and stays off.
    """
    cloud, name = link.cloud, _name(link)
    if not link.is_cross_cloud():
        found = cloud.find("iam", "get_role_policy", RoleName=name, PolicyName=POLICY)
    elif link.fields.get("accessKeyId") not in _keys(cloud, name):
        return False
    else:
        found = cloud.find("iam", "get_user_policy", UserName=name, PolicyName=POLICY)
    return found is not None and _same_policy(found["PolicyDocument"], _policy(link, _bucket(link)))


def _same_policy(told: Any, wanted: str) -> bool:
    document = json.loads(told) if isinstance(told, str) else told
    return bool(document == json.loads(wanted))


def _bucket(link: InboundLink[StorageLink]) -> str:
    own = str(link.there.outputs["bucketName"])
    asked = link.settings.bucket
    if asked not in (None, own):
        raise Conflict(f"the link asks for bucket {asked!r}, but {link.own!r} is {own!r}: leave bucket out")
    return own


def _name(link: InboundLink[StorageLink]) -> str:
    digest = hashlib.sha256(link.mark.encode()).hexdigest()[:10]
    readable = re.sub(r"[^A-Za-z0-9-]+", "-", f"{link.own}-{link.source_id}")
    return f"{readable[: _LONGEST_NAME - len(digest) - 1]}-{digest}"


def _tags(link: InboundLink[StorageLink]) -> list[dict[str, str]]:
    return [{"Key": LINK_TAG, "Value": link.mark.replace("<", "=")}]


def _policy(link: InboundLink[StorageLink], bucket: str) -> str:
    arn = f"arn:{link.cloud.partition}:s3:::{bucket}"
    objects = [*_READ, *_WRITE] if link.settings.access == "read-write" else _READ
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": ["s3:ListBucket", "s3:GetBucketLocation"], "Resource": arn},
        {"Effect": "Allow", "Action": objects, "Resource": f"{arn}/*"},
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, sort_keys=True)


def _bring_user(link: InboundLink[StorageLink], bucket: str) -> str:
    cloud, name = link.cloud, _name(link)
    if cloud.find("iam", "get_user", UserName=name) is None:
        cloud.call("iam", "create_user", UserName=name, Path=PATH, Tags=_tags(link))
    cloud.call("iam", "put_user_policy", UserName=name, PolicyName=POLICY, PolicyDocument=_policy(link, bucket))
    return name


def _bring_role(link: InboundLink[StorageLink], bucket: str) -> str:
    cloud, name = link.cloud, _name(link)
    found = cloud.find("iam", "get_role", RoleName=name)
    if found is None:
        service = _PRINCIPALS.get(link.other_type, "ecs-tasks.amazonaws.com")
        trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        found = cloud.call(
            "iam", "create_role", RoleName=name, Path=PATH, AssumeRolePolicyDocument=document, Tags=_tags(link)
        )
    cloud.call("iam", "put_role_policy", RoleName=name, PolicyName=POLICY, PolicyDocument=_policy(link, bucket))
    return str(found["Role"]["Arn"])


def _keys(cloud: Aws, user: str) -> list[str]:
    """The ids of a user's access keys, the oldest first."""
    found = cloud.find("iam", "list_access_keys", UserName=user)
    keys = found["AccessKeyMetadata"] if found else []
    return [key["AccessKeyId"] for key in sorted(keys, key=lambda key: str(key.get("CreateDate")))]


def _new_key(link: InboundLink[StorageLink], user: str, keys: list[str], lock: str) -> dict[str, str]:
    """A key that only the source's agent will read. One that is in use stays until the new one has arrived."""
    _drop_keys(link, user, keys, keep=str(link.published.get("received", "")))
    made = link.cloud.call("iam", "create_access_key", UserName=user)["AccessKey"]
    secret = link.keep_secret(made["SecretAccessKey"])
    return {"accessKeyId": made["AccessKeyId"], "sealedTo": lock, "sealed": link.seal(secret)}


def _drop_keys(link: InboundLink[StorageLink], user: str, keys: list[str], keep: str) -> None:
    for stale in keys:
        if stale != keep:
            link.cloud.find("iam", "delete_access_key", UserName=user, AccessKeyId=stale)


def use_bucket(link: OutboundLink[StorageLink]) -> Published | None:
    """Tell what runs here which bucket it may use, and with which role."""
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
