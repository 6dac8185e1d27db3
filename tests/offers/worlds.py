"""The whole product over one cloud of the sandbox, with an agent that may be ended at any effect.

For clouds that are reached through ``offers.rest``; a provider with an SDK of its own passes its own ``gate``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fractal_cloud.offers import rest
from fractal_cloud.offers.rest import Answer, Call, RestClient
from fractal_sandbox import Sandbox, agent_env
from tests.faults.effects import Effects
from tests.faults.worlds import FaultyWorld

W = TypeVar("W", bound="ProviderWorld")
Gate = Callable[[pytest.MonkeyPatch, Effects], None]
_send = RestClient.send


class ProviderWorld(FaultyWorld):
    """A world whose agent serves one provider. ``cloud_name``: the sandbox's name of its cloud.

    ``is_atomic``: every write carries a precondition, so that there are no lost races either (S16).
    """

    cloud_name: str
    is_atomic: bool = False

    @classmethod
    def rights(cls, sandbox: Sandbox) -> AbstractContextManager[None]:
        """Put in force what is printed for the agent, where the sandbox knows which right a call needs (A7)."""
        del sandbox
        return nullcontext()

    @property
    def cloud(self) -> Any:
        return getattr(self.sandbox, self.cloud_name)

    def assert_safe(self) -> None:
        """SAFETY: no violation, ever; where every write is guarded, no lost race."""
        monitor = self.cloud.monitor
        assert not monitor.violations, "\n".join(map(str, monitor.violations))
        if self.is_atomic:
            assert not monitor.lost_races, "\n".join(map(str, monitor.lost_races))


def through_the_door(patch: pytest.MonkeyPatch, effects: Effects) -> None:
    """Have every writing call that goes through ``offers.rest`` counted as an effect; reads are tried once."""

    def send(client: RestClient, call: Call) -> Answer:
        if call.is_read:
            return _send(client, call)
        name = f"{call.method} {call.path.partition('?')[0].rsplit('/', 1)[-1]}"
        answer: Answer = effects.write(name, lambda: _send(client, call))
        return answer

    patch.setattr(RestClient, "send", send)
    patch.setattr(rest, "READ_BACKOFF", (0.0, 0.0))


@contextmanager
def provider_world(
    sandbox: Sandbox, folder: Path, kind: type[W], gate: Gate = through_the_door, **settings: Any
) -> Iterator[W]:
    """A world over a cloud that was reset, with the agent's credentials in the environment."""
    cloud: Any = getattr(sandbox, kind.cloud_name)
    cloud.reset()
    with pytest.MonkeyPatch.context() as patch, kind.rights(sandbox):
        for name, value in agent_env(sandbox.url, folder).items():
            patch.setenv(name, value)
        effects = Effects(cloud.knobs)
        gate(patch, effects)
        made = kind(sandbox, folder, effects, **settings)
        try:
            yield made
        finally:
            made.close()
