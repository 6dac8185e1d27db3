"""What clouds of the sandbox that speak JSON over HTTP have in common; a vendor's own rules stand in its folder."""

from fractal_sandbox.rest.cloud import RestCloud
from fractal_sandbox.rest.kinds import Body, Kind, Phase, Place
from fractal_sandbox.rest.routes import ANY, READING, Reply, Request, Route, Routes
from fractal_sandbox.rest.store import Draft, Refused, Store

__all__ = [
    "ANY",
    "READING",
    "Body",
    "Draft",
    "Kind",
    "Phase",
    "Place",
    "Refused",
    "Reply",
    "Request",
    "RestCloud",
    "Route",
    "Routes",
    "Store",
]
