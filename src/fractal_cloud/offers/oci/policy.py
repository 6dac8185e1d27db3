"""The rights the agent needs in a tenancy, as statements of OCI's own policy language, for named compartments.

Whoever may start a machine in a compartment acts as every dynamic group that matches it, and whoever may write policies
in one may give himself any right there. So the agent has no right to change anything outside its compartments; what
links make are users and groups whose names begin alike, and policies in those compartments alone (A7).

OCI knows no conditions on free-form tags; but every write carries the etag of the read it rests on, which any edit of a
tag changes, so the cloud itself refuses what a person was faster at (S16). What each type needs stands on its offer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.oci.link_storage import PREFIX
from fractal_cloud.offers.policy import PLAIN, PolicyOptions, every_match
from fractal_cloud.offers.registry import installed

GROUP: Final = "fractal-cloud-agent"
# A compartment of its own, where nobody names another.
DEFAULT: Final = ("fractal-cloud",)
_OCID: Final = re.compile(r"ocid1\.compartment\.[a-z0-9.]*\.[a-z0-9]+")
_PATH: Final = re.compile(r"[A-Za-z0-9_.-]+([/:][A-Za-z0-9_.-]+)*")
# These are the tenancy's own, and only ever read.
_OF_THE_TENANCY: Final = ("inspect compartments", "read objectstorage-namespaces")
_NAMED: Final = f"=/{PREFIX}*/"


def policy(options: PolicyOptions = PLAIN) -> list[str]:
    """The statements, as `oci iam policy create --statements` takes them."""
    options.check("oci", ("with_links", "compartments"))
    where = [_where(one) for one in options.compartments or DEFAULT]
    rights = [*_OF_THE_TENANCY[:1], *installed("oci").rights("oci")]
    return [
        *(_statement(right, "tenancy") for right in rights if right in _OF_THE_TENANCY),
        *(_statement(right, place) for place in where for right in rights if right not in _OF_THE_TENANCY),
        *(_links(where) if options.with_links else ()),
    ]


def _where(compartment: str) -> str:
    if compartment.startswith("ocid1."):
        every_match([compartment], "compartments", _OCID, "OCID of a compartment: the whole tenancy is never meant")
        return f"compartment id {compartment}"
    every_match([compartment], "compartments", _PATH, "path of a compartment, such as team/network")
    if compartment == "tenancy":
        raise PolicyOptionError("--compartment 'tenancy' would be all of it: name the compartments the agent works in")
    return f"compartment {compartment.replace('/', ':')}"


def _links(where: list[str]) -> Iterator[str]:
    """What links to buckets make: a user with a key, its group, and a policy in the bucket's compartment."""
    for right in ("inspect tenancies", "inspect users", "inspect groups"):
        yield _statement(right, "tenancy")
    for kind in ("user", "group"):
        yield _statement(f"manage {kind}s where target.{kind}.name{_NAMED}", "tenancy")
    for place in where:
        yield _statement("inspect policies", place)
        yield _statement(f"manage policies where target.policy.name{_NAMED}", place)


def _statement(right: str, where: str) -> str:
    what, condition, permissions = right.partition(" where ")
    return f"Allow group {GROUP} to {what} in {where}{condition}{permissions}"
