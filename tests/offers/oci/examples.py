"""A complete valid declaration of every OCI type with its parents, other values for its parameters, and how a person
would edit each of them with plain requests.

Plain data for suites that run over the whole registry; nothing here asserts anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.oci.bucket import OciBucket
from fractal_cloud.offers.oci.instance import OciInstance
from fractal_cloud.offers.oci.subnet import OciSubnet
from fractal_cloud.offers.oci.vcn import OciVcn

REGION = "eu-frankfurt-1"
DOMAIN, OTHER_DOMAIN = "SaND:EU-FRANKFURT-1-AD-1", "SaND:EU-FRANKFURT-1-AD-2"
IMAGE = f"ocid1.image.oc1.{REGION}.sandboxoraclelinux9"
OTHER_IMAGE = f"ocid1.image.oc1.{REGION}.sandboxubuntu2404"
KEY = f"ocid1.key.oc1.{REGION}.sandbox"

Edit = Callable[[dict[str, Any], str, Any], tuple[str, str, dict[str, Any] | None]]
"""How a person edits one parameter: from the resource as it is, the method, what follows its path, and the body."""


@dataclass(frozen=True)
class Example:
    """``components``: declarations in dependency order, the last one is under test.

    ``changes`` and ``immutable_changes``: another valid value for each parameter, component ids where it is a
    reference.
    """

    components: list[dict[str, Any]]
    changes: dict[str, Any]
    immutable_changes: dict[str, Any]
    edits: Callable[[dict[str, Any], str, Any], list[tuple[str, str, dict[str, Any] | None]]]


def _component(kind: type[Component], component_id: str, **parameters: Any) -> dict[str, Any]:
    return {"id": component_id, "type": kind.type, "provider": kind.provider, "parameters": parameters}


VCN = _component(
    OciVcn, "net", region=REGION, compartment="team", cidrBlocks=["10.0.0.0/16"], dnsLabel="net", isIpv6Enabled=False
)
SUBNET = _component(
    OciSubnet, "part", vcn="net", cidrBlock="10.0.1.0/24", dnsLabel="part", prohibitPublicIpOnVnic=False
)


def _edit_vcn(item: dict[str, Any], name: str, value: Any) -> list[tuple[str, str, dict[str, Any] | None]]:
    assert name == "cidrBlocks"
    coming = [block for block in value if block not in item["cidrBlocks"]]
    leaving = [block for block in item["cidrBlocks"] if block not in value]
    return [
        *(("POST", "/actions/addCidr", {"cidrBlock": block}) for block in coming),
        *(("POST", "/actions/removeCidr", {"cidrBlock": block}) for block in leaving),
    ]


def _put(item: dict[str, Any], name: str, value: Any) -> list[tuple[str, str, dict[str, Any] | None]]:
    return [("PUT", "", {name: value})]


def _post(item: dict[str, Any], name: str, value: Any) -> list[tuple[str, str, dict[str, Any] | None]]:
    return [("POST", "", {name: value})]


def _edit_instance(item: dict[str, Any], name: str, value: Any) -> list[tuple[str, str, dict[str, Any] | None]]:
    match name:
        case "state":
            return [("POST", f"?action={'START' if value == 'running' else 'STOP'}", None)]
        case "ocpus" | "memoryInGBs":
            return [("PUT", "", {"shapeConfig": {name: value}})]
        case "metadata":
            own = {key: text for key, text in item["metadata"].items() if key in ("user_data", "ssh_authorized_keys")}
            return [("PUT", "", {"metadata": {**value, **own}})]
        case _:
            return [("PUT", "", {name: value})]


EXAMPLES: dict[type[Component], Example] = {
    OciVcn: Example(
        components=[VCN],
        changes={"cidrBlocks": ["10.0.0.0/16", "10.7.0.0/20"]},
        immutable_changes={"dnsLabel": "other", "isIpv6Enabled": True},
        edits=_edit_vcn,
    ),
    OciSubnet: Example(
        components=[VCN, SUBNET],
        changes={"cidrBlock": "10.0.1.0/25"},
        immutable_changes={"availabilityDomain": DOMAIN, "dnsLabel": "other", "prohibitPublicIpOnVnic": True},
        edits=_put,
    ),
    OciInstance: Example(
        components=[
            VCN,
            SUBNET,
            _component(
                OciInstance,
                "machine",
                subnet="part",
                availabilityDomain=DOMAIN,
                faultDomain="FAULT-DOMAIN-1",
                imageId=IMAGE,
                bootVolumeSizeInGBs=60,
                shape="VM.Standard.E5.Flex",
                ocpus=1,
                memoryInGBs=16,
                assignPublicIp=False,
                sshAuthorizedKeys="ssh-ed25519 AAAA me",
                userData="#!/bin/sh\necho hello",
                metadata={"role": "web"},
                state="running",
            ),
        ],
        changes={
            "metadata": {"role": "db"},
            "shape": "VM.Standard.A1.Flex",
            "ocpus": 2,
            "memoryInGBs": 24,
            "faultDomain": "FAULT-DOMAIN-2",
            "state": "stopped",
        },
        immutable_changes={
            "availabilityDomain": OTHER_DOMAIN,
            "imageId": OTHER_IMAGE,
            "bootVolumeSizeInGBs": 100,
            "assignPublicIp": True,
            "sshAuthorizedKeys": "ssh-ed25519 BBBB you",
            "userData": "#!/bin/sh\necho bye",
        },
        edits=_edit_instance,
    ),
    OciBucket: Example(
        components=[
            _component(
                OciBucket,
                "objects-of-team-a",
                region=REGION,
                compartment="team",
                storageTier="Standard",
                publicAccessType="NoPublicAccess",
                versioning="Enabled",
                objectEventsEnabled=False,
                autoTiering="Disabled",
                kmsKeyId=KEY,
            )
        ],
        changes={
            "publicAccessType": "ObjectRead",
            "versioning": "Suspended",
            "objectEventsEnabled": True,
            "autoTiering": "InfrequentAccess",
            "kmsKeyId": f"{KEY}2",
        },
        immutable_changes={"storageTier": "Archive"},
        edits=_post,
    ),
}
