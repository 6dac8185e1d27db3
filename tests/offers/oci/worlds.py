"""The whole product over the sandbox's Oracle Cloud, with a person in it."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.environment import without_real_clouds
from tests.faults.effects import Effects
from tests.offers.oci.person import OciPerson
from tests.offers.oci.rights import printed_rights
from tests.offers.worlds import ProviderWorld


class OciWorld(ProviderWorld):
    """A world whose agent serves the sandbox's tenancy; every write carries an etag, so nothing is ever lost (S16)."""

    providers = ("oci",)
    cloud_name = "oci"
    is_atomic = True

    @classmethod
    def rights(cls, sandbox: Sandbox) -> AbstractContextManager[None]:
        """As they are printed."""
        return printed_rights(sandbox)

    def __init__(self, sandbox: Sandbox, folder: Path, effects: Effects, **settings: Any) -> None:
        self.oci = OciPerson(sandbox.url, folder)
        super().__init__(sandbox, folder, effects, **settings)


def alone(patch: pytest.MonkeyPatch) -> None:
    """Take everything out of the environment that could lead to a real tenancy."""
    for name in set(os.environ) - set(without_real_clouds(os.environ)):
        patch.delenv(name)
