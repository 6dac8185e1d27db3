"""Firewall rules: made once or only read, because Google gives them no labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from fractal_cloud.model.component import Reference, parameter
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.gcp.network import GcpVpc, network_of
from fractal_cloud.offers.gcp.resources import Raw, UnlabelledOffer
from fractal_cloud.offers.gcp.value_types import GcpComponent, Network, path_of, resource_name


class GcpFirewall(GcpComponent):
    """A firewall rule, only imported, because Google gives it no labels; with `createOnce` it is made if absent."""

    type = "NetworkAndCompute.IaaS.GcpFirewall"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in the project; the component's id if not given.",
    )
    network: Reference[GcpVpc] | None = parameter(
        default=None, immutable=True, reference=(GcpVpc.type, "networkPath"), description="The network it is about."
    )
    direction: Literal["INGRESS", "EGRESS"] | None = parameter(
        default=None, immutable=True, description="Whether it is about traffic that comes or goes."
    )
    priority: int | None = parameter(default=None, ge=0, le=65_535, description="Lower numbers decide first.")
    source_ranges: list[Network] | None = parameter(
        default=None, compare="cidrs", description="Networks the traffic comes from."
    )
    target_tags: list[str] | None = parameter(
        default=None,
        compare="unordered",
        description="Network tags of the machines it is about; without any, all of them.",
    )
    allowed: list[str] | None = parameter(
        default=None, compare="unordered", description="What it lets through, such as tcp:443 or icmp."
    )
    denied: list[str] | None = parameter(
        default=None, compare="unordered", description="What it stops, such as tcp:22."
    )
    disabled: bool | None = parameter(default=None, description="Whether it is switched off.")

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return resource_name(name)


class GcpFirewallOffer(UnlabelledOffer[GcpFirewall]):
    """How firewall rules are read, and made once."""

    component = GcpFirewall
    title = "Firewall rule"
    service = "compute"
    rights = (*(f"compute.firewalls.{verb}" for verb in ("create", "get", "list")), "compute.networks.updatePolicy")
    outputs: ClassVar[Mapping[str, str]] = {
        "firewallName": "name of the rule",
        "firewallId": "number that no other rule will ever have",
        "networkPath": "its network as `projects/…`",
        "selfLink": "its address in Google's API",
    }

    def collection(self, cloud: Gcp) -> str:
        """All firewall rules of the project."""
        return f"/projects/{cloud.project}/global/firewalls"

    def body(self, cloud: Gcp, component: GcpFirewall) -> dict[str, Any]:
        """A rule on the network that is declared, else on `default`."""
        declared = component.model_dump(mode="json", by_alias=True)
        plain = ("direction", "priority", "sourceRanges", "targetTags", "disabled")
        said = {name: declared[name] for name in plain if declared[name] not in (None, [])}
        rules = {name: _rules(declared[name]) for name in ("allowed", "denied") if declared[name]}
        return {"network": network_of(cloud, component.network), **said, **rules}

    def sighting(self, cloud: Gcp, raw: Raw) -> Sighting:
        """What a rule shows."""
        del cloud
        name = raw["name"]
        network = path_of(raw["network"])
        return Sighting(
            type=GcpFirewall.type,
            name=name,
            resource_id=name,
            incarnation=str(raw["id"]),
            actual={
                "network": network,
                "direction": raw.get("direction"),
                "priority": raw.get("priority"),
                "sourceRanges": sorted(raw.get("sourceRanges") or ()),
                "targetTags": sorted(raw.get("targetTags") or ()),
                "allowed": _protocols(raw.get("allowed")),
                "denied": _protocols(raw.get("denied")),
                "disabled": bool(raw.get("disabled")),
            },
            outputs={
                "firewallName": name,
                "firewallId": str(raw["id"]),
                "networkPath": network,
                "selfLink": raw["selfLink"],
            },
        )

    def is_provider_default(self, sighting: Sighting) -> bool:
        """Whether it came with the network `default`, or with a cluster."""
        return sighting.name.startswith(("default-allow-", "gke-"))


def _rules(declared: Iterable[str]) -> list[dict[str, Any]]:
    """Rules such as `tcp:443` in Google's form: each protocol with its ports, or alone with all of them."""
    ports: dict[str, list[str]] = {}
    for rule in declared:
        protocol, _, port = rule.partition(":")
        ports.setdefault(protocol, []).extend([port] if port else [])
    return [{"IPProtocol": name, **({"ports": found} if found else {})} for name, found in ports.items()]


def _protocols(rules: Any) -> list[str]:
    """Rules as `tcp:443`, a port or a range each; a protocol without ports stands alone."""
    found = []
    for rule in rules or ():
        ports = rule.get("ports") or ()
        found += [f"{rule['IPProtocol']}:{port}" for port in ports] or [rule["IPProtocol"]]
    return sorted(found)
