"""Load balancers: their services, their targets, and their private network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fractal_sandbox.hetzner.catalog import CATALOG, choose
from fractal_sandbox.hetzner.collection import Action, Collection, field, invalid
from fractal_sandbox.hetzner.labels import matches
from fractal_sandbox.hetzner.networks import address_in
from fractal_sandbox.rest import Body, Draft, Refused

__all__ = ["LoadBalancers"]

ALGORITHMS = ("round_robin", "least_connections")


class LoadBalancers(Collection):
    """What spreads calls over servers."""

    kind = "load_balancer"

    def make(self, draft: Draft, given: Mapping[str, Any]) -> tuple[Body, Body]:
        number = self._numbers.next()
        ipv4 = {"ip": f"198.51.100.{number % 254 + 1}", "dns_ptr": f"lb.{number}.example.com"}
        ipv6 = {"ip": f"2001:db8:1b:{number:x}::1", "dns_ptr": f"lb.{number}.example.com"}
        body: Body = {
            "load_balancer_type": choose("load_balancer_types", field(given, "load_balancer_type")),
            "location": _place(given),
            "algorithm": {"type": "round_robin"},
            "public_net": {"enabled": bool(given.get("public_interface", True)), "ipv4": ipv4, "ipv6": ipv6},
            "private_net": [],
            "services": [],
            "targets": [],
            "protection": {"delete": False},
            "outgoing_traffic": 0,
            "ingoing_traffic": 0,
            "included_traffic": 20 * 1024**4,
        }
        if given.get("algorithm"):
            _change_algorithm(draft, body, given["algorithm"])
        if given.get("network") is not None:
            self._attach(draft, body, {"network": given["network"]})
        for service in given.get("services") or []:
            _add_service(draft, body, service)
        for target in given.get("targets") or []:
            self._add_target(draft, body, target)
        return body, {}

    def actions(self) -> Mapping[str, Action]:
        return {
            "change_type": _change_type,
            "change_algorithm": _change_algorithm,
            "add_service": _add_service,
            "update_service": _update_service,
            "delete_service": _delete_service,
            "add_target": self._add_target,
            "remove_target": _remove_target,
            "attach_to_network": self._attach,
            "detach_from_network": _detach,
            "enable_public_interface": _interface(enabled=True),
            "disable_public_interface": _interface(enabled=False),
        }

    def show(self, draft: Draft, body: Body) -> Body:
        ports = [service["listen_port"] for service in body["services"]]
        shown = [_shown(draft, target, ports) for target in body["targets"]]
        return {**body, "targets": [target for target in shown if target is not None]}

    def _attach(self, draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
        network = self.need(draft, field(given, "network"), "network")
        if body["private_net"]:
            raise Refused(422, "load_balancer_already_attached", "load balancer is already attached to a network")
        ip = given.get("ip") or address_in(draft, network, body["location"]["network_zone"])
        body["private_net"] = [{"network": network["id"], "ip": ip}]

    def _add_target(self, draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
        target = _target(given)
        if any(_key(other) == _key(target) for other in body["targets"]):
            raise Refused(422, "target_already_defined", "target is already defined")
        if target["type"] == "server":
            server = self.need(draft, target["server"]["id"], "server")
            networks = {net["network"] for net in body["private_net"]}
            if target["use_private_ip"] and not networks:
                raise Refused(422, "load_balancer_not_attached_to_network", "load balancer is in no network")
            if target["use_private_ip"] and not networks & {net["network"] for net in server["private_net"]}:
                raise Refused(422, "server_not_attached_to_network", "server is not in the load balancer's network")
        body["targets"] = [*body["targets"], target]


def _place(given: Mapping[str, Any]) -> Body:
    location, zone = given.get("location"), given.get("network_zone")
    if (location is None) == (zone is None):
        raise invalid("load balancer needs either a location or a network_zone")
    if location is not None:
        return choose("locations", location)
    for one in CATALOG["locations"]:
        if one["network_zone"] == zone:
            return one
    raise invalid(f"network zone {zone!r} not found")


def _key(target: Body) -> tuple[str, str]:
    kind = target["type"]
    return kind, str(next(iter(target[kind].values())))


def _target(given: Mapping[str, Any]) -> Body:
    kind = field(given, "type")
    if kind not in ("server", "label_selector", "ip"):
        raise invalid("invalid input in field 'type'")
    target: Body = {"type": kind, kind: dict(field(given, kind))}
    return target if kind == "ip" else {**target, "use_private_ip": bool(given.get("use_private_ip"))}


def _shown(draft: Draft, target: Body, ports: list[int]) -> Body | None:
    """A target with its health; None once its server is gone."""
    health = [{"listen_port": port, "status": "healthy"} for port in ports]
    if target["type"] == "server":
        return (
            None if draft.peek("server", str(target["server"]["id"])) is None else {**target, "health_status": health}
        )
    if target["type"] == "ip":
        return {**target, "health_status": health}
    meant = [
        {"type": "server", "server": {"id": one["id"]}, "use_private_ip": target["use_private_ip"]}
        for _, one in draft.everything("server")
        if matches(target["label_selector"]["selector"], one["labels"])
    ]
    return {**target, "targets": [{**one, "health_status": health} for one in meant]}


def _service(given: Mapping[str, Any]) -> Body:
    """A service with everything that Hetzner fills in."""
    protocol = field(given, "protocol")
    listen = given.get("listen_port") or (80 if protocol == "http" else 443)
    destination = given.get("destination_port") or (80 if protocol != "tcp" else field(given, "destination_port"))
    check, http = dict(given.get("health_check") or {}), dict(given.get("http") or {})
    if protocol == "https" and not http.get("certificates"):
        raise invalid("https needs certificates")
    asked = {"domain": "", "path": "/", "response": "", "status_codes": ["2??", "3??"], "tls": False}
    filled = {"protocol": "tcp", "port": destination, "interval": 15, "timeout": 10, "retries": 3, **check}
    if filled["protocol"] == "http":
        filled["http"] = {**asked, **(check.get("http") or {})}
    sticky = {"cookie_name": "HCLBSTICKY", "cookie_lifetime": 300, "certificates": [], "timeout_idle": 60}
    return {
        "protocol": protocol,
        "listen_port": listen,
        "destination_port": destination,
        "proxyprotocol": bool(given.get("proxyprotocol")),
        "health_check": filled,
        **({"http": {**sticky, "redirect_http": False, "sticky_sessions": False, **http}} if protocol != "tcp" else {}),
    }


def _add_service(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    service = _service(given)
    if any(other["listen_port"] == service["listen_port"] for other in body["services"]):
        raise Refused(422, "source_port_already_used", "source port is already used by another service")
    if len(body["services"]) >= body["load_balancer_type"]["max_services"]:
        raise Refused(403, "resource_limit_exceeded", "the type of the load balancer takes no more services")
    body["services"] = [*body["services"], service]


def _update_service(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    port = field(given, "listen_port")
    old = next((service for service in body["services"] if service["listen_port"] == port), None)
    if old is None:
        raise Refused(404, "not_found", f"there is no service on port {port}")
    check = {**old["health_check"], **(given.get("health_check") or {})}
    http = {**(old.get("http") or {}), **(given.get("http") or {})}
    changed = _service({**old, **given, "health_check": check, "http": http})
    body["services"] = [changed if service is old else service for service in body["services"]]


def _delete_service(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    port = field(given, "listen_port")
    kept = [service for service in body["services"] if service["listen_port"] != port]
    if len(kept) == len(body["services"]):
        raise Refused(404, "not_found", f"there is no service on port {port}")
    body["services"] = kept


def _remove_target(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    gone = _key(_target(given))
    kept = [target for target in body["targets"] if _key(target) != gone]
    if len(kept) == len(body["targets"]):
        raise Refused(404, "not_found", "there is no such target")
    body["targets"] = kept


def _change_type(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    body["load_balancer_type"] = choose("load_balancer_types", field(given, "load_balancer_type"))


def _change_algorithm(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    if field(given, "type") not in ALGORITHMS:
        raise invalid("invalid input in field 'type'")
    body["algorithm"] = {"type": given["type"]}


def _detach(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    if not any(net["network"] == int(field(given, "network")) for net in body["private_net"]):
        raise Refused(422, "load_balancer_not_attached_to_network", "load balancer is not attached to the network")
    body["private_net"] = []


def _interface(*, enabled: bool) -> Action:
    def switch(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
        del draft, given
        if not enabled and any(target.get("use_private_ip") is False for target in body["targets"]):
            raise Refused(422, "targets_without_use_private_ip", "there are targets that are not reached privately")
        body["public_net"] = {**body["public_net"], "enabled": enabled}

    return switch
