"""Servers: how they are made, stopped, started and changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fractal_sandbox.hetzner.catalog import choose
from fractal_sandbox.hetzner.collection import Action, Collection, field, invalid
from fractal_sandbox.hetzner.firewalls import behind
from fractal_sandbox.hetzner.networks import address_in
from fractal_sandbox.rest import Body, Draft, Phase, Refused

__all__ = ["Servers", "in_phase"]


def in_phase(body: Body, phase: Phase) -> Body:
    """A server while the cloud is at work on it."""
    if phase == "updating":
        status = "starting" if body["status"] == "running" else "stopping"
    else:
        status = "initializing" if phase == "creating" else "deleting"
    return {**body, "status": status, "locked": True}


class Servers(Collection):
    """Virtual machines."""

    kind = "server"

    def make(self, draft: Draft, given: Mapping[str, Any]) -> tuple[Body, Body]:
        size = choose("server_types", field(given, "server_type"))
        image = choose("images", field(given, "image"))
        location = choose("locations", given.get("location") or "fsn1")
        if image["architecture"] != size["architecture"]:
            raise invalid("the image does not fit the server type's architecture")
        body: Body = {
            "status": "running" if given.get("start_after_create", True) else "off",
            "locked": False,
            "server_type": size,
            "image": image,
            "location": location,
            "public_net": self._public_net(given.get("public_net") or {}),
            "private_net": [],
            "firewalls": [],
            "backup_window": None,
            "protection": {"delete": False, "rebuild": False},
            "primary_disk_size": size["disk"],
            "placement_group": None,
            "iso": None,
            "rescue_enabled": False,
            "outgoing_traffic": 0,
            "ingoing_traffic": 0,
            "included_traffic": 20 * 1024**4,
        }
        for key in given.get("ssh_keys") or []:
            self._is_key(draft, key)
        for network in given.get("networks") or []:
            self._attach(draft, body, {"network": network})
        for one in given.get("firewalls") or []:
            body["firewalls"].append(self.need(draft, one["firewall"], "firewall")["id"])
        password = None if given.get("ssh_keys") else "sandbox-root"
        return body, {"next_actions": [], "root_password": password}

    def newborn(self, shown: Body) -> Body:
        return in_phase(shown, "creating")

    def actions(self) -> Mapping[str, Action]:
        return {
            "poweron": _turn("running"),
            "poweroff": _turn("off"),
            "shutdown": _turn("off"),
            "change_type": _change_type,
            "attach_to_network": self._attach,
            "detach_from_network": _detach,
            "enable_backup": _enable_backup,
            "disable_backup": _disable_backup,
        }

    def show(self, draft: Draft, body: Body) -> Body:
        shown = {name: value for name, value in body.items() if name != "firewalls"}
        targets = [
            balancer["id"]
            for _, balancer in draft.everything("load_balancer")
            if any(one["type"] == "server" and one["server"]["id"] == body["id"] for one in balancer["targets"])
        ]
        return {
            **shown,
            "public_net": {**body["public_net"], "firewalls": behind(draft, body)},
            "volumes": [one["id"] for _, one in draft.everything("volume") if one["server"] == body["id"]],
            "load_balancers": targets,
            # what the vendor's tools of before July 2026 read
            "datacenter": {
                "id": body["location"]["id"],
                "name": f"{body['location']['name']}-dc1",
                "description": "",
                "location": body["location"],
                "server_types": {"supported": [], "available": [], "available_for_migration": []},
            },
        }

    def let_go(self, draft: Draft, body: Body) -> None:
        """Take its volumes off it and out of the load balancers, without asking: that is what Hetzner does."""
        for resource_id, volume in draft.everything("volume"):
            if volume["server"] == body["id"]:
                draft.put("volume", resource_id, {**volume, "server": None})

    def _public_net(self, wanted: Mapping[str, Any]) -> Body:
        number = self._numbers.next()
        ipv4 = {
            "id": number,
            "ip": f"192.0.2.{number % 254 + 1}",
            "blocked": False,
            "dns_ptr": f"static.{number}.example.com",
        }
        ipv6 = {"id": self._numbers.next(), "ip": f"2001:db8:{number:x}::/64", "blocked": False, "dns_ptr": []}
        return {
            "ipv4": ipv4 if wanted.get("enable_ipv4", True) else None,
            "ipv6": ipv6 if wanted.get("enable_ipv6", True) else None,
            "floating_ips": [],
        }

    def _is_key(self, draft: Draft, key: Any) -> None:
        if not any(str(key) in (body["name"], str(body["id"])) for _, body in draft.everything("ssh_key")):
            raise invalid(f"SSH key {key!r} not found")

    def _attach(self, draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
        network = self.need(draft, field(given, "network"), "network")
        if any(net["network"] == network["id"] for net in body["private_net"]):
            raise Refused(422, "server_already_attached", "server is already attached to the network")
        joined = {
            "network": network["id"],
            "ip": given.get("ip") or address_in(draft, network, body["location"]["network_zone"]),
            "alias_ips": given.get("alias_ips") or [],
            "mac_address": "86:00:00:00:00:01",
        }
        body["private_net"] = [*body["private_net"], joined]


def _turn(status: str) -> Action:
    def turn(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
        del draft, given
        body["status"] = status

    return turn


def _change_type(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    if body["status"] != "off":
        raise Refused(422, "server_not_stopped", "server must be stopped before its type is changed")
    size = choose("server_types", field(given, "server_type"))
    if size["architecture"] != body["server_type"]["architecture"] or size["disk"] < body["primary_disk_size"]:
        raise Refused(422, "invalid_server_type", "the server type does not fit the server's architecture or disk")
    body["server_type"] = size
    if field(given, "upgrade_disk"):
        body["primary_disk_size"] = size["disk"]


def _detach(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    kept = [net for net in body["private_net"] if net["network"] != int(field(given, "network"))]
    if len(kept) == len(body["private_net"]):
        raise Refused(404, "not_found", "server is not attached to the network")
    body["private_net"] = kept


def _enable_backup(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft, given
    body["backup_window"] = "22-02"


def _disable_backup(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft, given
    body["backup_window"] = None
