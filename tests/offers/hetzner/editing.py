"""How a person changes each parameter of each Hetzner type, by plain requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.hetzner.firewall import HetznerFirewall
from fractal_cloud.offers.hetzner.load_balancer import HetznerLoadBalancer
from fractal_cloud.offers.hetzner.network import HetznerNetwork
from fractal_cloud.offers.hetzner.server import HetznerServer
from fractal_cloud.offers.hetzner.volume import HetznerVolume
from tests.offers.hetzner.person import HetznerPerson, Item

Edit = Callable[[HetznerPerson, str, str, Any], None]
"""Person, id, parameter, value; references are the cloud's own ids."""


def _protect(person: HetznerPerson, plural: str, number: str, value: bool) -> None:
    both = {"rebuild": value} if plural == "servers" else {}
    person.act(plural, number, "change_protection", delete=value, **both)


def _network(person: HetznerPerson, number: str, name: str, value: Any) -> None:
    item = person.get("networks", number)
    match name:
        case "ipRange":
            person.act("networks", number, "change_ip_range", ip_range=value)
        case "exposeRoutesToVswitch":
            person.call("PUT", f"/networks/{number}", {"expose_routes_to_vswitch": value})
        case "deleteProtection":
            _protect(person, "networks", number, value)
        case "subnets":
            for subnet in item["subnets"]:
                person.act("networks", number, "delete_subnet", ip_range=subnet["ip_range"])
            for subnet in value:
                sent = {"type": subnet["type"], "network_zone": subnet["networkZone"], "ip_range": subnet["ipRange"]}
                person.act("networks", number, "add_subnet", **sent)
        case _:
            for route in item["routes"]:
                person.act("networks", number, "delete_route", **route)
            for route in value:
                person.act("networks", number, "add_route", **route)


def _firewall(person: HetznerPerson, number: str, name: str, value: Any) -> None:
    assert name == "rules"
    rules = [
        {
            "direction": rule["direction"],
            "protocol": rule["protocol"],
            "port": rule.get("port"),
            "source_ips": rule.get("sourceIps", []),
            "destination_ips": rule.get("destinationIps", []),
            "description": rule.get("description"),
        }
        for rule in value
    ]
    person.act("firewalls", number, "set_rules", rules=rules)


def _server(person: HetznerPerson, number: str, name: str, value: Any) -> None:
    item = person.get("servers", number)
    resources = [{"type": "server", "server": {"id": int(number)}}]
    match name:
        case "serverType":
            person.act("servers", number, "poweroff")
            person.act("servers", number, "change_type", server_type=value, upgrade_disk=False)
            person.act("servers", number, "poweron")
        case "networks":
            for net in item["private_net"]:
                person.act("servers", number, "detach_from_network", network=net["network"])
            for network in value:
                person.act("servers", number, "attach_to_network", network=int(network))
        case "firewalls":
            for one in item["public_net"]["firewalls"]:
                person.act("firewalls", one["id"], "remove_from_resources", remove_from=resources)
            for one in value:
                person.act("firewalls", one, "apply_to_resources", apply_to=resources)
        case "backups":
            person.act("servers", number, "enable_backup" if value else "disable_backup")
        case "deleteProtection":
            _protect(person, "servers", number, value)
        case _:
            person.act("servers", number, "poweron" if value == "running" else "poweroff")


def _volume(person: HetznerPerson, number: str, name: str, value: Any) -> None:
    match name:
        case "size":
            person.act("volumes", number, "resize", size=value)
        case "deleteProtection":
            _protect(person, "volumes", number, value)
        case _:
            if person.get("volumes", number)["server"] is not None:
                person.act("volumes", number, "detach")
            person.act("volumes", number, "attach", server=int(value))


def _target(kind: str, value: Any, is_private: bool) -> Item:
    inner = {"server": "id", "label_selector": "selector", "ip": "ip"}[kind]
    said = {} if kind == "ip" else {"use_private_ip": is_private}
    return {"type": kind, kind: {inner: int(value) if kind == "server" else value}, **said}


def _bare(target: Item) -> Item:
    return {name: target[name] for name in ("type", target["type"])}


TARGETS = {"servers": "server", "labelSelectors": "label_selector", "ips": "ip"}


def _load_balancer(person: HetznerPerson, number: str, name: str, value: Any) -> None:
    def act(action: str, **body: Any) -> None:
        person.act("load_balancers", number, action, **body)

    item = person.get("load_balancers", number)
    match name:
        case "algorithm":
            act("change_algorithm", type=value)
        case "loadBalancerType":
            act("change_type", load_balancer_type=value)
        case "network":
            for net in item["private_net"]:
                act("detach_from_network", network=net["network"])
            act("attach_to_network", network=int(value))
        case "publicInterface":
            act("enable_public_interface" if value else "disable_public_interface")
        case "deleteProtection":
            _protect(person, "load_balancers", number, value)
        case "services":
            _services(act, item, value)
        case _:
            _targets(act, item, name, value)


def _services(act: Callable[..., None], item: Item, value: Any) -> None:
    for service in item["services"]:
        act("delete_service", listen_port=service["listen_port"])
    for service in value:
        interval = service.get("healthCheckInterval")
        act(
            "add_service",
            protocol=service["protocol"],
            listen_port=service["listenPort"],
            destination_port=service["destinationPort"],
            proxyprotocol=service.get("proxyprotocol", False),
            **({"health_check": {"interval": interval}} if interval else {}),
        )


def _targets(act: Callable[..., None], item: Item, name: str, value: Any) -> None:
    if name == "usePrivateIp":
        for target in item["targets"]:
            if target["type"] != "ip":
                act("remove_target", **_bare(target))
                act("add_target", **{**_bare(target), "use_private_ip": value})
        return
    for target in item["targets"]:
        if target["type"] == TARGETS[name]:
            act("remove_target", **_bare(target))
    for one in value:
        act("add_target", **_target(TARGETS[name], one, True))


EDITS: dict[type[Component], tuple[str, Edit]] = {
    HetznerNetwork: ("networks", _network),
    HetznerFirewall: ("firewalls", _firewall),
    HetznerServer: ("servers", _server),
    HetznerVolume: ("volumes", _volume),
    HetznerLoadBalancer: ("load_balancers", _load_balancer),
}
"""What each type is called in paths, and how it is edited."""
