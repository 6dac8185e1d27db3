"""The settings of an agent, as it is started with."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from fractal_cloud.agent.realms_file import Realms
from fractal_cloud.rules.setbacks import Limits


def _agent_id() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Everything that can be set for an agent.

    ``concurrency``: cloud calls under way at once. ``sweep_budget``: calls per service and cycle for parameters that a
    cloud returns only one by one (S23). ``visibility_seconds``: the least time a creation whose answer was lost is
    waited for (S17). ``setback_cycles``: a value of ours that was set back three times within so many cycles is
    given up (S27). ``sealing_key``: 32 bytes in base64; without it the agent makes one, and keeps it (A5).
    ``state_dir``: where it keeps that, and which event of the control plane it has seen last (C9); None for nowhere.
    ``ca_file``: certificates of authorities that are trusted besides the usual ones, where it speaks https.
    ``call_seconds``: after how long a call to a cloud that makes no progress is given up (S24). ``secrets_file``: which
    secret is which, and whose; without it, ``secrets_dir`` and environment variables count (A8). ``realms``: what is
    reached by a file of realms, by provider; of other providers, whatever their credentials open.
    """

    url: str = "http://127.0.0.1:8600"
    token: str = ""
    ca_file: str = ""
    environment: str = "default"
    providers: tuple[str, ...] = ()
    cycle_seconds: float = 180.0
    concurrency: int = 16
    sweep_budget: int = 100
    visibility_seconds: float = 10.0
    setback_cycles: int = 10
    call_seconds: float = 120.0
    sealing_key: str = field(default="", repr=False)
    state_dir: Path | None = None
    secrets_file: Path | None = None
    secrets_dir: Path | None = None
    realms: Realms = field(default_factory=dict)
    agent_id: str = field(default_factory=_agent_id)

    @property
    def cycle(self) -> timedelta:
        """One settled cycle."""
        return timedelta(seconds=self.cycle_seconds)

    @property
    def visibility(self) -> timedelta:
        """How long a creation whose answer was lost may stay invisible: two cycles, and no less than is set."""
        return max(2 * self.cycle, timedelta(seconds=self.visibility_seconds))

    def limits(self, seconds: float = 0.0) -> Limits:
        """When a value that somebody sets back is given up; ``seconds``: how long the last cycle took.

        An agent that is slow has fewer cycles in the same time, and a fight is counted over cycles (S27).
        """
        limits = Limits.of(self.setback_cycles, self.cycle, self.visibility)
        of_its_cycles = self.setback_cycles * (self.cycle + timedelta(seconds=seconds))
        return replace(limits, span=max(limits.span, of_its_cycles))
