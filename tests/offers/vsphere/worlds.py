"""The whole product over the sandbox's vCenter, with an agent that may be ended at any effect, and a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.vsphere.soap import Soap
from fractal_sandbox import Sandbox
from fractal_sandbox.vsphere.cloud import VERSION
from tests.faults.effects import Effects
from tests.offers.vsphere.person import VspherePerson
from tests.offers.worlds import ProviderWorld, provider_world, through_the_door

_write = Soap._write
WITH_TAGS = "9.1.0.0"
"""A version from which on tags travel in the create call."""


class VsphereWorld(ProviderWorld):
    """A world whose agent serves the vCenter of the sandbox."""

    providers = ("vsphere",)
    cloud_name = "vsphere"

    def __init__(self, sandbox: Sandbox, folder: Path, effects: Effects, **settings: Any) -> None:
        self.tags_follow = not sandbox.vsphere.accepts_tags_in_create
        self.vsphere = VspherePerson(sandbox.url)
        super().__init__(sandbox, folder, effects, **settings)

    def start_over(self) -> None:
        self.vsphere.forget()
        super().start_over()


def through_both_doors(patch: pytest.MonkeyPatch, effects: Effects) -> None:
    """Have every writing call counted as an effect, over SOAP as over REST."""
    through_the_door(patch, effects)

    def write(soap: Soap, name: str, call: Callable[[], Any]) -> Any:
        return effects.write(name, lambda: _write(soap, name, call))

    patch.setattr(Soap, "_write", write)


@contextmanager
def vsphere_world(sandbox: Sandbox, folder: Path, version: str = VERSION, **settings: Any) -> Iterator[VsphereWorld]:
    """A world over an empty vCenter of a version."""
    sandbox.vsphere.version = version
    with provider_world(sandbox, folder, VsphereWorld, through_both_doors, **settings) as made:
        yield made
