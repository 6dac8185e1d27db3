"""Every state that a vendor's contract knows of a machine has a meaning, and one that it does not know has none.

The states are those of the vendors' own contracts: botocore's `InstanceStateName`, Azure's instance view and
`provisioningState`, Google's discovery document (`Instance.status`), OCI's `Instance.LIFECYCLE_STATE_*`, hcloud's
`Server.STATUS_*`, vSphere's `VirtualMachinePowerState`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.aws import ec2
from fractal_cloud.offers.azure import vm as azure
from fractal_cloud.offers.gcp import vm as google
from fractal_cloud.offers.hetzner import server as hetzner
from fractal_cloud.offers.oci import instance as oci
from fractal_cloud.offers.vsphere import vm as vsphere

# The vendor's states of a machine that is there. `terminated` is a dead remain, which counts as absent.
CONTRACTS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "aws": (ec2._STATES, "pending running shutting-down stopping stopped"),
    "azure": (azure._POWER, "starting running stopping stopped deallocating deallocated"),
    "gcp": (
        google._STATES,
        (
            "DEPROVISIONING PENDING PENDING_STOP PROVISIONING REPAIRING RUNNING STAGING STOPPED STOPPING SUSPENDED "
            "SUSPENDING TERMINATED"
        ),
    ),
    "oci": (oci._STATES, "MOVING PROVISIONING RUNNING STARTING STOPPING STOPPED CREATING_IMAGE TERMINATING"),
    "hetzner": (hetzner._STATES, "running initializing starting stopping off deleting migrating rebuilding"),
    "vsphere": (vsphere._STATES, "poweredOff poweredOn suspended"),
}


@pytest.mark.rule("S13")
@pytest.mark.parametrize("provider", CONTRACTS)
def test_every_state_of_the_vendors_contract_has_a_meaning(provider: str) -> None:
    known, contract = CONTRACTS[provider]
    assert sorted(known) == sorted(contract.split())


@pytest.mark.rule("S13", "S0")
def test_only_states_in_which_the_vendor_is_not_at_work_are_settled() -> None:
    conditions = {
        provider: {state: found[1] if isinstance(found, tuple) else found for state, found in known.items()}
        for provider, (known, _) in CONTRACTS.items()
        if provider != "vsphere"
    }
    settled = {state for known in conditions.values() for state, found in known.items() if found is Condition.SETTLED}
    assert settled == {
        *("running", "stopped", "deallocated", "off"),
        *("RUNNING", "STOPPED", "SUSPENDED", "TERMINATED"),
    }


@pytest.mark.rule("S0")
@pytest.mark.parametrize("status", ["unknown", "brand-new"])
def test_a_state_that_is_not_known_says_nothing_of_whether_it_runs(status: str) -> None:
    item = {
        "id": 1,
        "name": "web",
        "status": status,
        "server_type": {"name": "cx23"},
        "location": {"name": "fsn1"},
        "created": "2026-01-01T00:00:00Z",
        "labels": {},
    }
    seen = hetzner.HetznerServerOffer().seen(item)
    assert "state" not in seen.actual
    assert seen.condition is Condition.CHANGING
