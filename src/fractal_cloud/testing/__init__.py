"""What every offer must pass, ours and everybody else's: a suite over one offer, one example of it, and a world.

A package that brings offers of its own writes an `OfferExample` for each, an `Environment` (a control plane, an agent
and a cloud to try them on), and runs `OfferContract` over them. Nothing here knows a cloud or a test runner.
"""

from fractal_cloud.testing.contract import OfferContract
from fractal_cloud.testing.environment import Environment, Write
from fractal_cloud.testing.example import Declaration, Found, Hands, Hazard, Obstacle, OfferExample

__all__ = [
    "Declaration",
    "Environment",
    "Found",
    "Hands",
    "Hazard",
    "Obstacle",
    "OfferContract",
    "OfferExample",
    "Write",
]
