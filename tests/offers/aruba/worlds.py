"""The whole product over the sandbox's Aruba Cloud, with a person in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fractal_sandbox import Sandbox
from tests.faults.effects import Effects
from tests.offers.aruba.person import ArubaPerson
from tests.offers.worlds import ProviderWorld


class ArubaWorld(ProviderWorld):
    """A world whose agent serves the sandbox's projects. ``project``: the one its person works in."""

    providers = ("aruba",)
    cloud_name = "aruba"

    def __init__(
        self, sandbox: Sandbox, folder: Path, effects: Effects, project: str = "team", **settings: Any
    ) -> None:
        self.aruba = ArubaPerson(sandbox.url, project)
        super().__init__(sandbox, folder, effects, **settings)
