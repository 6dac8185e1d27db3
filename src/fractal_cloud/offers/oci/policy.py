"""The rights the agent needs in a tenancy, as statements of OCI's own policy language.

OCI knows no conditions on free-form tags; but every write carries the etag of the read it rests on, which any edit of a
tag changes, so the cloud itself refuses what a person was faster at (S16).
"""

from __future__ import annotations

from typing import Final

GROUP: Final = "fractal-cloud-agent"
WHERE: Final = "tenancy"
# What each type needs: its own kind, and what a creation or a deletion touches beside it.
_NEEDS: Final = (
    ("inspect", "compartments"),
    ("manage", "vcns"),
    ("manage", "subnets"),
    ("manage", "route-tables"),
    ("manage", "security-lists"),
    ("manage", "dhcp-options"),
    ("use", "vnics"),
    ("read", "vnic-attachments"),
    ("manage", "instances"),
    ("read", "instance-images"),
    ("use", "volume-family"),
    ("read", "objectstorage-namespaces"),
)
# What links to buckets make: a user with a key, its group, and a policy in the bucket's compartment. Whoever may write
# policies may give himself any right there, so these come last: leave them out where no links lead to buckets.
_LINKS: Final = (
    ("inspect", "tenancies", "tenancy"),
    ("manage", "users", "tenancy"),
    ("manage", "groups", "tenancy"),
    ("manage", "policies", WHERE),
)
# The agent never reads an object, and never makes or deletes one.
_BUCKETS: Final = ("BUCKET_CREATE", "BUCKET_DELETE", "BUCKET_INSPECT", "BUCKET_READ", "BUCKET_UPDATE")


def policy() -> list[str]:
    """The statements, as `oci iam policy create --statements` takes them; narrow `in tenancy` to your compartments."""
    subject = f"Allow group {GROUP} to"
    permissions = ", ".join(f"request.permission='{one}'" for one in _BUCKETS)
    return [
        *(f"{subject} {verb} {what} in {WHERE}" for verb, what in _NEEDS),
        f"{subject} manage buckets in {WHERE} where any {{{permissions}}}",
        *(f"{subject} {verb} {what} in {where}" for verb, what, where in _LINKS),
    ]
