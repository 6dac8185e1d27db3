"""The whole product in one process, ready for `OfferContract`: a control plane, an agent, and a cloud of your own.

Nothing here is a double: the control plane is the real application on a SQLite file, the agent is the real agent. Only
time is short: a cycle is a fraction of a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.cycle import CycleResult
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.model.wire import Report, Reported
from fractal_cloud.offers.registry import Registry, installed
from fractal_cloud.testing.environment import Environment, Write
from fractal_cloud.testing.example import Declaration
from fractal_cloud.testing.in_process import InProcessClient
from fractal_cloud.testing.tokens import agent_token
from fractal_cloud.testing.watching import Notes, WatchedRegistry

CYCLE: Final = 0.02
PATIENCE: Final = 40
_TOKEN: Final = "admin-of-the-test"


class _Plane(ControlPlane):
    """The way to the control plane: counts reports, and lets a person come in between intents and writes."""

    reports = 0
    after_intents: Callable[[], None] | None = None

    def report(self, report: Report) -> Reported:
        """Publish what changed."""
        self.reports += 1
        answer = super().report(report)
        is_intent = any(entry.outcome is None for scope in report.scopes for entry in scope.journal)
        if is_intent and self.after_intents is not None:
            act, self.after_intents = self.after_intents, None
            act()
        return answer


class Product(Environment):
    """An environment for `OfferContract`: all providers named, with the credentials of this process's environment.

    ``folder``: where the control plane keeps its database. ``forget``: empties the cloud, now and whenever the
    suite starts over. ``slow``: makes whatever is created take that many seconds until it is ready; only examples with
    ``is_slow`` need it. ``registry``: all that is installed here, if not given. ``cycle_seconds`` and
    ``visibility_seconds``: short for a cloud that answers at once; a real one needs time. What offers do is seen at
    their verbs: nothing is asked of the cloud.
    """

    def __init__(
        self,
        folder: Path,
        providers: Sequence[str],
        *,
        forget: Callable[[], None],
        slow: Callable[[float], None] | None = None,
        registry: Registry | None = None,
        cycle_seconds: float = CYCLE,
        visibility_seconds: float = 3 * CYCLE,
    ) -> None:
        self._folder = folder
        self._providers = tuple(providers)
        self._forget = forget
        self._slow = slow
        self._inner = registry or installed()
        self._cycle_seconds = cycle_seconds
        self._visibility_seconds = visibility_seconds
        self._times = 0
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _open(self) -> None:
        self._forget()
        self._times += 1
        self._notes = Notes()
        registry = self._registry = WatchedRegistry(self._inner, self._notes)
        database = f"sqlite:///{self._folder / f'control-{self._times}.db'}"
        app = create_app(ControlSettings(database_url=database, admin_token=_TOKEN, cycle_seconds=self._cycle_seconds))
        self.api = InProcessClient(app, headers={"Authorization": f"Bearer {_TOKEN}"})
        self.api.__enter__()
        self._token = agent_token(self.api, providers=self._providers)
        self._plane = _Plane("http://testserver", self._token, client=self.api)
        self.agent = self._started(registry)

    def _started(self, registry: Registry) -> Agent:
        settings = AgentSettings(
            providers=self._providers,
            cycle_seconds=self._cycle_seconds,
            token=self._token,
            visibility_seconds=self._visibility_seconds,
        )
        agent = Agent(settings, self._plane, registry)
        agent.run_once()  # it registers: from now on the control plane knows the types
        return agent

    def restart_agent(self) -> None:
        """End the agent, and start another one that knows nothing."""
        self.agent.close()
        self._plane.release(self.agent.settings.agent_id)
        self.agent = self._started(self._registry)

    def close(self) -> None:
        """End all of it."""
        self.agent.close()
        self.api.__exit__(None, None, None)

    # --- what people do

    def deploy(self, live_system: str, /, *components: Declaration) -> str:
        """Deploy a LiveSystem; returns the mutation's id."""
        body = {"id": live_system, "components": list(components)}
        answer = self.api.put(f"/livesystems/{live_system}", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["mutationId"])

    def delete(self, live_system: str, /) -> None:
        """Delete a LiveSystem."""
        answer = self.api.delete(f"/livesystems/{live_system}")
        assert answer.status_code == 202, answer.text

    def force_push(self, live_system: str, component: str, /) -> None:
        """Ask for a Force Push of one component."""
        answer = self.api.post(f"/livesystems/{live_system}/components/{component}/force-push")
        assert answer.status_code == 202, answer.text

    def glass(self, live_system: str, component: str, action: str, /) -> None:
        """Break the glass of one component, or hand it back."""
        answer = self.api.post(f"/livesystems/{live_system}/components/{component}/glass", json={"action": action})
        assert answer.status_code == 202, answer.text

    def transfer(self, live_system: str, component: str, to: str, /) -> None:
        """Ask for another owner of a component's resource; what is refused at once is not asked for."""
        answer = self.api.post(f"/livesystems/{live_system}/components/{component}/transfer", json={"to": to})
        assert answer.status_code in (202, 409), answer.text

    # --- what the agent does

    def cycle(self) -> list[CycleResult]:
        """Let the agent run one settled cycle."""
        time.sleep(self._cycle_seconds * 1.05)
        return self.agent.run_once()

    def settle(self) -> None:
        """Let the agent run until nothing is left to do."""
        for _ in range(PATIENCE):
            if all(result.settled for result in self.cycle()):
                return
        raise AssertionError(f"not settled after {PATIENCE} cycles; written so far: {self._notes.writes}")

    # --- what can be seen

    def find_component(self, live_system: str, component: str) -> dict[str, Any] | None:
        """A component as the API shows it; None where there is none (any more)."""
        answer = self.api.get(f"/livesystems/{live_system}/components/{component}")
        if answer.status_code == 404:
            return None
        found: dict[str, Any] = answer.json()
        return None if found["status"] == "Deleted" else found

    def writes(self) -> list[Write]:
        """All writes of the agent so far, oldest first."""
        return list(self._notes.writes)

    def publications(self) -> int:
        """How often the agent has reported anything to the control plane."""
        return self._plane.reports

    def assert_safe(self) -> None:
        """Raise if the agent made a call that the protocol forbids."""
        assert not self._notes.violations, "\n".join(self._notes.violations)

    # --- what gets in between

    def before_next_write(self, act: Callable[[], None]) -> None:
        """Do something once, after the agent has decided on its next write and before the guard reads (S16)."""
        self._plane.after_intents = act

    def before_next_call(self, act: Callable[[], None]) -> None:
        """Do something once, after the guard has read and right before the writing call: only a precondition helps."""
        self._notes.before_call = act

    @contextmanager
    def slow_creation(self, seconds: float) -> Iterator[None]:
        """While inside: what is created takes that long until it is ready."""
        assert self._slow is not None, "the example takes time: give Product a function `slow` that makes it so"
        self._slow(seconds)
        try:
            yield
        finally:
            self._slow(0.0)

    def start_over(self) -> None:
        """Throw everything away: an empty cloud, an empty control plane, a new agent."""
        self.close()
        self._open()
