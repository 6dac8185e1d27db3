"""The rules of a security group: parts of it that Aruba makes and deletes one by one, and never changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from fractal_cloud.offers.aruba.calls import Item
from fractal_cloud.offers.aruba.resources import GONE
from fractal_cloud.offers.aruba.value_types import Part

DYING: Final = ("Deleting", GONE)


class ArubaSecurityRule(Part):
    """One rule: what it lets through."""

    direction: Literal["Ingress", "Egress"] = Field(description="Whether it is about what comes in or what goes out.")
    protocol: Literal["ANY", "TCP", "UDP", "ICMP"] = Field(description="The protocol.")
    port: Annotated[str, Field(pattern=r"^(\*|\d{1,5}(-\d{1,5})?)$")] | None = Field(
        default=None, description="A port, a range such as 8000-8010, or *; for TCP and UDP, and only there."
    )
    target_kind: Literal["Ip", "SecurityGroup"] = Field(default="Ip", description="What stands on the other side.")
    target: str = Field(description="A block of addresses, or the address (uri) of a security group.")

    @model_validator(mode="after")
    def _is_one_rule(self) -> Self:
        if (self.port is not None) != (self.protocol in ("TCP", "UDP")):
            raise ValueError("a rule for TCP or UDP has a port, and no other rule has one")
        return self


def flat(item: Item) -> dict[str, Any]:
    """A rule of the cloud as it is compared."""
    properties = item["properties"]
    found = {
        "direction": properties["direction"],
        "protocol": str(properties["protocol"]).upper(),
        "port": properties.get("port"),
        "targetKind": properties["target"]["kind"],
        "target": properties["target"]["value"],
    }
    return {name: value for name, value in found.items() if value}


def body(rule: Mapping[str, Any], location: str) -> Item:
    """What makes a rule; its name says nothing but which one it is."""
    digest = hashlib.sha256(json.dumps(rule, sort_keys=True).encode()).hexdigest()[:12]
    properties = {
        "direction": rule["direction"],
        "protocol": rule["protocol"],
        "target": {"kind": rule["targetKind"], "value": rule["target"]},
        **({"port": rule["port"]} if rule.get("port") else {}),
    }
    return {"metadata": {"name": f"rule-{digest}", "location": {"value": location}}, "properties": properties}
