"""Servers: found by their name, which is unique in a project.

What a server was created with beyond its image (keys, user data) Hetzner never returns again. The root password that it
returns once, where no key is given, is not kept: give keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from fractal_cloud.model.component import Component, References, parameter, reference_id
from fractal_cloud.model.errors import Invalid
from fractal_cloud.model.referable import SensitiveText, text_of
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.hetzner.cloud import Hetzner, Item
from fractal_cloud.offers.hetzner.firewall import HetznerFirewall
from fractal_cloud.offers.hetzner.network import HetznerNetwork
from fractal_cloud.offers.hetzner.resources import ResourceOffer, Seen, Step, in_use, protection
from fractal_cloud.offers.hetzner.tags import glass
from fractal_cloud.offers.hetzner.value_types import HetznerComponent, Location, host_name, ids
from fractal_cloud.offers.offer import Wanted

# The vendor's state: our run state, and whether Hetzner is at work.
_STATES: Mapping[str, tuple[str, Condition]] = {
    "initializing": ("running", Condition.CREATING),
    "starting": ("running", Condition.CHANGING),
    "running": ("running", Condition.SETTLED),
    "stopping": ("stopped", Condition.CHANGING),
    "off": ("stopped", Condition.SETTLED),
    "deleting": ("stopped", Condition.DYING),
    "migrating": ("running", Condition.CHANGING),
    "rebuilding": ("running", Condition.CHANGING),
}
_UNKNOWN: tuple[None, Condition] = (None, Condition.CHANGING)


class HetznerServer(HetznerComponent):
    """A virtual machine."""

    type = "NetworkAndCompute.IaaS.HetznerServer"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, which is its host name; the component's id if not given.",
    )
    server_type: str = parameter(
        description="Its size. Changing it shuts the machine down and starts it again; its disk keeps its size.",
        examples=["cx23"],
    )
    image: str = parameter(
        immutable=True,
        description="Name of the system image it starts from, or the id of a snapshot.",
        examples=["debian-13"],
    )
    location: Location | None = parameter(
        default=None, immutable=True, description="Where it runs; Hetzner chooses where none is given."
    )
    ssh_keys: list[str] | None = parameter(
        default=None, description="Names of the keys for root. Used at creation only: Hetzner never returns them."
    )
    user_data: SensitiveText | None = parameter(
        default=None,
        lines=True,
        sensitive=True,
        max_length=32_768,
        description="Text handed to its first start. Used at creation only: Hetzner never returns it.",
    )
    enable_ipv4: bool | None = parameter(
        default=None, immutable=True, description="Whether it has a public IPv4 address; Hetzner starts with true."
    )
    enable_ipv6: bool | None = parameter(
        default=None, immutable=True, description="Whether it has a public IPv6 network; Hetzner starts with true."
    )
    networks: References[HetznerNetwork] | None = parameter(
        default=None,
        compare="unordered",
        reference=(HetznerNetwork.type, "networkId"),
        description="The private networks it is in.",
    )
    firewalls: References[HetznerFirewall] | None = parameter(
        default=None,
        compare="unordered",
        reference=(HetznerFirewall.type, "firewallId"),
        description="The firewalls it is behind, those applied by label selectors included.",
    )
    backups: bool | None = parameter(
        default=None,
        description="Whether backups are made. Switching them off deletes them all: only a person does that.",
    )
    delete_protection: bool | None = parameter(
        default=None,
        description="Whether Hetzner refuses to delete or rebuild it, also to us; Hetzner starts with false.",
    )
    state: Literal["running", "stopped"] = parameter(
        default="running",
        enforced=True,
        description="Whether it runs. Listed in ignoreDrift, it is never stopped: what needs that waits until you do.",
    )

    @field_validator("name")
    @classmethod
    def _is_host_name(cls, name: str) -> str:
        return host_name(name)


class HetznerServerOffer(ResourceOffer[HetznerServer]):
    """How servers are read and changed."""

    component = HetznerServer
    title = "Server"
    plural = "servers"
    outputs: ClassVar[Mapping[str, str]] = {
        "serverId": "id of the server",
        "status": "initializing, starting, running, stopping, off, …",
        "location": "where it runs",
        "publicIpv4": "its public IPv4 address, where it has one",
        "publicIpv6": "its public IPv6 network, where it has one",
        "privateIp": "its address in its first private network, where it is in one",
        "privateIps": "its addresses by the id of the network",
        "created": "when it was created",
    }
    glass = glass("server")

    def seen(self, item: Item) -> Seen:
        """A server is settled while it runs or is off, and no action has it locked."""
        run_state, condition = _STATES.get(item["status"], _UNKNOWN)
        detail = "" if condition is Condition.SETTLED else item["status"]
        if item.get("locked") and condition is Condition.SETTLED:
            condition, detail = Condition.CHANGING, "locked by an action"
        public = item.get("public_net") or {}
        image = item.get("image")
        return Seen(
            actual={
                "serverType": item["server_type"]["name"],
                **({"image": image.get("name") or str(image["id"])} if image else {}),
                "location": _location(item),
                "enableIpv4": public.get("ipv4") is not None,
                "enableIpv6": public.get("ipv6") is not None,
                "networks": ids(net["network"] for net in item.get("private_net") or ()),
                "firewalls": ids(one["id"] for one in public.get("firewalls") or ()),
                "backups": item.get("backup_window") is not None,
                "deleteProtection": protection(item),
                **({"state": run_state} if run_state else {}),  # one that is not known is no difference
            },
            outputs=_outputs(item),
            condition=condition,
            detail=detail,
        )

    def made_of(self, component: HetznerServer) -> Item:
        """Everything but backups and protection."""
        public = {"enable_ipv4": component.enable_ipv4, "enable_ipv6": component.enable_ipv6}
        firewalls = None if component.firewalls is None else [{"firewall": one} for one in _ids(component.firewalls)]
        return {
            "server_type": component.server_type,
            "image": component.image,
            "location": component.location,
            "ssh_keys": component.ssh_keys,
            "user_data": text_of(component.user_data),
            "public_net": {key: value for key, value in public.items() if value is not None} or None,
            "networks": None if component.networks is None else _ids(component.networks),
            "firewalls": firewalls,
            "start_after_create": component.state == "running",
        }

    def steps(self, sighting: Sighting, wanted: Wanted[HetznerServer], drift: Collection[str]) -> Iterator[Step]:
        """The run state comes last: a machine is started once everything that needs it stopped is done."""
        component = wanted.component
        actual = sighting.actual
        yield from _firewall_steps(sighting, component, drift)
        yield from _network_steps(sighting, component, drift)
        if "backups" in drift and component.backups:
            yield Step("enable_backup", {})
        if "deleteProtection" in drift:
            value = component.delete_protection
            yield Step("change_protection", {"delete": value, "rebuild": value})
        if "serverType" in drift:
            if actual["state"] == "running":
                yield Step("shutdown", {}, stops_for="serverType")
            yield Step("change_type", {"server_type": component.server_type, "upgrade_disk": False})
        if "state" in drift:
            yield Step("poweron" if component.state == "running" else "shutdown", {})
        if "backups" in drift and not component.backups:
            raise Invalid(
                "backups cannot go from true to false: that deletes all backups; declare true, or switch them off "
                f"with `hcloud server disable-backup {sighting.resource_id}`"
            )

    def release(self, cloud: Hetzner, item: Item, user: Item | None) -> Step | None:
        """Refuse while volumes are attached: those of this LiveSystem are gone by now, so they are somebody else's."""
        del user
        if item.get("volumes"):
            raise in_use(cloud, "the server", {"volumes": item["volumes"]})
        return None

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What stops the machine."""
        if "serverType" in drift:
            return ["changing serverType shuts the machine down and starts it again"]
        return []


def _ids(references: References[Component]) -> list[int]:
    return [int(reference_id(one)) for one in references]


def _firewall_steps(sighting: Sighting, component: HetznerServer, drift: Collection[str]) -> Iterator[Step]:
    """What protects comes before what is taken away."""
    if "firewalls" not in drift:
        return
    declared, actual = set(_ids(component.firewalls or [])), {int(one) for one in sighting.actual["firewalls"]}
    resources = [{"type": "server", "server": {"id": int(sighting.resource_id)}}]
    for one in sorted(declared - actual):
        yield Step("apply_to_resources", {"apply_to": resources}, "firewalls", str(one))
    for one in sorted(actual - declared):
        yield Step("remove_from_resources", {"remove_from": resources}, "firewalls", str(one))


def _network_steps(sighting: Sighting, component: HetznerServer, drift: Collection[str]) -> Iterator[Step]:
    if "networks" not in drift:
        return
    declared, actual = set(_ids(component.networks or [])), {int(one) for one in sighting.actual["networks"]}
    for one in sorted(declared - actual):
        yield Step("attach_to_network", {"network": one})
    for one in sorted(actual - declared):
        yield Step("detach_from_network", {"network": one})


def _location(item: Mapping[str, Any]) -> str:
    found = item.get("location") or item["datacenter"]["location"]
    return str(found["name"])


def _outputs(item: Mapping[str, Any]) -> dict[str, Any]:
    public = item.get("public_net") or {}
    private = {str(net["network"]): net["ip"] for net in item.get("private_net") or ()}
    optional = {
        "publicIpv4": (public.get("ipv4") or {}).get("ip"),
        "publicIpv6": (public.get("ipv6") or {}).get("ip"),
        "privateIp": next(iter(private.values()), None),
        "privateIps": private,
    }
    return {
        "serverId": str(item["id"]),
        "status": item["status"],
        "location": _location(item),
        "created": item.get("created") or "",
        **{name: value for name, value in optional.items() if value},
    }
