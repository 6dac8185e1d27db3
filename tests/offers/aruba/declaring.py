"""Components of Aruba Cloud as people declare them, for tests."""

from __future__ import annotations

from typing import Any

from tests.offers.aruba.examples import LOCATION

Declaration = dict[str, Any]


def _component(kind: str, component_id: str, parameters: Declaration) -> Declaration:
    return {"id": component_id, "type": kind, "provider": "aruba", "parameters": parameters}


def vpc(component_id: str = "main-net", **parameters: Any) -> Declaration:
    """A VPC."""
    values = {"location": LOCATION, "project": "team", **parameters}
    return _component("NetworkAndCompute.IaaS.ArubaVpc", component_id, values)


def disk(component_id: str = "disk", **parameters: Any) -> Declaration:
    """A disk."""
    values = {"location": LOCATION, "project": "team", "sizeGb": 20, "billingPeriod": "Hour", **parameters}
    return _component("Storage.IaaS.ArubaBlockStorage", component_id, values)
