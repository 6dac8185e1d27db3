"""Links to a bucket of Object Storage: a user of the link's own, whose key signs as for S3 and opens that bucket alone.

The rights stand in a policy for a group whose only member is that user. Policies know no region of a bucket and no case
of its name: so the region is part of the condition, and a bucket whose name differs from another one's in case only is
refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fractal_cloud.model.errors import Conflict, Invalid, NotFound
from fractal_cloud.offers.link import InboundLink, Published, inbound
from fractal_cloud.offers.link_types import STORAGE_LINK, StorageLink
from fractal_cloud.offers.oci.bucket import OciBucket
from fractal_cloud.offers.oci.calls import CORE, Item, Oci
from fractal_cloud.offers.oci.regions import s3_address
from fractal_cloud.offers.secret import Secret
from fractal_cloud.offers.storage_links import Keys, bucket_of, identity_name, transfer_key

EMAIL: Final = "FRACTAL_OCI_LINK_EMAIL"
LINK_TAG: Final = "fractal-cloud-link"
PREFIX: Final = "fractal-cloud-link-"
"""How the names of links' users, groups and policies begin: by this their rights are bounded (A7)."""
SERVICE: Final = "identity"
_LONGEST_NAME: Final = 100
_USERS, _GROUPS, _POLICIES = (f"{CORE}/{name}" for name in ("users", "groups", "policies"))
_MEMBERS: Final = f"{CORE}/userGroupMemberships"
_READ: Final = ("OBJECT_INSPECT", "OBJECT_READ")
_WRITE: Final = ("OBJECT_CREATE", "OBJECT_OVERWRITE", "OBJECT_DELETE")
Link = InboundLink[StorageLink]


@inbound(source="*", target=OciBucket, link_type=STORAGE_LINK, settings=StorageLink)
def grant_bucket(link: Link) -> Published | None:
    """Give the source a user with rights for this bucket alone; its key travels sealed, and signs as for S3."""
    cloud, bucket = link.cloud, bucket_of(link)
    _check_case(cloud, bucket)
    name = _name(link)
    group = _bring(link, _GROUPS, {})
    user = _bring(link, _USERS, _email(name))
    if not _memberships(cloud, user["id"], group["id"]):
        cloud.create(SERVICE, _MEMBERS, {"userId": user["id"], "groupId": group["id"]})
    rights = _bring_policy(link, _statements(link, bucket, group["id"]))
    return {
        "bucket": bucket,
        "namespace": cloud.namespace,
        "region": cloud.region,
        "endpoint": s3_address(cloud.namespace, cloud.region),
        "access": link.settings.access,
        "user": name,
        "rights": rights,
        **transfer_key(link, _keys(link, user["id"])),
    }


@grant_bucket.revokes
def withdraw_bucket(link: Link) -> None:
    """Take the rights away, then the user with its keys, then the group; gone already is success."""
    cloud = link.cloud
    policy, user, group = (_find(link, path) for path in (_POLICIES, _USERS, _GROUPS))
    _delete(cloud, _POLICIES, policy)
    if user is not None:
        for key in _key_ids(cloud, user["id"]):
            cloud.drop(SERVICE, f"{_USERS}/{user['id']}/customerSecretKeys/{key}")
        for member in _memberships(cloud, user["id"]):
            _delete(cloud, _MEMBERS, member)
    _delete(cloud, _USERS, user)
    _delete(cloud, _GROUPS, group)


@grant_bucket.verifies
def still_granted(links: Sequence[Link]) -> Iterator[Link]:
    """Those whose user and group are there, and whose policy says what it said: three lists for all of them."""
    if not links:
        return
    cloud: Oci = links[0].cloud
    users, groups, policies = (_by_name(cloud, path) for path in (_USERS, _GROUPS, _POLICIES))
    for link in links:
        name = _name(link)
        policy = policies.get(name)
        rights = str(link.fields.get("rights", "")).partition(".")[2]
        has_rights = policy is not None and _digest(policy["statements"]) == rights
        if name in users and name in groups and has_rights:
            yield link


@grant_bucket.inspects(calls=3)
def is_whole(link: Link) -> bool:
    """Whether the user has its key and is in its group: OCI returns these for one user at a time."""
    user, cloud = _find(link, _USERS), link.cloud
    if user is None or link.fields.get("accessKeyId") not in _key_ids(cloud, user["id"]):
        return False
    return bool(_memberships(cloud, user["id"]))


def _name(link: Link) -> str:
    return f"{PREFIX}{identity_name(link, _LONGEST_NAME - len(PREFIX))}"


def _email(name: str) -> dict[str, str]:
    """An address for a user, where identity domains ask for one: the agent's setting, with the name behind a plus."""
    box, _, host = os.environ.get(EMAIL, "").partition("@")
    return {"email": f"{box}+{name}@{host}"} if host else {}


# --- users, groups and policies: each found by its name, and recognised by the mark among its tags


def _home(cloud: Oci, path: str) -> str:
    """Users and groups are the tenancy's; a policy stands in the bucket's own compartment."""
    return cloud.compartment if path == _POLICIES else cloud.tenancy


def _by_name(cloud: Oci, path: str) -> Mapping[str, Item]:
    return {one["name"]: one for one in cloud.list(SERVICE, path, compartmentId=_home(cloud, path))}


def _find(link: Link, path: str) -> Item | None:
    """What the link made there, if it is there; one of that name that it did not make is left alone."""
    cloud, name = link.cloud, _name(link)
    found = cloud.list(SERVICE, path, compartmentId=_home(cloud, path), name=name)
    item: Item | None = next((one for one in found if one["name"] == name), None)
    if item is not None and (item.get("freeformTags") or {}).get(LINK_TAG) != link.mark:
        what = path.rpartition("/")[2]
        raise Conflict(f"{name!r} is among the {what} and was not made by this link: rename or delete it")
    return item


def _bring(link: Link, path: str, more: Mapping[str, object]) -> Item:
    found = _find(link, path)
    if found is not None:
        return found
    cloud: Oci = link.cloud
    body = {
        "compartmentId": _home(cloud, path),
        "name": _name(link),
        "description": f"made by Fractal Cloud for the link {link.mark}",
        "freeformTags": {LINK_TAG: link.mark},
        **more,
    }
    try:
        return cloud.create(SERVICE, path, body)[0]
    except Invalid as refusal:
        if "primary email" in refusal.message:
            cause = f"the tenancy asks for an address of every user, so set {EMAIL}=somebody@example.com at the agent"
            raise Invalid(cause, code=refusal.code, request_id=refusal.request_id) from refusal
        raise


def _bring_policy(link: Link, statements: list[str]) -> str:
    """Have the policy say these statements; returns what stands for them and for OCI's own spelling of them.

    OCI may spell a statement its own way, so what it shows is compared with what it showed when it was written.
    """
    cloud, wanted = link.cloud, _digest(statements)
    item = _bring(link, _POLICIES, {"statements": statements})
    is_as_written = link.fields.get("rights") == f"{wanted}.{_digest(item['statements'])}"
    if not is_as_written and item["statements"] != statements:
        path = f"{_POLICIES}/{item['id']}"
        cloud.change(SERVICE, "PUT", path, _read(cloud, path)[1], {"statements": statements})
        item, _ = _read(cloud, path)
    return f"{wanted}.{_digest(item['statements'])}"


def _read(cloud: Oci, path: str) -> tuple[Item, str]:
    found = cloud.find(SERVICE, path)
    if found is None:
        raise NotFound(f"{path} cannot be read any more: it is looked for again")
    return found


def _delete(cloud: Oci, path: str, item: Item | None) -> None:
    found = cloud.find(SERVICE, f"{path}/{item['id']}") if item is not None else None
    if found is not None:
        cloud.change(SERVICE, "DELETE", f"{path}/{found[0]['id']}", found[1])


def _memberships(cloud: Oci, user: str, group: str = "") -> list[Item]:
    query = {"userId": user, **({"groupId": group} if group else {})}
    return list(cloud.list(SERVICE, _MEMBERS, compartmentId=cloud.tenancy, **query))


# --- rights


def _statements(link: Link, bucket: str, group: str) -> list[str]:
    cloud: Oci = link.cloud
    where = "tenancy" if cloud.compartment == cloud.tenancy else f"compartment id {cloud.compartment}"
    here = f"target.bucket.name='{bucket}', request.region='{cloud.region_key}'"
    objects = f"read objects in {where} where all {{{here}}}"
    if link.settings.access == "read-write":
        permissions = ", ".join(f"request.permission='{one}'" for one in (*_READ, *_WRITE))
        objects = f"manage objects in {where} where all {{{here}, any {{{permissions}}}}}"
    buckets = f"read buckets in {where} where all {{{here}}}"
    return [f"Allow group id {group} to {what}" for what in (buckets, objects)]


def _digest(statements: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(statements).encode()).hexdigest()[:16]


def _check_case(cloud: Oci, bucket: str) -> None:
    listed = cloud.list("objectstorage", cloud.buckets())
    twins = [one["name"] for one in listed if one["name"] != bucket and one["name"].lower() == bucket.lower()]
    if twins:
        raise Conflict(
            f"bucket {bucket!r} differs from {twins[0]!r} in case only, which OCI's policies ignore: "
            "the link would open both, so name one of them otherwise"
        )


# --- keys


def _key_ids(cloud: Oci, user: str) -> list[str]:
    """The ids of a user's keys, the oldest first."""
    found = cloud.whole(SERVICE, f"{_USERS}/{user}/customerSecretKeys")
    return [one["id"] for one in sorted(found, key=lambda one: str(one.get("timeCreated")))]


def _keys(link: Link, user: str) -> Keys:
    cloud: Oci = link.cloud
    path = f"{_USERS}/{user}/customerSecretKeys"

    def make() -> tuple[str, Secret]:
        made, _ = cloud.create(SERVICE, path, {"displayName": _name(link)})
        return made["id"], Secret(made["key"])

    return Keys(_key_ids(cloud, user), make, lambda key: cloud.drop(SERVICE, f"{path}/{key}"))
