"""The whole product over the sandbox's Hetzner project, with an agent that may be ended at any effect, and a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers import rest
from fractal_cloud.offers.hetzner.cloud import HetznerClient
from fractal_cloud.offers.rest import Answer, Call
from fractal_sandbox import Sandbox
from tests.faults.effects import Effects
from tests.offers.hetzner.person import HetznerPerson
from tests.offers.worlds import ProviderWorld, provider_world

_send = HetznerClient.send


class HetznerWorld(ProviderWorld):
    """A world whose agent serves the project of the sandbox."""

    providers = ("hetzner",)
    cloud_name = "hetzner"

    def __init__(self, sandbox: Sandbox, folder: Path, effects: Effects, **settings: Any) -> None:
        self.hetzner = HetznerPerson(sandbox.url)
        super().__init__(sandbox, folder, effects, **settings)


def through_the_client(patch: pytest.MonkeyPatch, effects: Effects) -> None:
    """Have every writing call of an agent in this process counted as an effect; reads are tried again at once."""

    def send(client: HetznerClient, call: Call) -> Answer:
        if call.is_read:
            return _send(client, call)
        name = f"{call.method} {call.path.rsplit('/', 1)[-1]}"
        answer: Answer = effects.write(name, lambda: _send(client, call))
        return answer

    patch.setattr(HetznerClient, "send", send)
    patch.setattr(rest, "READ_BACKOFF", (0.0, 0.0))


@contextmanager
def hetzner_world(sandbox: Sandbox, folder: Path, **settings: Any) -> Iterator[HetznerWorld]:
    """A world over a project that was reset."""
    with provider_world(sandbox, folder, HetznerWorld, through_the_client, **settings) as made:
        yield made
