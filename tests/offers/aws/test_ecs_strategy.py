"""ECS services with a strategy of capacity providers, which stands in the place of a launch type: the same contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fractal_cloud.offers.aws.ecs_service import AwsEcsService
from fractal_cloud.offers.registry import installed
from fractal_cloud.testing import OfferContract
from fractal_sandbox import Sandbox
from tests.offers.suites import kinds

# Weight and base are 0 where they are not given: AWS returns both.
STRATEGY = [{"capacityProvider": "FARGATE_SPOT", "weight": 3}, {"capacityProvider": "FARGATE", "base": 1}]
OTHER = [{"capacityProvider": "FARGATE", "weight": 1}]


@pytest.fixture(scope="module")
def contract(session_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfferContract]:
    suite, kind = kinds()[AwsEcsService.__name__]
    with suite.stage(session_sandbox, tmp_path_factory.mktemp("strategy"), kind) as stage:
        *parents, service = stage.example.components
        parameters = {name: value for name, value in service["parameters"].items() if name != "launchType"}
        declared = {**service, "parameters": {**parameters, "capacityProviderStrategy": STRATEGY}}
        example = replace(
            stage.example,
            components=[*parents, declared],
            changes={"capacityProviderStrategy": OTHER},
            immutable_changes={},
        )
        yield OfferContract(installed()[AwsEcsService.type], example, stage.world)


@pytest.mark.rule("S17", "S20")
def test_it_is_created_with_its_strategy_and_is_silent_then(contract: OfferContract) -> None:
    contract.creates_exactly_one_with_its_tags_in_the_call()
    contract.is_silent_once_settled()


@pytest.mark.rule("S12")
def test_a_strategy_comes_back_and_is_changed_in_place(contract: OfferContract) -> None:
    contract.brings_every_parameter_back()
    contract.carries_out_every_change()
