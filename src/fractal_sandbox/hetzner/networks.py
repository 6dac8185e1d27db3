"""Networks: their subnets and routes, and who is in them."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from fractal_sandbox.hetzner.collection import Action, Collection, field, invalid
from fractal_sandbox.rest import Body, Draft, Refused

__all__ = ["Networks", "address_in", "members"]


def _block(given: Mapping[str, Any], name: str) -> str:
    try:
        return str(IPv4Network(field(given, name)))
    except ValueError:
        raise invalid(f"invalid input in field '{name}'") from None


def members(draft: Draft, kind: str, network: int) -> list[int]:
    """The ids of servers or load balancers in a network."""
    return [
        body["id"]
        for _, body in draft.everything(kind)
        if any(net["network"] == network for net in body["private_net"])
    ]


def address_in(draft: Draft, network: Body, zone: str) -> str:
    """A free address for somebody who joins a network from a zone."""
    taken = {
        net["ip"]
        for kind in ("server", "load_balancer")
        for _, body in draft.everything(kind)
        for net in body["private_net"]
        if net["network"] == network["id"]
    }
    for subnet in network["subnets"]:
        if subnet["network_zone"] == zone and subnet["type"] != "vswitch":
            for address in list(IPv4Network(subnet["ip_range"]).hosts())[1:]:
                if str(address) not in taken:
                    return str(address)
    raise Refused(422, "no_subnet_available", f"network {network['id']} has no free subnet in {zone}")


class Networks(Collection):
    """Private networks; Hetzner does not say that their names are unique, so they are not."""

    kind = "network"
    is_unique = False

    def make(self, draft: Draft, given: Mapping[str, Any]) -> tuple[Body, Body]:
        body: Body = {
            "ip_range": _block(given, "ip_range"),
            "subnets": [],
            "routes": [],
            "expose_routes_to_vswitch": bool(given.get("expose_routes_to_vswitch")),
            "protection": {"delete": False},
        }
        for subnet in given.get("subnets") or []:
            _add_subnet(draft, body, subnet)
        for route in given.get("routes") or []:
            _add_route(draft, body, route)
        return body, {}

    def actions(self) -> Mapping[str, Action]:
        return {
            "change_ip_range": _change_ip_range,
            "add_subnet": _add_subnet,
            "delete_subnet": _delete_subnet,
            "add_route": _add_route,
            "delete_route": _delete_route,
        }

    def put(self, body: Body, given: Mapping[str, Any]) -> None:
        if given.get("expose_routes_to_vswitch") is not None:
            body["expose_routes_to_vswitch"] = bool(given["expose_routes_to_vswitch"])

    def show(self, draft: Draft, body: Body) -> Body:
        return {
            **body,
            "servers": members(draft, "server", body["id"]),
            "load_balancers": members(draft, "load_balancer", body["id"]),
        }

    def let_go(self, draft: Draft, body: Body) -> None:
        """Detach everybody, without asking: that is what Hetzner does."""
        for kind in ("server", "load_balancer"):
            for number in members(draft, kind, body["id"]):
                member = self.need(draft, number, kind)
                member["private_net"] = [net for net in member["private_net"] if net["network"] != body["id"]]
                draft.put(kind, str(number), member)


def _change_ip_range(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    wanted = _block(given, "ip_range")
    if not IPv4Network(body["ip_range"]).subnet_of(IPv4Network(wanted)):
        raise invalid("ip_range can only be extended")
    body["ip_range"] = wanted


def _add_subnet(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    wanted = IPv4Network(_block(given, "ip_range"))
    if not wanted.subnet_of(IPv4Network(body["ip_range"])):
        raise invalid("the subnet's ip_range must be within the network's")
    if any(wanted.overlaps(IPv4Network(subnet["ip_range"])) for subnet in body["subnets"]):
        raise invalid("the subnet overlaps with another one")
    subnet = {
        "type": field(given, "type"),
        "ip_range": str(wanted),
        "network_zone": field(given, "network_zone"),
        "gateway": str(wanted.network_address + 1),
        "vswitch_id": given.get("vswitch_id"),
    }
    body["subnets"] = [*body["subnets"], subnet]


def _delete_subnet(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    gone = IPv4Network(_block(given, "ip_range"))
    kept = [subnet for subnet in body["subnets"] if subnet["ip_range"] != str(gone)]
    if len(kept) == len(body["subnets"]):
        raise Refused(404, "not_found", "there is no such subnet")
    for kind in ("server", "load_balancer"):
        for _, member in draft.everything(kind):
            if any(n["network"] == body.get("id") and IPv4Address(n["ip"]) in gone for n in member["private_net"]):
                raise Refused(409, "conflict", f"the subnet still holds {kind} {member['name']!r}")
    body["subnets"] = kept


def _add_route(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    route = {"destination": _block(given, "destination"), "gateway": str(field(given, "gateway"))}
    if any(other["destination"] == route["destination"] for other in body["routes"]):
        raise invalid("there is a route to that destination already")
    if IPv4Address(route["gateway"]) not in IPv4Network(body["ip_range"]):
        raise invalid("the gateway must be within the network")
    body["routes"] = [*body["routes"], route]


def _delete_route(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    gone = {"destination": _block(given, "destination"), "gateway": str(field(given, "gateway"))}
    if gone not in body["routes"]:
        raise Refused(404, "not_found", "there is no such route")
    body["routes"] = [route for route in body["routes"] if route != gone]
