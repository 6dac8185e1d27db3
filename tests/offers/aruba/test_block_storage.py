"""What is peculiar to disks."""

from __future__ import annotations

import pytest

from tests.offers.aruba.declaring import disk
from tests.offers.aruba.worlds import ArubaWorld


@pytest.mark.rule("S0")
def test_a_write_repeats_what_an_update_may_hold_and_nothing_else(world: ArubaWorld) -> None:
    world.deploy("ls-a", disk(dataCenter="ITBG-1"))
    world.settle()
    world.deploy("ls-a", disk(dataCenter="ITBG-1", sizeGb=30))
    world.settle()
    [update] = [one for one in world.cloud.calls.find(writes_only=True) if one.operation.startswith("update")]
    assert set(update.call.parameters["body"]["properties"]) == {"sizeGb", "billingPeriod", "dataCenter"}
