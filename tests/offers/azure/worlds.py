"""The whole product over the sandbox's Azure: an agent that may be ended at any effect, and a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fractal_sandbox import Sandbox
from tests.faults.effects import Effects
from tests.offers.azure.person import AzurePerson
from tests.offers.worlds import ProviderWorld


class AzureWorld(ProviderWorld):
    """A world whose agent serves Azure."""

    providers = ("azure",)
    cloud_name = "azure"

    def __init__(self, sandbox: Sandbox, folder: Path, effects: Effects, **settings: Any) -> None:
        self.azure = AzurePerson(sandbox.url)
        super().__init__(sandbox, folder, effects, **settings)
