"""The rights the agent needs in a tenancy, as statements of OCI's own policy language.

OCI knows no conditions on free-form tags; but every write carries the etag of the read it rests on, which any edit of a
tag changes, so the cloud itself refuses what a person was faster at (S16). What each type needs stands on its offer.
"""

from __future__ import annotations

from typing import Final

from fractal_cloud.offers.registry import installed

GROUP: Final = "fractal-cloud-agent"
WHERE: Final = "tenancy"
# What links to buckets make: a user with a key, its group, and a policy in the bucket's compartment. Whoever may write
# policies may give himself any right there, so these come last: leave them out where no links lead to buckets.
_LINKS: Final = (
    ("inspect tenancies", "tenancy"),
    ("manage users", "tenancy"),
    ("manage groups", "tenancy"),
    ("manage policies", WHERE),
)


def policy() -> list[str]:
    """The statements, as `oci iam policy create --statements` takes them; narrow `in tenancy` to your compartments."""
    rights = ["inspect compartments", *installed("oci").rights("oci")]
    return [
        *(_statement(right, WHERE) for right in rights),
        *(_statement(right, where) for right, where in _LINKS),
    ]


def _statement(right: str, where: str) -> str:
    what, condition, permissions = right.partition(" where ")
    return f"Allow group {GROUP} to {what} in {where}{condition}{permissions}"
