"""The contract of offers over types of AWS that cover every shape: by examples by hand, and made of their schemas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.offers.registry import installed
from fractal_cloud.testing import OfferContract
from fractal_sandbox import Sandbox
from tests.offers.aws_resources.sampling import SAMPLE, example_of, pairs, usable
from tests.offers.aws_resources.worlds import GenericWorld, generic_world

QUICK = ("AWS::AppConfig::ConfigurationProfile",)
MOST = 60
_SHOWN = 600


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[GenericWorld]:
    with generic_world(session_sandbox, tmp_path) as made:
        yield made


@pytest.mark.timeout(400)
@pytest.mark.rule("T1", "T2", "S4", "S12", "S16", "S17", "S18", "S20", "G1", "G10", "G13", "G15", "O8", "O10", "O12")
@pytest.mark.parametrize("name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.soak) for one in SAMPLE])
def test_a_type_keeps_the_contract(world: GenericWorld, name: str) -> None:
    contract = OfferContract(installed()[name], example_of(name, world.person), world)
    broken: dict[str, str] = {}
    for demand in OfferContract.demands():
        try:
            getattr(contract, demand)()
        except AssertionError as error:
            broken[demand] = str(error)
    assert not broken, "\n".join(f"{demand}: {why[:_SHOWN]}" for demand, why in broken.items())


def test_the_sample_has_every_two_traits_that_any_type_has_at_once() -> None:
    assert len(set(SAMPLE)) == MOST
    missing = pairs(usable()) - pairs(SAMPLE)
    assert not missing, sorted(sorted(map(str, two)) for two in missing)
