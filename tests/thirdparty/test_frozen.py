"""A type whose tags are frozen, held to the contract in the world that third parties have for it: `Product`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fractal_cloud.offers.aruba.cloud_server import ArubaCloudServer
from fractal_cloud.offers.registry import installed
from fractal_cloud.testing import OfferContract, Product
from fractal_sandbox import Sandbox, agent_env
from tests.offers.aruba.operator_actions import example_of
from tests.offers.aruba.person import ArubaPerson

# Those that break the glass: where tags are frozen, they go another way.
DEMANDS = (
    "lets_a_person_win_before_an_update",
    "lets_a_person_win_before_a_deletion",
    "breaks_the_glass_and_is_handed_back",
    "says_truly_that_its_tags_are_frozen",
    "remembers_who_took_it_over_where_no_tag_can_say_it",
)


@pytest.fixture(scope="module")
def contract(session_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfferContract]:
    folder = tmp_path_factory.mktemp("product")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in agent_env(session_sandbox.url, folder).items():
            patch.setenv(name, value)
        with Product(folder, ["aruba"], forget=session_sandbox.aruba.reset) as product:
            example = example_of(ArubaCloudServer, ArubaPerson(session_sandbox.url))
            yield OfferContract(installed()[ArubaCloudServer.type], example, product)


@pytest.mark.rule("G13", "S16", "L16")
@pytest.mark.xdist_group("frozen tags in Product")
@pytest.mark.parametrize("demand", DEMANDS)
def test_a_type_with_frozen_tags_keeps_the_contract_by_the_products_own_way(
    contract: OfferContract, demand: str
) -> None:
    getattr(contract, demand)()
