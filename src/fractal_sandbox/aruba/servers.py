"""Cloud servers, and what they are made with: key pairs and elastic addresses.

A server is never written again as a whole: there is no PUT, so its name and its tags stay as they were created. What
can change about it has a call of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fractal_sandbox.aruba import common
from fractal_sandbox.aruba.collection import Collection, find_by_uri
from fractal_sandbox.aruba.networks import ADDRESS, GROUP, SERVER, SUBNET, VPC
from fractal_sandbox.aruba.storage import DISK, attached
from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.rest import Body, Draft, Kind, Reply, Request, Route

__all__ = ["COLLECTIONS", "KEY", "PRESENT_FROM_THE_START"]

KEY: Final = common.plain("key-pair", tags=common.monitored_tags, offered=False)
CREATE_API_VERSION: Final = "1.1"
FLAVORS: Final[Mapping[str, tuple[int, int]]] = {"CSO2A4": (2, 4), "CSO4A8": (4, 8)}
PRESENT_FROM_THE_START: Final = {
    "keyPairs": ("Aruba.Compute/keyPairs", KEY),
    "elasticIps": ("Aruba.Network/elasticIps", ADDRESS),
}
"""What every project has from the start, by the collection it is in; each is called `given`."""
_SHOWN_AS_LINKS: Final = ("subnets", "securityGroups", "elasticIps", "dataVolumes")
"""What answers list under `linkedResources`, and not as properties of their own."""


def _uris(given: Any) -> list[str]:
    return [str(one["uri"]) for one in given or ()]


def _checked(draft: Draft, kind: Kind, given: Any, named: str) -> list[str]:
    return [str(find_by_uri(draft, kind, one, named)["uri"]) for one in given or ()]


def _free_disk(draft: Draft, given: Any, named: str) -> str:
    disk = find_by_uri(draft, DISK, given, named)
    users = [one for _, one in draft.everything(SERVER.name) if disk["uri"] in attached(one)]
    if users:
        raise common.in_use(f"{named} in use.")
    return str(disk["uri"])


def _make(draft: Draft, body: Body) -> Body:
    given = body["properties"]
    if given.get("flavorName") not in FLAVORS:
        raise common.invalid("FlavorName", f"must be one of {', '.join(FLAVORS)}")
    if not given.get("dataCenter"):
        raise common.invalid("DataCenter", "is required")
    vpc = find_by_uri(draft, VPC, given.get("vpc"), "Vpc")
    volume = _free_disk(draft, given.get("bootVolume"), "BootVolume")
    if not (draft.peek(DISK.name, volume.rpartition("/")[2]) or {})["properties"]["bootable"]:
        raise common.invalid("BootVolume", "is not bootable")
    key = given.get("keyPair")
    if key is not None:
        find_by_uri(draft, KEY, key, "KeyPair")
    address = [] if given.get("elasticIp") is None else [given["elasticIp"]]
    cpu, ram = FLAVORS[given["flavorName"]]
    body["power"] = "Running"
    return {
        "dataCenter": given["dataCenter"],
        "vpc": {"uri": vpc["uri"]},
        "flavor": {"name": given["flavorName"], "category": "CloudServer", "cpu": cpu, "ram": ram},
        "bootVolume": {"uri": volume},
        "keyPair": key,
        "subnets": _checked(draft, SUBNET, given.get("subnets"), "Subnets"),
        "securityGroups": _checked(draft, GROUP, given.get("securityGroups"), "SecurityGroups"),
        "elasticIps": _checked(draft, ADDRESS, address, "ElasticIp"),
        "dataVolumes": [],
    }


Action = Callable[[Draft, Body, Body], None]


def _power(state: str) -> Action:
    def act(draft: Draft, body: Body, given: Body) -> None:
        del draft, given
        if body["power"] == state:
            raise common.in_use(f"The cloud server is {state} already.")
        body["power"] = body["state"] = state

    return act


def _associate(name: str, kind: Kind, added: str, removed: str) -> Action:
    """Return the action that adds and removes associations of a server in one call."""

    def act(draft: Draft, body: Body, given: Body) -> None:
        coming = _checked(draft, kind, given.get(added), added)
        if kind is DISK:
            coming = [_free_disk(draft, one, "Volume") for one in given.get(added) or ()]
        going = _uris(given.get(removed))
        here = body["properties"][name]
        unknown = [uri for uri in going if uri not in here]
        if unknown:
            raise common.invalid(removed, f"{unknown[0]!r} is not associated")
        body["properties"][name] = [
            uri for uri in [*here, *(one for one in coming if one not in here)] if uri not in going
        ]

    return act


ACTIONS: Final[Mapping[str, Action]] = {
    "poweron": _power("Running"),
    "poweroff": _power("Stopped"),
    "associateDisassociateSubnets": _associate("subnets", SUBNET, "subnetsToAssociate", "subnetsToDisassociate"),
    "associateDisassociateSecurityGroups": _associate(
        "securityGroups", GROUP, "securityGroupsToAssociate", "securityGroupsToDisassociate"
    ),
    "associateDisassociateElasticIPs": _associate(
        "elasticIps", ADDRESS, "elasticIPsToAssociate", "elasticIPsToDisassociate"
    ),
    "attachDetachDataVolumes": _associate("dataVolumes", DISK, "volumesToAttach", "volumesToDetach"),
}


@dataclass(frozen=True)
class _Servers(Collection):
    """The collection of servers: without PUT, with calls for what can change."""

    def routes(self, knobs: Knobs) -> list[Route]:
        found = [route for route in super().routes(knobs) if route.method != "PUT"]
        one = f"/projects/{{project}}/providers/{self.path}/{{id}}"
        return found + [
            Route(
                "POST",
                f"{one}/{name}",
                self.service,
                f"{name}{self.noun}",
                self._acting(act),
                "id",
                kind=self.kind.name,
            )
            for name, act in ACTIONS.items()
        ]

    def shown(self, draft: Draft, body: Body) -> Body:
        item = super().shown(draft, body)
        properties = body["properties"]
        linked = [*properties["subnets"], *properties["securityGroups"], *properties["elasticIps"], *attached(body)]
        nets = [
            {"subnet": uri, "macAddress": f"02:00:00:00:00:{number:02x}", "ips": [f"10.0.{number}.4"]}
            for number, uri in enumerate(properties["subnets"])
        ]
        kept = {name: value for name, value in properties.items() if name not in _SHOWN_AS_LINKS}
        links = [{"uri": uri, "strictCorrelation": False} for uri in linked]
        return {**item, "properties": {**kept, "networkInterfaces": nets, "linkedResources": links}}

    def _create(self, request: Request, draft: Draft) -> Reply:
        if request.query.get("api-version") != CREATE_API_VERSION:
            raise common.invalid("api-version", f"must be {CREATE_API_VERSION}")
        return super()._create(request, draft)

    def _acting(self, act: Action) -> Callable[[Request, Draft], Reply]:
        def handler(request: Request, draft: Draft) -> Reply:
            body = self.writable(request, draft)
            act(draft, body, request.json() or {})
            return Reply(202, self.shown(draft, draft.put(self.kind.name, body["id"], body)))

        return handler


def _delete_boot_volume(draft: Draft, body: Body, query: Mapping[str, str]) -> None:
    """Delete the boot volume with its server, unless the caller says otherwise."""
    if query.get("deleteBootVolumeOnCascade") != "false":
        draft.remove(DISK.name, body["properties"]["bootVolume"]["uri"].rpartition("/")[2])


def _users(draft: Draft, body: Body) -> list[str]:
    every = [one for _, one in draft.everything(SERVER.name)]
    return [one["uri"] for one in every if (one["properties"]["keyPair"] or {}).get("uri") == body["uri"]]


def _make_part(draft: Draft, body: Body) -> Body:
    del draft
    return dict(body["properties"])


COLLECTIONS: Final = (
    _Servers(
        SERVER,
        "Aruba.Compute/cloudServers",
        "compute",
        "CloudServer",
        _make,
        on_delete=_delete_boot_volume,
        settled_state="Running",
        shows_deleted=True,
    ),
    Collection(KEY, PRESENT_FROM_THE_START["keyPairs"][0], "compute", "KeyPair", _make_part, linked=_users),
    Collection(
        ADDRESS, PRESENT_FROM_THE_START["elasticIps"][0], "network", "ElasticIp", _make_part, settled_state="NotUsed"
    ),
)
