"""Everything that the offers assume of the clouds, each with its source: the one table.

`fractal verify` reports by it, and the table «How sure are we» at the end of each provider's page is made from it. An
assumption that a real account has confirmed gets the date in ``verified``: that is the only place to note it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Source(StrEnum):
    """Where we know it from, from the weakest to the strongest."""

    KNOWLEDGE = "general knowledge"
    EMULATOR = "emulator"
    CONTRACT = "contract"
    RECORDING = "recording"
    REAL_SERVER = "real server"


EXPLAINED: Final[Mapping[Source, str]] = {
    Source.KNOWLEDGE: "nobody here has seen it: it is what people of the field say",
    Source.EMULATOR: "it holds on a simulated cloud: ours in the sandbox, or one of somebody else's behind it",
    Source.CONTRACT: "the vendor's SDK, schema or documentation of this API version says so",
    Source.RECORDING: "recorded traffic of the real cloud shows it",
    Source.REAL_SERVER: "the vendor's own server program does it, on a machine of ours",
}

_EMULATED: Final = (Source.EMULATOR,)
_DESCRIBED: Final = (Source.CONTRACT, Source.EMULATOR)
_SERVED: Final = (Source.CONTRACT, Source.REAL_SERVER)
_REST: Final = ("aruba", "aws", "azure", "gcp", "hetzner", "oci", "vsphere")


def _by_emulator(**other: tuple[Source, ...]) -> Mapping[str, tuple[Source, ...]]:
    return {**dict.fromkeys(_REST, _EMULATED), "kubernetes": (Source.REAL_SERVER,), **other}


def _by_contract(**other: tuple[Source, ...]) -> Mapping[str, tuple[Source, ...]]:
    return {**dict.fromkeys(_REST, _DESCRIBED), "kubernetes": _SERVED, **other}


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing that must be true of a cloud. ``sources``: by provider; one that is not named does not rely on it.

    ``is_tried``: whether `fractal verify` tries it. ``verified``: by provider, the day on which a report of
    `fractal verify` from a real account confirmed it (2026-11-18).
    """

    id: str
    text: str
    sources: Mapping[str, tuple[Source, ...]]
    is_tried: bool = False
    verified: Mapping[str, str] = field(default_factory=dict)


TRIED: Final = (
    Assumption(
        "created",
        "One creating call is enough: the resource becomes ready, and the agent finds it as the one it made",
        _by_emulator(),
        is_tried=True,
    ),
    Assumption(
        "tags-in-call",
        "The tags of the creating call are on the resource from its first moment",
        _by_contract(vsphere=(Source.CONTRACT,)),
        is_tried=True,
    ),
    Assumption("listed", "The bulk list shows it with its tags", _by_contract(), is_tried=True),
    Assumption("read-by-id", "A read by its id shows the same as the bulk list", _by_contract(), is_tried=True),
    Assumption(
        "echoed",
        "Declared values come back as they were declared: no drift after a creation",
        _by_emulator(azure=(Source.RECORDING, Source.EMULATOR)),
        is_tried=True,
    ),
    Assumption("quiet", "The cycles after that write nothing and show no drift", _by_emulator(), is_tried=True),
    Assumption(
        "drifts-alone", "A parameter that a person changes differs, and no other does", _by_emulator(), is_tried=True
    ),
    Assumption("comes-back", "The agent brings it back in place", _by_contract(), is_tried=True),
    Assumption(
        "left-alone",
        "A removed managed-by is seen in the next cycle, and nothing is written while it is absent",
        _by_emulator(),
        is_tried=True,
    ),
    Assumption(
        "handed-back",
        "Both tags hand it back: it is reconciled, and the reconcile tag is taken off",
        _by_emulator(),
        is_tried=True,
    ),
    Assumption(
        "guarded-update",
        "A change of tags changes the precondition (etag, fingerprint, resourceVersion): an update that rests on an "
        "older one is refused",
        {**dict.fromkeys(("azure", "gcp", "oci"), (Source.KNOWLEDGE, Source.EMULATOR)), "kubernetes": _SERVED},
        is_tried=True,
    ),
    Assumption(
        "guarded-deletion",
        "A deletion that rests on an older precondition is refused, where the type claims one",
        {**dict.fromkeys(("azure", "gcp", "oci"), _DESCRIBED), "kubernetes": _SERVED},
        is_tried=True,
    ),
    Assumption("deleted", "It is deleted, and what it needed after it", _by_emulator(), is_tried=True),
    Assumption(
        "gone",
        "A read by its id then says that it does not exist, and the bulk list no longer shows it",
        _by_contract(),
        is_tried=True,
    ),
)

_KNOWN: Final = (Source.KNOWLEDGE,)

UNTRIED: Final = (
    Assumption(
        "aws-tag-condition",
        "The condition `aws:ResourceTag/managed-by` of the printed policy refuses writes to RDS and EKS, too",
        {"aws": _KNOWN},
    ),
    Assumption(
        "aws-boundary-condition",
        "Calls that make a user or a role, or write its inline policy, have `iam:PermissionsBoundary` in their request",
        {"aws": (Source.CONTRACT,)},
    ),
    Assumption(
        "aws-instance-profile-condition",
        "`ec2:InstanceProfile` and `ec2:Attribute` are in the request that changes an attribute of a machine",
        {"aws": _KNOWN},
    ),
    Assumption(
        "aws-via-rds",
        "RDS makes the secret of a master password in the agent's name, with `aws:ViaAWSService`",
        {"aws": _KNOWN},
    ),
    Assumption(
        "aws-terminated-instances",
        "A terminated instance stays listed with its tags for about an hour, as `terminated`",
        {"aws": (Source.KNOWLEDGE, Source.EMULATOR)},
    ),
    Assumption(
        "aws-client-token",
        "A client token is honoured for at least as long as a creation is tried again",
        {"aws": _KNOWN},
    ),
    Assumption(
        "aws-bucket-tags-lag",
        "The bulk list of bucket tags lags behind by seconds to minutes; the bucket itself never does",
        {"aws": (Source.CONTRACT,)},
    ),
    Assumption(
        "aws-history-by-name",
        "`LookupEvents` finds a call by the id of the resource it changed, and one that tags it by what it names",
        {"aws": _KNOWN},
    ),
    Assumption(
        "aws-history-spelling",
        "The request in an event has the API's members in camelCase, and shows the values that were set unless hidden",
        {"aws": (Source.CONTRACT,)},
    ),
    Assumption(
        "azure-vm-power-state",
        "`statusOnly=true` shows the power state of all machines of a subscription",
        {"azure": _DESCRIBED},
    ),
    Assumption(
        "azure-deallocated-disk",
        "A deallocated machine leaves its disk's size out of its answer",
        {"azure": (Source.RECORDING, Source.EMULATOR)},
    ),
    Assumption(
        "azure-etag-of-clusters",
        "A cluster's answer may lack its etag: an update is then sent without a precondition, and is no creation",
        {"azure": (Source.RECORDING,)},
    ),
    Assumption(
        "azure-accepted",
        "A creation answered with 202 and an empty body is under way, not lost",
        {"azure": (Source.RECORDING, Source.EMULATOR)},
    ),
    Assumption("azure-tag-characters", "No tag of ours holds a character that Azure refuses", {"azure": _KNOWN}),
    Assumption(
        "gcp-label-fingerprint",
        "Labels that are written with the fingerprint of older ones are refused",
        {"gcp": _DESCRIBED},
    ),
    Assumption(
        "gcp-run-mismatch", "Cloud Run answers a stale etag with 409 or 400: both are understood", {"gcp": _KNOWN}
    ),
    Assumption(
        "gcp-disk-growth",
        "Cloud SQL grows disks by itself while `storageAutoResize` is on",
        {"gcp": _DESCRIBED},
    ),
    Assumption("gcp-name-reuse", "The name of a deleted Cloud SQL instance is blocked for days", {"gcp": _KNOWN}),
    Assumption(
        "aruba-tag-pattern",
        "A tag may hold a colon; where it may not, `tagStyle: plain` is enough",
        {"aruba": _DESCRIBED},
    ),
    Assumption(
        "aruba-tag-limits",
        "Three more tags fit on a resource, and pages of the size that is asked for are answered",
        {"aruba": _KNOWN},
    ),
    Assumption(
        "aruba-pools",
        "A node pool is written whole: what is left out counts as switched off",
        {"aruba": (Source.KNOWLEDGE, Source.EMULATOR)},
    ),
    Assumption(
        "oci-tag-limits",
        "A resource carries at most 10 free-form tags",
        {"oci": (Source.CONTRACT,)},
    ),
    Assumption("oci-search-lag", "The search over a compartment lags behind by seconds", {"oci": _KNOWN}),
    Assumption("hetzner-location", "Servers report `location`; `datacenter` may be absent", {"hetzner": _DESCRIBED}),
    Assumption(
        "kubernetes-watch",
        "A watch wakes the agent on servers from 1.20 to 1.37, and its absence only delays it",
        {"kubernetes": (Source.REAL_SERVER,)},
    ),
    Assumption(
        "kubernetes-controllers",
        "Deployments become ready, claims are bound and finalizers end as the controllers of a whole cluster do it",
        {"kubernetes": (Source.CONTRACT, Source.EMULATOR)},
    ),
    Assumption(
        "postgres-roles",
        "The SQL that makes and removes the role of a link is accepted, and grants what it says",
        {"postgres": (Source.REAL_SERVER,)},
    ),
    Assumption(
        "vsphere-tag-names",
        "Tag names of up to 256 characters, with `/` and `:`, are kept as they are",
        {"vsphere": (Source.KNOWLEDGE, Source.EMULATOR)},
    ),
)

ASSUMPTIONS: Final = (*TRIED, *UNTRIED)
BY_ID: Final[Mapping[str, Assumption]] = {assumption.id: assumption for assumption in ASSUMPTIONS}
