"""The rules of network security groups, flat and in one spelling, so that declared and actual ones can be compared.

Azure has each address and port twice, as one and as a list; here several are joined by commas, and what is left open
(«*») is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from fractal_cloud.offers.azure.kinds import Item

Rule = dict[str, Any]

_PEERS: Final[Mapping[str, str]] = {
    "sourceAddressPrefix": "sourceAddressPrefixes",
    "sourcePortRange": "sourcePortRanges",
    "destinationAddressPrefix": "destinationAddressPrefixes",
    "destinationPortRange": "destinationPortRanges",
}
_PLAIN: Final = ("priority", "direction", "access")
_ANY: Final = "*"
_PORTS: Final = r"^\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*$"
_ADDRESSES: Final = r"^[A-Za-z0-9.:/-]+(,[A-Za-z0-9.:/-]+)*$"


class AzureSecurityRule(BaseModel):
    """One rule. Several addresses or ports are joined by commas."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9_.-]{0,78}[a-z0-9_])?$", description="Its name, in small letters.")
    priority: int = Field(ge=100, le=4096, description="The lower, the earlier; each once per direction.")
    direction: Literal["Inbound", "Outbound"] = Field(description="For what comes in, or for what goes out.")
    access: Literal["Allow", "Deny"] = Field(description="Whether it lets pass or refuses.")
    protocol: Literal["Tcp", "Udp", "Icmp", "Esp", "Ah"] | None = Field(default=None, description="Any, if not given.")
    source_address_prefix: str | None = Field(
        default=None, pattern=_ADDRESSES, description="Networks, addresses or a service tag; any, if not given."
    )
    source_port_range: str | None = Field(
        default=None, pattern=_PORTS, description="Ports or ranges of ports; any, if not given."
    )
    destination_address_prefix: str | None = Field(default=None, pattern=_ADDRESSES, description="As for the source.")
    destination_port_range: str | None = Field(default=None, pattern=_PORTS, description="As for the source.")
    description: str | None = Field(default=None, max_length=140, description="What it is for.")

    @model_validator(mode="after")
    def _is_spelled_as_it_is_compared(self) -> Self:
        written = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if written != (spelled := self.flat()):
            raise ValueError(f"a rule is compared in one spelling: write {json.dumps(spelled)}")
        return self

    def flat(self) -> Rule:
        """The rule as it is compared."""
        rule = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {**rule, **{name: _joined(rule[name].split(",")) for name in _PEERS if name in rule}}


def each_once(rules: list[AzureSecurityRule] | None) -> list[AzureSecurityRule] | None:
    """The rules of a group; raises where two have one name, or one priority in one direction, which Azure refuses."""
    for what in ("name", "priority"):
        seen: set[Any] = set()
        for rule in rules or ():
            key = rule.name if what == "name" else (rule.direction, rule.priority)
            if key in seen:
                raise ValueError(f"two rules have the {what} {getattr(rule, what)!r}: change one of them")
            seen.add(key)
    return rules


def from_items(items: Iterable[Item]) -> list[Rule]:
    """The rules of an answer."""
    return sorted((_from_item(item) for item in items), key=lambda rule: (rule["direction"], rule["priority"]))


def _from_item(item: Item) -> Rule:
    properties = item.get("properties") or {}
    rule: Rule = {"name": item["name"].lower(), **{name: properties[name] for name in _PLAIN}}
    for one, several in _PEERS.items():
        rule[one] = _joined(properties.get(several) or [properties.get(one) or _ANY])
    rule["description"] = properties.get("description")
    rule["protocol"] = str(properties.get("protocol") or "").capitalize()  # Azure keeps TCP and tcp as they were sent
    return {name: value for name, value in rule.items() if value not in (None, "", _ANY)}


def to_items(rules: Iterable[Rule]) -> list[Item]:
    """Rules as a request has them."""
    return [_to_item(rule) for rule in rules]


def _to_item(rule: Rule) -> Item:
    properties: Item = {name: rule[name] for name in (*_PLAIN, "description") if name in rule}
    properties["protocol"] = rule.get("protocol", _ANY)
    for one, several in _PEERS.items():
        values = str(rule.get(one, _ANY)).split(",")
        properties |= {one: values[0]} if len(values) == 1 else {several: values}
    return {"name": rule["name"], "properties": properties}


def _joined(values: Iterable[str]) -> str:
    return ",".join(sorted(str(value) for value in values))
