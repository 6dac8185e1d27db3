"""The generator of values that proofs over all types rest on: it leaves no type out, and repeats itself."""

from __future__ import annotations

from fractal_cloud.offers.aws.resources import types
from tests.conftest import SOAK
from tests.offers.aws_resources.generating import Values

SOME = 6
"""Every so many types here: the proof that no shape is drift makes a value of every one, and fails without."""


def test_a_usable_type_has_a_value_that_fits_its_schema() -> None:
    names = types.names() if SOAK else types.names()[::SOME]
    sizes = [len(Values(name).properties()) for name in names]
    assert sum(sizes) > 3 * len(sizes), "values say something"


def test_the_same_seed_makes_the_same_value_and_another_seed_another() -> None:
    first = Values("AWS::ECS::Service", seed=1).properties()
    assert Values("AWS::ECS::Service", seed=1).properties() == first
    assert Values("AWS::ECS::Service", seed=2).properties() != first


def test_another_value_of_a_property_differs_from_the_first() -> None:
    values = Values("AWS::SQS::Queue", seed=3, full=1.0)
    made = values.properties()
    assert values.another("DelaySeconds", made["DelaySeconds"]) != made["DelaySeconds"]
