"""A world whose agent can be ended at any effect, and which an offer's contract can be tried in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.main import Agent
from fractal_cloud.testing import Write
from fractal_sandbox import Sandbox, agent_env
from tests import aws_rights
from tests.faults.effects import Effects, GatedPlane, Killed, gate
from tests.world import World

CYCLE = 0.02
W = TypeVar("W", bound="FaultyWorld")


class FaultyWorld(World):
    """The whole product in one process; whoever is killed in it is followed by an agent that knows nothing of it.

    ``tags_follow``: its cloud takes no tags in a create call, so that a creation may be let go half-way (S17).
    """

    tags_follow: bool = False

    def __init__(self, sandbox: Sandbox, folder: Path, effects: Effects, **settings: Any) -> None:
        self.effects = effects
        self._databases = 0
        super().__init__(sandbox, folder, **{"cycle_seconds": CYCLE, **settings})

    def start_agent(self, control: Callable[[ControlPlane], ControlPlane] | None = None) -> Agent:
        def gated(_: ControlPlane) -> ControlPlane:
            plane = GatedPlane("http://testserver", self.agent_token, client=self.api)
            plane.effects = self.effects
            return plane

        return super().start_agent(control or gated)

    def survive(self, at_most: int = 30) -> int:
        """Cycles until nothing is left to do, with a new agent for every one that dies; how many died."""
        deaths = 0
        for _ in range(at_most):
            try:
                results = self.cycle()
            except Killed:
                deaths += 1
                self.effects.revive()
                self.restart_agent()
                continue
            if all(result.settled for result in results):
                return deaths
        raise AssertionError(f"not settled after {at_most} cycles: {self._said()}; effects: {self.effects.occurred}")

    def _said(self) -> str:
        """What every component says of itself."""
        names = [one["id"] for one in self.api.get("/livesystems").json()["items"]]
        pages = [self.api.get(f"/livesystems/{name}/components").json()["items"] for name in names]
        return "; ".join(f"{c['componentId']} {c['status']} ({c['message']})" for page in pages for c in page)

    def settle(self, at_most: int = 30) -> int:
        """The cycle that leaves nothing to do is enough here: that the next one is silent is a demand of its own."""
        return self.survive(at_most)

    def assert_silent(self) -> None:
        """LIVENESS: everything has come to rest, so that a cycle writes nothing to anybody (S20)."""
        results = self.cycle()
        assert not any(result.writes or result.changes for result in results), results

    # --- what a contract asks of its environment

    def find_component(self, live_system: str, component: str) -> dict[str, Any] | None:
        response = self.api.get(f"/livesystems/{live_system}/components/{component}")
        if response.status_code == 404:
            return None
        found: dict[str, Any] = response.json()
        return None if found["status"] == "Deleted" else found

    def writes(self) -> list[Write]:
        calls = self.cloud.calls.find(actor="agent", writes_only=True)
        return [
            Write(one.origin.live_system, one.origin.component, one.origin.reason, f"{one.service}:{one.operation}")
            for one in calls
            if one.effect
        ]

    def publications(self) -> int:
        return self.effects.reports

    def before_next_write(self, act: Callable[[], None]) -> None:
        self.effects.after_next_intents(act)

    @contextmanager
    def slow_creation(self, seconds: float) -> Iterator[None]:
        knob = self.cloud.knobs.slow_creation(seconds=seconds)
        try:
            yield
        finally:
            self.cloud.knobs.remove(knob)

    def start_over(self) -> None:
        self.close()
        self.cloud.reset()
        self.prepare_cloud()
        self.effects.arm()
        self._databases += 1
        self.open_control_plane(f"control-{self._databases}.db")

    def prepare_cloud(self) -> None:
        """Give the agent the rights that are printed for it, where the cloud knows rights."""
        if self.cloud is self.sandbox.aws:
            aws_rights.limit(self.sandbox)


@contextmanager
def faulty_world(sandbox: Sandbox, folder: Path, kind: type[W], **settings: Any) -> Iterator[W]:
    """A world over a sandbox that was reset, with the agent's credentials in the environment and its printed rights."""
    sandbox.aws.reset()
    aws_rights.limit(sandbox)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in agent_env(sandbox.url).items():
            patch.setenv(name, value)
        effects = Effects(sandbox.aws.knobs)
        gate(patch, effects)
        made = kind(sandbox, folder, effects, **settings)
        try:
            yield made
        finally:
            made.close()
