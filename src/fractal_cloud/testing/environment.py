"""The world an offer is tried in: a control plane, an agent, and a cloud that lists what was written to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from fractal_cloud.testing.example import Declaration


@dataclass(frozen=True, slots=True)
class Write:
    """One write of the agent that reached the cloud and had its effect."""

    live_system: str
    component: str
    reason: str
    operation: str


class Environment(Protocol):
    """A small world. A cycle here is short; what a real one takes minutes for happens in moments."""

    def deploy(self, live_system: str, /, *components: Declaration) -> Any:
        """Deploy a LiveSystem; raises if the declaration is refused."""

    def delete(self, live_system: str, /) -> Any:
        """Delete a LiveSystem."""

    def force_push(self, live_system: str, component: str, /) -> Any:
        """Ask for a Force Push of one component."""

    def glass(self, live_system: str, component: str, action: str, /) -> Any:
        """Break the glass of one component through the product (``break``), or hand it back (``readopt``)."""

    def transfer(self, live_system: str, component: str, to: str, /) -> Any:
        """Ask for another owner of a component's resource."""

    def find_component(self, live_system: str, component: str) -> dict[str, Any] | None:
        """A component as the API shows it; None where there is none (any more)."""

    def cycle(self) -> Any:
        """Let the agent run one settled cycle."""

    def settle(self) -> Any:
        """Let the agent run until a cycle does nothing and has nothing left to do; raises if that takes too long."""

    def restart_agent(self) -> Any:
        """Have the agent die, and another one take its place that knows nothing but what the control plane sends."""

    def writes(self) -> Sequence[Write]:
        """All writes of the agent so far, oldest first."""

    def publications(self) -> int:
        """How often the agent has reported anything to the control plane."""

    def before_next_write(self, act: Callable[[], None]) -> None:
        """Do something once, after the agent has decided on its next write and before the guard reads (S16)."""

    def slow_creation(self, seconds: float) -> AbstractContextManager[None]:
        """While inside: what is created takes that long until it is ready."""

    def start_over(self) -> None:
        """Throw everything away: an empty cloud, an empty control plane, a new agent."""

    def assert_safe(self) -> None:
        """Raise if the cloud saw a write that the protocol forbids."""
