"""Firewalls: their rules, and what they are applied to. Which firewalls a server is behind, the server keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fractal_sandbox.hetzner.collection import Action, Collection, field, invalid
from fractal_sandbox.hetzner.labels import matches
from fractal_sandbox.rest import Body, Draft, Refused, Reply

__all__ = ["Firewalls", "behind"]

MOST_RULES = 50
_PROTOCOLS = ("tcp", "udp", "icmp", "esp", "gre")


def behind(draft: Draft, server: Body) -> list[Body]:
    """The firewalls a server is behind, by itself or by its labels."""
    by_labels = [
        body["id"]
        for _, body in draft.everything("firewall")
        if any(matches(selector, server["labels"]) for selector in body["selectors"])
    ]
    return [{"id": number, "status": "applied"} for number in dict.fromkeys([*server["firewalls"], *by_labels])]


class Firewalls(Collection):
    """Sets of rules."""

    kind = "firewall"

    def make(self, draft: Draft, given: Mapping[str, Any]) -> tuple[Body, Body]:
        del draft
        return {"rules": _rules(given.get("rules") or []), "selectors": []}, {"actions": []}

    def actions(self) -> Mapping[str, Action]:
        return {"set_rules": _set_rules, "apply_to_resources": self._apply, "remove_from_resources": self._remove}

    def show(self, draft: Draft, body: Body) -> Body:
        shown = {name: value for name, value in body.items() if name != "selectors"}
        return {**shown, "applied_to": [*_servers(draft, body["id"]), *_selectors(draft, body)]}

    def begun(self, action: Body) -> Reply:
        return Reply(201, {"actions": [action]})

    def let_go(self, draft: Draft, body: Body) -> None:
        if self.show(draft, body)["applied_to"]:
            raise Refused(422, "resource_in_use", "firewall is still in use")

    def _apply(self, draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
        for resource in field(given, "apply_to"):
            if resource["type"] == "label_selector":
                body["selectors"] = [*body["selectors"], resource["label_selector"]["selector"]]
                continue
            server = self.need(draft, resource["server"]["id"], "server")
            if body["id"] in server["firewalls"]:
                raise Refused(422, "firewall_already_applied", "firewall is already applied to the resource")
            server["firewalls"] = [*server["firewalls"], body["id"]]
            draft.put("server", str(server["id"]), server)

    def _remove(self, draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
        for resource in field(given, "remove_from"):
            if resource["type"] == "label_selector":
                gone = resource["label_selector"]["selector"]
                body["selectors"] = [selector for selector in body["selectors"] if selector != gone]
                continue
            server = self.need(draft, resource["server"]["id"], "server")
            if body["id"] not in server["firewalls"]:
                raise Refused(422, "firewall_already_removed", "firewall is not applied to the resource")
            server["firewalls"] = [number for number in server["firewalls"] if number != body["id"]]
            draft.put("server", str(server["id"]), server)


def _servers(draft: Draft, number: int) -> Iterator[Body]:
    for _, server in draft.everything("server"):
        if number in server["firewalls"]:
            yield {"type": "server", "server": {"id": server["id"]}}


def _selectors(draft: Draft, body: Body) -> Iterator[Body]:
    for selector in body["selectors"]:
        meant = [one["id"] for _, one in draft.everything("server") if matches(selector, one["labels"])]
        yield {
            "type": "label_selector",
            "label_selector": {"selector": selector},
            "applied_to_resources": [{"type": "server", "server": {"id": number}} for number in meant],
        }


def _rules(given: Any) -> list[Body]:
    if not isinstance(given, list) or len(given) > MOST_RULES:
        raise invalid(f"invalid input in field 'rules': at most {MOST_RULES}")
    return [_rule(rule) for rule in given]


def _rule(given: Mapping[str, Any]) -> Body:
    direction, protocol = field(given, "direction"), field(given, "protocol")
    peers = given.get("source_ips" if direction == "in" else "destination_ips")
    has_port = given.get("port") is not None
    if protocol not in _PROTOCOLS or not peers or has_port != (protocol in ("tcp", "udp")):
        raise invalid("invalid input in field 'rules'")
    return {
        "direction": direction,
        "protocol": protocol,
        "port": given.get("port"),
        "source_ips": given.get("source_ips") or [],
        "destination_ips": given.get("destination_ips") or [],
        "description": given.get("description"),
    }


def _set_rules(draft: Draft, body: Body, given: Mapping[str, Any]) -> None:
    del draft
    body["rules"] = _rules(field(given, "rules"))
