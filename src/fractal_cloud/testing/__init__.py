"""What every offer must pass, ours and everybody else's: a suite over one offer, one example of it, and a world.

A package that brings offers of its own writes an `OfferExample` for each, and runs every one of
`OfferContract.demands()` over it in a `Product`: a control plane and an agent in one process, over a cloud to try them
on. Who has another world at hand writes an `Environment`. Nothing here knows a cloud or a test runner.
"""

from fractal_cloud.testing.contract import OfferContract
from fractal_cloud.testing.environment import Environment, Write
from fractal_cloud.testing.example import Declaration, Found, Hazard, Obstacle, OfferExample, OperatorActions
from fractal_cloud.testing.product import Product
from fractal_cloud.testing.trial import MINE

__all__ = [
    "MINE",
    "Declaration",
    "Environment",
    "Found",
    "Hazard",
    "Obstacle",
    "OfferContract",
    "OfferExample",
    "OperatorActions",
    "Product",
    "Write",
]
