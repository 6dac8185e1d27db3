"""The contract of offers over types of AWS that cover every shape, by examples made of their schemas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.offers.registry import installed
from fractal_cloud.testing import OfferContract
from fractal_sandbox import Sandbox
from tests.faults.worlds import FaultyWorld, faulty_world
from tests.offers.aws_resources.sampling import SAMPLE, example_of

QUICK = ("AWS::AppConfig::ConfigurationProfile",)


class GenericWorld(FaultyWorld):
    """A world whose agent may do anything, and in which what generated values refer to need not be there."""

    def prepare_cloud(self) -> None:
        self.sandbox.aws.lift_limits()
        self.cloud.knobs.checks_references = False


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[GenericWorld]:
    with faulty_world(session_sandbox, tmp_path, GenericWorld) as made:
        made.prepare_cloud()
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
    assert broken == {}
