"""The contract of offers over every kind of the files beside: built in, of definitions, and converted by a webhook.

The quick run takes one of each way of being; the long run, and a real server, take all.
"""

from __future__ import annotations

import pytest

from fractal_cloud.testing import OfferContract
from tests.offers.kubernetes.any_kind.stages import KINDS, Stages, marked, stages

__all__ = ["stages"]

QUICK = ("shop.example/v1/Gauge",)


@pytest.mark.timeout(400)
@pytest.mark.rule("T1", "T2", "S4", "S12", "S16", "S17", "S18", "S20", "G1", "G10", "G15", "O8", "O10", "O12")
@pytest.mark.parametrize("name", marked(KINDS, QUICK))
def test_a_kind_keeps_the_contract(stages: Stages, name: str) -> None:
    with stages(name) as (stage, offer):
        contract = OfferContract(offer, stage.example, stage.world)
        broken: dict[str, str] = {}
        for demand in OfferContract.demands():
            try:
                getattr(contract, demand)()
            except AssertionError as error:
                broken[demand] = str(error)
        assert not broken, "\n".join(f"{demand}: {why}" for demand, why in broken.items())
