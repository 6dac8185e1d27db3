"""Components of OCI as people declare them, for tests."""

from __future__ import annotations

from typing import Any

from tests.offers.oci.examples import DOMAIN, IMAGE, REGION

Declaration = dict[str, Any]


def _component(kind: str, component_id: str, parameters: Declaration) -> Declaration:
    return {"id": component_id, "type": kind, "provider": "oci", "parameters": parameters}


def vcn(component_id: str = "net", **parameters: Any) -> Declaration:
    """A VCN."""
    values = {"region": REGION, "compartment": "team", "cidrBlocks": ["10.0.0.0/16"], **parameters}
    return _component("NetworkAndCompute.IaaS.OciVcn", component_id, values)


def subnet(component_id: str = "part", **parameters: Any) -> Declaration:
    """A subnet of the VCN ``net``."""
    values = {"vcn": "net", "cidrBlock": "10.0.1.0/24", **parameters}
    return _component("NetworkAndCompute.IaaS.OciSubnet", component_id, values)


def instance(component_id: str = "machine", **parameters: Any) -> Declaration:
    """A machine in the subnet ``part``."""
    values = {
        "subnet": "part",
        "availabilityDomain": DOMAIN,
        "imageId": IMAGE,
        "shape": "VM.Standard.E5.Flex",
        "ocpus": 1,
        "memoryInGBs": 16,
        **parameters,
    }
    return _component("NetworkAndCompute.IaaS.OciInstance", component_id, values)


def bucket(component_id: str = "objects", **parameters: Any) -> Declaration:
    """A bucket."""
    values = {"region": REGION, "compartment": "team", **parameters}
    return _component("Storage.PaaS.OciBucket", component_id, values)
