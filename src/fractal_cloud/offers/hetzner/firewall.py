"""Firewalls: found by their name, which is unique in a project. Which servers one protects, the servers say."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_serializer, model_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.hetzner.cloud import Hetzner, Item
from fractal_cloud.offers.hetzner.resources import ResourceOffer, Seen, Step, in_use
from fractal_cloud.offers.hetzner.tags import glass
from fractal_cloud.offers.hetzner.value_types import AnyNetwork, HetznerComponent, Part, flattened, sent
from fractal_cloud.offers.offer import Wanted

MOST_RULES = 50
_WITH_PORTS = ("tcp", "udp")


class HetznerFirewallRule(Part):
    """One rule: what it lets through. Everything else that comes in is dropped."""

    direction: Literal["in", "out"] = Field(description="Whether it is about what comes in or what goes out.")
    protocol: Literal["tcp", "udp", "icmp", "esp", "gre"] = Field(description="The protocol.")
    port: Annotated[str, Field(pattern=r"^\d{1,5}(-\d{1,5})?$|^any$")] | None = Field(
        default=None, description="A port, a range such as 8000-8010, or any; for tcp and udp, and only there."
    )
    source_ips: list[AnyNetwork] | None = Field(default=None, description="From where; for the direction in.")
    destination_ips: list[AnyNetwork] | None = Field(default=None, description="To where; for the direction out.")
    description: str | None = Field(default=None, max_length=255, description="What it is for.")

    @model_validator(mode="after")
    def _is_one_rule(self) -> Self:
        peers = (self.source_ips, self.destination_ips)
        named, other = peers if self.direction == "in" else peers[::-1]
        if not named or other:
            wanted = "sourceIps" if self.direction == "in" else "destinationIps"
            raise ValueError(f"a rule for the direction {self.direction!r} names {wanted}, and only these")
        if (self.port is not None) != (self.protocol in _WITH_PORTS):
            raise ValueError("a rule for tcp or udp has a port, and no other rule has one")
        return self

    def flat(self) -> dict[str, Any]:
        """The rule as it is compared: networks in order, nothing empty."""
        return _flat(self.model_dump(mode="json", by_alias=True))


class HetznerFirewall(HetznerComponent):
    """A set of rules for what servers let in and out. Servers name the firewalls they are behind."""

    type = "NetworkAndCompute.IaaS.HetznerFirewall"

    rules: list[HetznerFirewallRule] | None = parameter(
        default=None,
        compare="unordered",
        max_length=MOST_RULES,
        description="All its rules. Without one for the direction out, everything may go out.",
    )

    @field_serializer("rules")
    def _in_one_spelling(self, rules: list[HetznerFirewallRule] | None) -> Any:
        return flattened(rules)


class HetznerFirewallOffer(ResourceOffer[HetznerFirewall]):
    """How firewalls are read and changed."""

    component = HetznerFirewall
    title = "Firewall"
    plural = "firewalls"
    outputs: ClassVar[Mapping[str, str]] = {
        "firewallId": "id of the firewall",
        "created": "when it was created",
    }
    glass = glass("firewall")

    def seen(self, item: Item) -> Seen:
        """A firewall has no state: it is ready when it is there."""
        return Seen(
            actual={"rules": sorted(map(_from_answer, item.get("rules") or ()), key=str)},
            outputs={"firewallId": str(item["id"]), "created": item.get("created") or ""},
        )

    def made_of(self, component: HetznerFirewall) -> Item:
        """Its rules."""
        return {"rules": _all_sent(component)}

    def steps(self, sighting: Sighting, wanted: Wanted[HetznerFirewall], drift: Collection[str]) -> Iterator[Step]:
        """All rules at once: Hetzner knows no other way, and no server is unprotected in between."""
        component = wanted.component
        del sighting
        if "rules" in drift:
            yield Step("set_rules", {"rules": _all_sent(component)})

    def release(self, cloud: Hetzner, item: Item, user: Item | None) -> Step | None:
        """Refuse while it protects anything: Hetzner would refuse as well, without a name."""
        del user
        applied = item.get("applied_to") or ()
        servers = [one["server"]["id"] for one in applied if one["type"] == "server"]
        selectors = [one["label_selector"]["selector"] for one in applied if one["type"] == "label_selector"]
        if servers:
            raise in_use(cloud, "the firewall", {"servers": servers})
        if selectors:
            raise Conflict(
                f"it is applied to the label selector {', '.join(map(repr, selectors))}: it goes when that is removed",
                code="resource_in_use",
            )
        return None


def _all_sent(component: HetznerFirewall) -> list[dict[str, Any]] | None:
    return None if component.rules is None else [sent(rule.flat()) for rule in component.rules]


def _from_answer(rule: Mapping[str, Any]) -> dict[str, Any]:
    return _flat(
        {
            "direction": rule["direction"],
            "protocol": rule["protocol"],
            "port": rule.get("port"),
            "sourceIps": rule.get("source_ips"),
            "destinationIps": rule.get("destination_ips"),
            "description": rule.get("description"),
        }
    )


def _flat(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {name: sorted(value) if isinstance(value, list) else value for name, value in rule.items() if value}
