"""The rights the agent needs in a project, as a custom IAM role for `gcloud iam roles create --file`.

Google's IAM knows no condition on the labels of these types. That the agent changes only what is managed, its own
preconditions make sure of where Google has them: `docs/providers/gcp.md` says where. What each type needs stands on its
offer.
"""

from __future__ import annotations

from typing import Final

import yaml

from fractal_cloud.offers.registry import installed

TITLE: Final = "Fractal Cloud agent"
PROJECT: Final = "resourcemanager.projects.get"
# What links to buckets make: a service account with an HMAC key, and its role in the policy of that bucket alone.
LINKS: Final = (
    "iam.serviceAccounts.create",
    "iam.serviceAccounts.delete",
    "iam.serviceAccounts.get",
    "iam.serviceAccounts.list",
    "storage.buckets.getIamPolicy",
    "storage.buckets.setIamPolicy",
    "storage.hmacKeys.create",
    "storage.hmacKeys.delete",
    "storage.hmacKeys.list",
    "storage.hmacKeys.update",
)


def policy() -> str:
    """The role's definition, in the form gcloud takes."""
    permissions = {PROJECT, *installed("gcp").rights("gcp"), *LINKS}
    role = {
        "title": TITLE,
        "description": "Reads, and changes what it manages: docs/providers/gcp.md",
        "stage": "GA",
        "includedPermissions": sorted(permissions),
    }
    return yaml.safe_dump(role, sort_keys=False)
