"""What is declared is compared in the spelling of its type, however it was written."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.agent.spelling import Spelling
from fractal_cloud.model.component import Component
from fractal_cloud.offers.aws.ecs_service import AwsEcsService
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.aws.security_group import AwsSecurityGroup
from fractal_cloud.offers.aws.vpc import AwsVpc
from fractal_cloud.offers.registry import installed

_OLD_RULE = {"status": "Enabled", "prefix": "a/", "expiration": {"days": 1, "expiredObjectDeleteMarker": None}}


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("component", "written", "compared"),
    [
        (
            AwsEcsService,
            {"capacityProviderStrategy": [{"capacityProvider": "FARGATE"}]},
            {"capacityProviderStrategy": [{"capacityProvider": "FARGATE", "weight": 0, "base": 0}]},
        ),
        (
            AwsS3,
            {"lifecycleRules": [_OLD_RULE], "logging": {"targetBucket": "logs-a"}, "versioning": "Enabled"},
            {
                "lifecycleRules": [{"status": "Enabled", "filter": {"prefix": "a/"}, "expiration": {"days": 1}}],
                "logging": {"targetBucket": "logs-a", "targetPrefix": ""},
                "versioning": "Enabled",
            },
        ),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_value_is_compared_in_the_one_spelling(
    component: type[Component], written: dict[str, Any], compared: dict[str, Any]
) -> None:
    spelling = Spelling(component)
    assert spelling.changes(written)
    assert spelling.of(written) == compared
    assert spelling.of(compared) == compared


def test_what_is_not_known_yet_stays_as_it_is_written() -> None:
    written = {"ingress": [{"ipProtocol": {"$output": "a.b"}}]}
    assert Spelling(AwsSecurityGroup).of(written) == written


def test_a_type_without_a_spelling_of_its_own_costs_nothing() -> None:
    assert not Spelling(AwsVpc).changes({"cidrBlock": "10.0.0.0/16"})


def test_every_installed_type_has_a_spelling_that_can_be_asked() -> None:
    for offer in installed().of_provider("aws"):
        assert Spelling(offer.component).of({}) == {}
