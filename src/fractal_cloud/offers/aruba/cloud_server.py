"""Cloud servers: found by their name in a project and location.

Aruba never writes a server again as a whole: its name and its tags are frozen when it is created, and what can change
about it has a call of its own. What it is associated with is listed among its linked resources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from fractal_cloud.model.component import Component, Reference, References, parameter, reference_id
from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.referable import SensitiveText, text_of
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.aruba.block_storage import ArubaBlockStorage
from fractal_cloud.offers.aruba.calls import Aruba, Item, address
from fractal_cloud.offers.aruba.resources import ArubaComponent, ArubaOffer
from fractal_cloud.offers.aruba.security_group import ArubaSecurityGroup
from fractal_cloud.offers.aruba.subnet import ArubaSubnet
from fractal_cloud.offers.aruba.value_types import DataCenter
from fractal_cloud.offers.aruba.vpc import ArubaVpc
from fractal_cloud.offers.frozen_tags import FrozenTagsOffer
from fractal_cloud.offers.offer import Wanted

Uri = Annotated[str, Field(pattern=r"^/projects/[^/]+/providers/\S+$")]
Step = tuple[str, Item | None]
STOPPED: Final = "Stopped"


class ArubaCloudServer(ArubaComponent):
    """A virtual machine. Its tags are frozen once it is there: take it over, and hand it back, with `fractal glass`."""

    type = "NetworkAndCompute.IaaS.ArubaCloudServer"

    vpc: Reference[ArubaVpc] = parameter(
        immutable=True,
        reference=(ArubaVpc.type, "vpcUri"),
        description="The VPC it lies in; it lies in its location and project.",
    )
    subnets: References[ArubaSubnet] = parameter(
        compare="unordered",
        reference=(ArubaSubnet.type, "subnetUri"),
        min_length=1,
        description="The subnets of its VPC that it has an address in.",
    )
    security_groups: References[ArubaSecurityGroup] = parameter(
        compare="unordered",
        reference=(ArubaSecurityGroup.type, "securityGroupUri"),
        min_length=1,
        description="The security groups that say what it lets in and out.",
    )
    data_center: DataCenter = parameter(immutable=True, description="Zone it lies in.")
    flavor_name: str = parameter(immutable=True, description="Its size: the name of a flavor.", examples=["CSO2A4"])
    boot_volume: Reference[ArubaBlockStorage] = parameter(
        immutable=True,
        reference=(ArubaBlockStorage.type, "blockStorageUri"),
        description="The disk it boots from, made of an image. It stays when the server is deleted.",
    )
    data_volumes: References[ArubaBlockStorage] | None = parameter(
        default=None,
        compare="unordered",
        reference=(ArubaBlockStorage.type, "blockStorageUri"),
        description="Other disks that are attached to it.",
    )
    key_pair: Uri | None = parameter(
        default=None, immutable=True, description="Address (uri) of the key pair for its administrator."
    )
    elastic_ip: Uri | None = parameter(
        default=None, description="Address (uri) of the elastic IP by which it is reached."
    )
    user_data: SensitiveText | None = parameter(
        default=None,
        lines=True,
        sensitive=True,
        max_length=32_768,
        description="Text handed to its first start. Used at creation only: Aruba never returns it.",
    )
    state: Literal["running", "stopped"] = parameter(
        default="running", enforced=True, description="Whether it runs. Listed in ignoreDrift, it is left alone."
    )


class ArubaCloudServerOffer(FrozenTagsOffer[ArubaCloudServer, Aruba], ArubaOffer[ArubaCloudServer]):
    """How servers are read and changed."""

    component = ArubaCloudServer
    title = "Cloud server"
    service = "compute"
    collection = "Aruba.Compute/cloudServers"
    rights = ("Aruba.Compute/cloudServers",)
    made_by = "1.1"
    state_as = "status"
    cascade: ClassVar[Mapping[str, str]] = {"deleteBootVolumeOnCascade": "false"}
    outputs: ClassVar[Mapping[str, str]] = {
        "cloudServerUri": "address of the server",
        "id": "id of the server",
        "location": "region it lies in",
        "projectId": "id of its project",
        "status": "its state in Aruba's words: Running, Stopped, …",
        "privateIp": "its first address in its first subnet",
        "privateIps": "its addresses by the address of the subnet",
        "cpu": "how many processors its flavor has",
        "ram": "how many GB of memory its flavor has",
    }

    def actual(self, item: Item) -> dict[str, Any]:
        """How it was made, what it is associated with, and whether it runs."""
        properties = item["properties"]
        boot = properties["bootVolume"]["uri"]
        return {
            "vpc": properties["vpc"]["uri"],
            "subnets": _linked(item, "subnets"),
            "securityGroups": _linked(item, "securityGroups"),
            "dataCenter": properties["dataCenter"],
            "flavorName": properties["flavor"]["name"],
            "bootVolume": boot,
            "dataVolumes": [uri for uri in _linked(item, "blockStorages") if uri != boot],
            "keyPair": (properties.get("keyPair") or {}).get("uri"),
            "elasticIp": next(iter(_linked(item, "elasticIps")), None),
            "state": "stopped" if item["status"]["state"] == STOPPED else "running",
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Its address, and where it is reached."""
        properties = item["properties"]
        nets = properties.get("networkInterfaces") or ()
        addresses = {str(net["subnet"]): net["ips"][0] for net in nets if net.get("subnet") and net.get("ips")}
        return {
            "cloudServerUri": address(item),
            "privateIp": next(iter(addresses.values()), None),
            "privateIps": addresses or None,
            "cpu": properties["flavor"].get("cpu"),
            "ram": properties["flavor"].get("ram"),
        }

    def properties(self, wanted: Wanted[ArubaCloudServer]) -> Item:
        """Everything but its data volumes, and but for stopping it."""
        server = wanted.component
        return {
            "dataCenter": server.data_center,
            "vpc": _named(reference_id(server.vpc)),
            "flavorName": server.flavor_name,
            "bootVolume": _named(reference_id(server.boot_volume)),
            "keyPair": None if server.key_pair is None else _named(server.key_pair),
            "elasticIp": None if server.elastic_ip is None else _named(server.elastic_ip),
            "subnets": [_named(uri) for uri in _uris(server.subnets)],
            "securityGroups": [_named(uri) for uri in _uris(server.security_groups)],
            "userData": text_of(server.user_data),
        }

    def update(
        self, cloud: Aruba, sighting: Sighting, wanted: Wanted[ArubaCloudServer], drift: Collection[str]
    ) -> None:
        """Make the next call that is needed; whether it runs comes last."""
        for action, body in _steps(sighting, wanted.component, drift):
            cloud.write("POST", f"{sighting.resource_id}/{action}", body)
            return

    def blocked(self, cloud: Aruba, sighting: Sighting, refusal: Conflict) -> Conflict:
        """The refusal as it is: what is linked to a server does not keep it."""
        del cloud, sighting
        return refusal


def _steps(sighting: Sighting, server: ArubaCloudServer, drift: Collection[str]) -> Iterator[Step]:
    """What protects it comes before what it is reached by."""
    actual = sighting.actual
    kinds = (
        ("securityGroups", "associateDisassociateSecurityGroups", "securityGroupsTo", _uris(server.security_groups)),
        ("subnets", "associateDisassociateSubnets", "subnetsTo", _uris(server.subnets)),
    )
    for name, action, words, declared in kinds:
        if name in drift:
            yield action, _difference(actual[name], declared, f"{words}Associate", f"{words}Disassociate")
    if "elasticIp" in drift:
        here = [uri for uri in (actual["elasticIp"],) if uri is not None]
        declared = [uri for uri in (server.elastic_ip,) if uri is not None]
        body = _difference(here, declared, "elasticIPsToAssociate", "elasticIPsToDisassociate")
        yield "associateDisassociateElasticIPs", body
    if "dataVolumes" in drift:
        declared = _uris(server.data_volumes or [])
        body = _difference(actual["dataVolumes"], declared, "volumesToAttach", "volumesToDetach")
        yield "attachDetachDataVolumes", body
    if "state" in drift:
        yield "poweron" if server.state == "running" else "poweroff", None


def _difference(actual: Collection[str], declared: Collection[str], added: str, removed: str) -> Item:
    found = {
        added: [_named(uri) for uri in declared if uri not in actual],
        removed: [_named(uri) for uri in actual if uri not in declared],
    }
    return {name: uris for name, uris in found.items() if uris}


def _linked(item: Item, collection: str) -> list[str]:
    """The addresses of what a server is linked to in one collection."""
    links = item["properties"].get("linkedResources") or ()
    uris = {str(one["uri"]) for one in links if one.get("uri")}
    return sorted(uri for uri in uris if uri.rsplit("/", 2)[-2:-1] == [collection])


def _uris(references: References[Component]) -> list[str]:
    return [reference_id(one) for one in references]


def _named(uri: str) -> Item:
    return {"uri": uri}
