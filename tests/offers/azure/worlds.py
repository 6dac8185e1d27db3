"""The whole product over the sandbox's Azure: an agent that may be ended at any effect, and a person."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from fractal_sandbox import Sandbox
from tests.faults.effects import Effects
from tests.offers.azure.person import AzurePerson
from tests.offers.azure.rights import printed_rights
from tests.offers.worlds import ProviderWorld


class AzureWorld(ProviderWorld):
    """A world whose agent serves Azure."""

    providers = ("azure",)
    cloud_name = "azure"

    @classmethod
    def rights(cls, sandbox: Sandbox) -> AbstractContextManager[None]:
        """As they are printed."""
        return printed_rights(sandbox)

    def __init__(self, sandbox: Sandbox, folder: Path, effects: Effects, **settings: Any) -> None:
        self.azure = AzurePerson(sandbox.url)
        super().__init__(sandbox, folder, effects, **settings)
