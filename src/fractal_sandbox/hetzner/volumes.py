"""Volumes: where they are attached, and how they grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fractal_sandbox.hetzner.catalog import choose
from fractal_sandbox.hetzner.collection import Action, Collection, field, invalid
from fractal_sandbox.rest import Body, Draft, Phase, Refused

__all__ = ["Volumes", "in_phase"]

SMALLEST, LARGEST = 10, 10_240


def in_phase(body: Body, phase: Phase) -> Body:
    """A volume while the cloud is at work on it: only its creation shows."""
    return {**body, "status": "creating"} if phase == "creating" else body


def _size(given: Mapping[str, Any]) -> int:
    size = field(given, "size")
    if not isinstance(size, int) or not SMALLEST <= size <= LARGEST:
        raise invalid("invalid input in field 'size'")
    return size


class Volumes(Collection):
    """Disks of their own."""

    kind = "volume"

    def make(self, draft: Draft, given: Mapping[str, Any]) -> tuple[Body, Body]:
        number = self._numbers.next()
        server = self.need(draft, given["server"], "server") if given.get("server") is not None else None
        if server is None and given.get("location") is None:
            raise invalid("volume needs a location or a server")
        location = choose("locations", given.get("location") or server["location"]["name"])  # type: ignore[index]
        if server is not None and server["location"] != location:
            raise invalid("server and volume must be in one location")
        body = {
            "size": _size(given),
            "location": location,
            "server": None if server is None else server["id"],
            "linux_device": f"/dev/disk/by-id/scsi-0HC_Volume_{number}",
            "format": given.get("format"),
            "status": "available",
            "protection": {"delete": False},
        }
        return body, {"next_actions": []}

    def newborn(self, shown: Body) -> Body:
        return in_phase(shown, "creating")

    def actions(self) -> Mapping[str, Action]:
        return {"attach": self._attach, "detach": _detach, "resize": _resize}

    def let_go(self, draft: Draft, body: Body) -> None:
        del draft
        if body["server"] is not None:
            raise Refused(422, "resource_in_use", "volume is still attached to a server")

    def _attach(self, draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
        server = self.need(draft, field(given, "server"), "server")
        if body["server"] is not None:
            raise Refused(422, "volume_already_attached", "volume is already attached to a server")
        if server["location"] != body["location"]:
            raise invalid("server and volume must be in one location")
        body["server"] = server["id"]


def _detach(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft, given
    if body["server"] is None:
        raise invalid("volume is not attached to a server")
    body["server"] = None


def _resize(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    size = _size(given)
    if size <= body["size"]:
        raise invalid("volume can only grow")
    body["size"] = size
