"""Links to a Cloud Storage bucket: a service account of the link's own, with a role in that bucket alone.

Its HMAC key signs as for S3, so that what runs elsewhere uses one client for every object store, and travels sealed. In
the bucket's policy the link is recognised by its own account, which bears the mark as its description (L17).

Whoever may make HMAC keys in a project may make them for every service account in it. So a setting gives links a
project of their own for accounts and keys, in which nothing else has any (A7).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.model.errors import Conflict, NotFound
from fractal_cloud.offers.gcp.bucket import GcpGcsBucket
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.link import InboundLink, Published, inbound
from fractal_cloud.offers.link_types import STORAGE_LINK, Access, StorageLink
from fractal_cloud.offers.secret import Secret
from fractal_cloud.offers.storage_links import Keys, bucket_of, identity_name, transfer_key

LINK_PROJECT: Final = "FRACTAL_GCP_LINK_PROJECT"
REGION: Final = "auto"
_LONGEST_NAME: Final = 30
_PREFIX: Final = "fc-"
ROLES: Final[Mapping[Access, str]] = {
    "read-only": "roles/storage.objectViewer",
    "read-write": "roles/storage.objectUser",
}
Link = InboundLink[StorageLink]
Item = dict[str, Any]


@inbound(source="*", target=GcpGcsBucket, link_type=STORAGE_LINK, settings=StorageLink)
def grant_bucket(link: Link) -> Published | None:
    """Give the source an account with a role in this bucket alone; its key travels sealed, and signs as for S3."""
    bucket, email = bucket_of(link), _email(link)
    _bring_account(link)
    _bring_role(link, bucket, ROLES[link.settings.access])
    return {
        "bucket": bucket,
        "region": REGION,
        "endpoint": link.cloud.s3_address,
        "access": link.settings.access,
        "user": email,
        **transfer_key(link, _keys(link.cloud, email)),
    }


@grant_bucket.revokes
def withdraw_bucket(link: Link) -> None:
    """Take the role away, then the keys, then the account; gone already is success."""
    cloud, email = link.cloud, _email(link)
    account = _find_account(link)
    if link.sighting is not None:
        _bring_role(link, str(link.sighting.outputs["bucketName"]), None)
    keys = _keys(cloud, email)
    for key in keys.there:
        keys.drop(key)
    if account is not None:
        cloud.remove("iam", _account_path(link.cloud, email))


@grant_bucket.verifies
def still_granted(links: Sequence[Link]) -> Iterator[Link]:
    """Those whose account, key and role are there: two lists for all, and the policy of each bucket."""
    if not links:
        return
    cloud: Gcp = links[0].cloud
    pages = cloud.pages("iam", f"/v1/projects/{_home(cloud)}/serviceAccounts", "accounts", pageSize="100")
    accounts = {one["email"] for page in pages for one in page}
    keys = {str(one["accessId"]) for one in _listed_keys(cloud)}
    policies: dict[str, Item] = {}
    for link in links:
        bucket, email = str(link.there.outputs["bucketName"]), _email(link)
        if bucket not in policies:
            policies[bucket] = _policy(cloud, bucket)
        roles, former = _roles_of(policies[bucket], email), _roles_of(policies[bucket], _former(link))
        is_there = email in accounts and link.fields.get("accessKeyId") in keys
        if is_there and roles == [ROLES[link.settings.access]] and not former:
            yield link


# --- the account


def _home(cloud: Gcp) -> str:
    """The project in which links make accounts and keys: their own where the agent has one for them."""
    return os.environ.get(LINK_PROJECT, "").strip() or cloud.project


def _email(link: Link) -> str:
    return _email_in(link, _home(link.cloud))


def _former(link: Link) -> str:
    """The account that was the link's before links had a project of their own; empty where that is the same."""
    return _email_in(link, link.cloud.project) if _home(link.cloud) != link.cloud.project else ""


def _email_in(link: Link, project: str) -> str:
    name = identity_name(link, _LONGEST_NAME - len(_PREFIX)).lower()
    return f"{_PREFIX}{name}@{project}.iam.gserviceaccount.com"


def _account_path(cloud: Gcp, email: str) -> str:
    return f"/v1/projects/{_home(cloud)}/serviceAccounts/{email}"


def _find_account(link: Link) -> Item | None:
    """The account the link made, if it is there; one of that name that it did not make is left alone."""
    email = _email(link)
    found: Item | None = link.cloud.find("iam", _account_path(link.cloud, email))
    if found is not None and found.get("description") != link.mark:
        raise Conflict(f"service account {email!r} is there and was not made by this link: delete it")
    return found


def _bring_account(link: Link) -> None:
    if _find_account(link) is not None:
        return
    account = {"displayName": f"Fractal Cloud: {link.other}"[:100], "description": link.mark}
    body = {"accountId": _email(link).partition("@")[0], "serviceAccount": account}
    link.cloud.write("iam", "POST", f"/v1/projects/{_home(link.cloud)}/serviceAccounts", body)


# --- its role in the bucket's policy


def _policy(cloud: Gcp, bucket: str) -> Item:
    found = cloud.find("storage", f"/b/{bucket}/iam", optionsRequestedPolicyVersion="3")
    if found is None:
        raise NotFound(f"bucket {bucket!r} cannot be read: it is looked for again")
    return found


def _roles_of(policy: Item, email: str) -> list[str]:
    member = f"serviceAccount:{email}"
    return [one["role"] for one in policy.get("bindings") or () if member in one.get("members", ())]


def _bring_role(link: Link, bucket: str, role: str | None) -> None:
    """Have the account that one role in the bucket, or none; everybody else's are as they were, or it is refused.

    An account that was the link's before loses its role: it opens nothing any more, wherever it is.
    """
    cloud, email, former = link.cloud, _email(link), _former(link)
    policy = _policy(cloud, bucket)
    if _roles_of(policy, email) == ([role] if role else []) and not _roles_of(policy, former):
        return
    member, gone = f"serviceAccount:{email}", {f"serviceAccount:{email}", f"serviceAccount:{former}"}
    bindings: list[Item] = []
    for one in policy.get("bindings") or ():
        members = [other for other in one.get("members", ()) if other not in gone]
        if members:
            bindings.append({**one, "members": members})
    if role:
        plain = next((one for one in bindings if one["role"] == role and not one.get("condition")), None)
        if plain is None:
            bindings.append({"role": role, "members": [member]})
        else:
            plain["members"] = [*plain["members"], member]
    cloud.write("storage", "PUT", f"/b/{bucket}/iam", {**policy, "bindings": bindings})


# --- its keys


def _listed_keys(cloud: Gcp, **query: str) -> list[Item]:
    path = f"/projects/{_home(cloud)}/hmacKeys"
    return [one for page in cloud.pages("storage", path, "items", maxResults="250", **query) for one in page]


def _keys(cloud: Gcp, email: str) -> Keys:
    path = f"/projects/{_home(cloud)}/hmacKeys"
    there = sorted(_listed_keys(cloud, serviceAccountEmail=email), key=lambda one: str(one.get("timeCreated")))

    def make() -> tuple[str, Secret]:
        made = cloud.write("storage", "POST", path, None, {"serviceAccountEmail": email})
        return str(made["metadata"]["accessId"]), Secret(str(made["secret"]))

    def drop(key: str) -> None:
        """Google deletes no key that is in use: it is switched off first."""
        try:
            cloud.write("storage", "PUT", f"{path}/{key}", {"state": "INACTIVE"})
        except NotFound:
            return
        cloud.remove("storage", f"{path}/{key}")

    return Keys([str(one["accessId"]) for one in there], make, drop)
