"""Disks, and the snapshots that keep one from being deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fractal_sandbox.aruba import common
from fractal_sandbox.aruba.collection import Collection, find_by_uri
from fractal_sandbox.aruba.networks import SERVER
from fractal_sandbox.rest import Body, Draft

__all__ = ["COLLECTIONS", "DISK", "SNAPSHOT", "attached"]

DISK: Final = common.kind("block-storage")
SNAPSHOT: Final = common.plain("snapshot", tags=common.monitored_tags, offered=False)
_PERIODS: Final = ("Hour", "Month", "Year")


def _make_disk(draft: Draft, body: Body) -> Body:
    del draft
    given = body["properties"]
    if not isinstance(given.get("sizeGb"), int) or given["sizeGb"] < 1:
        raise common.invalid("SizeGb", "must be at least 1")
    if given.get("type") not in ("Standard", "Performance"):
        raise common.invalid("Type", "must be Standard or Performance")
    if given.get("billingPeriod") not in _PERIODS:
        raise common.invalid("BillingPeriod", f"must be one of {', '.join(_PERIODS)}")
    return {"bootable": False, "dataCenter": None, "image": None, **given}


def _never_shrinks(before: Body, after: Body) -> None:
    if after["sizeGb"] < before["sizeGb"]:
        raise common.invalid("SizeGb", "cannot be reduced")


def _make_snapshot(draft: Draft, body: Body) -> Body:
    volume = find_by_uri(draft, DISK, body["properties"].get("volume"), "Volume")
    return {"volume": {"uri": volume["uri"]}, "sizeGb": volume["properties"]["sizeGb"]}


def _needed_by(draft: Draft, body: Body) -> list[str]:
    """Snapshots of it, and the server it is attached to."""
    every = [one for _, one in draft.everything(SNAPSHOT.name)]
    snapshots = [one["uri"] for one in every if one["properties"]["volume"]["uri"] == body["uri"]]
    servers = [one for _, one in draft.everything(SERVER.name)]
    return snapshots + [one["uri"] for one in servers if body["uri"] in attached(one)]


def attached(server: Body) -> list[str]:
    """The disks of a server, the one it boots from first."""
    properties = server["properties"]
    return [properties["bootVolume"]["uri"], *properties["dataVolumes"]]


@dataclass(frozen=True)
class _Disks(Collection):
    """The collection of disks, which say whether they are attached."""

    def shown(self, draft: Draft, body: Body) -> Body:
        item = super().shown(draft, body)
        in_use = any(body["uri"] in attached(one) for _, one in draft.everything(SERVER.name))
        return {**item, "status": {"state": "InUse"}} if in_use and body["state"] == self.settled_state else item


COLLECTIONS: Final = (
    _Disks(
        DISK,
        "Aruba.Storage/blockStorages",
        "storage",
        "BlockStorage",
        _make_disk,
        changed=("sizeGb", "billingPeriod"),
        change=_never_shrinks,
        linked=_needed_by,
        settled_state="NotUsed",
        put_status=202,
        shows_deleted=True,
    ),
    Collection(SNAPSHOT, "Aruba.Storage/snapshots", "storage", "Snapshot", _make_snapshot),
)
