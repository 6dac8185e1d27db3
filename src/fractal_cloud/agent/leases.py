"""The scopes that an agent leases, and until when: what a claim brings, what is lost, what is given back.

Requests to the control plane are the agent's (``main``); what happens in a scope is the cycle's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from fractal_cloud.agent.cycle import CycleResult
from fractal_cloud.agent.deadline import Deadline, Moment
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.agent.watching import Watch, Watcher
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.wire import Heartbeat, LastSeen, Lease

log = structlog.get_logger()

MIN_WATCH_INTERVAL = 2.0
"""The least time, in seconds, between the beginnings of two cycles of a scope that a watch may bring about."""


@dataclass(slots=True)
class LeasedScope:
    """One leased scope: what is known of it, when its next cycle is due, the one that is running, and its watch.

    ``reported_read``: the last read that a heartbeat reported.
    """

    held: HeldScope
    due: float = 0.0
    running: Future[CycleResult] | None = None
    begun: float = 0.0
    watch: Watch = field(default_factory=Watch)
    reported_read: datetime | None = None

    @property
    def is_running(self) -> bool:
        """Whether a cycle of it has not ended yet."""
        return self.running is not None and not self.running.done()

    @property
    def next_cycle(self) -> float:
        """When the next cycle begins: sooner where a watch reported a change, but not again and again."""
        return min(self.due, self.begun + MIN_WATCH_INTERVAL) if self.watch.woken.is_set() else self.due


class Leases:
    """All leases of one agent. ``hold`` makes what is kept of a scope that nothing is known of yet."""

    def __init__(self, hold: Callable[[Scope], HeldScope], watcher: Watcher, offers: Mapping[str, OfferFacts]) -> None:
        self.scopes: dict[str, LeasedScope] = {}
        self.seconds = 10.0
        self.deadline = Deadline()
        self._awaits_reads = False
        self._hold = hold
        self._watcher = watcher
        self._offers = offers

    # --- how long they hold

    def renew(self, asked: Moment) -> None:
        """Count all leases anew from before the request was sent that renewed them."""
        self.deadline.renew(asked, self.seconds)

    def note_reported(self, beat: Heartbeat, *, has_stale: bool) -> None:
        """A heartbeat reported these reads; ``has_stale``: some scopes still count as unread."""
        self._awaits_reads = has_stale
        for key, read_at in beat.read_at.items():
            if key in self.scopes:
                self.scopes[key].reported_read = read_at

    @property
    def has_awaited_read(self) -> bool:
        """Whether a scope was read that the control plane takes for unread: the first time, or after a while (C11)."""
        return any(
            leased.held.observed.read_at not in (None, leased.reported_read)
            and (self._awaits_reads or leased.reported_read is None)
            for leased in self.scopes.values()
        )

    @property
    def beat_interval(self) -> float:
        """The most time, in seconds, between two heartbeats that keep the leases."""
        return self.seconds / 3

    # --- what the control plane is asked

    def versions(self) -> dict[str, int]:
        """The version of its work that is known of each scope."""
        return {key: leased.held.work.version for key, leased in self.scopes.items()}

    def heartbeat(self, agent_id: str, last_seen: LastSeen) -> Heartbeat:
        """What the agent reports of its scopes to keep them."""
        held = {key: leased.held for key, leased in self.scopes.items()}
        return Heartbeat(
            agent_id=agent_id,
            last_seen=last_seen,
            held={key: one.token for key, one in held.items()},
            read_at={key: one.observed.read_at for key, one in held.items() if one.observed.read_at is not None},
            swept_since={key: since for key, one in held.items() if (since := one.observed.swept_since) is not None},
            cycles={key: one.observed.cycle() for key, one in held.items() if one.observed.read_at is not None},
        )

    # --- what the control plane answers

    def apply(self, leases: Iterable[Lease]) -> None:
        """Apply the answer to a claim: all leases of this agent, each with what changed of its work."""
        by_scope = {lease.scope: lease for lease in leases}
        self.lose_all([key for key in self.scopes if key not in by_scope])
        for lease in by_scope.values():
            self._apply_one(lease)

    def _apply_one(self, lease: Lease) -> None:
        if self._was_lost_meanwhile(lease):
            self.lose(lease.scope)
        leased = self.scopes.get(lease.scope)
        if leased is None:
            if lease.work is None:
                return  # all of its work is asked for in the next claim
            leased = self.scopes[lease.scope] = LeasedScope(self._hold(Scope.from_key(lease.scope)))
        if leased.is_running:
            return  # its work is asked for again when the cycle is over
        leased.held.token = lease.token
        if lease.work is not None:
            leased.held.apply(lease.work, self._offers)
            leased.due = 0.0
            self._watcher.begin(leased.watch, leased.held)

    def _was_lost_meanwhile(self, lease: Lease) -> bool:
        """Whether a scope was another agent's in between, so that nothing that is known of it may be used."""
        leased = self.scopes.get(lease.scope)
        if leased is None or leased.held.token in (0, lease.token):
            return False
        return leased.running is not None or lease.work is None

    def lose_all(self, keys: Iterable[str]) -> None:
        """Lose those of the scopes that are leased."""
        for key in keys:
            if key in self.scopes:
                log.warning("scope lost", scope=key)
                self.lose(key)

    def lose(self, key: str) -> None:
        """Drop a scope that is no longer this agent's: a cycle that still runs in it writes nothing any more."""
        leased = self.scopes.pop(key)
        leased.held.is_lost = True
        self._watcher.end(leased.watch, leased.held)

    def drop_idle(self, keys: Iterable[str]) -> list[str]:
        """Drop those of the scopes in which no cycle runs, to give them back; returns which.

        They are dropped before the control plane is asked: whoever gets them is alone in them.
        """
        idle = [key for key in keys if key in self.scopes and self.scopes[key].running is None]
        for key in idle:
            self.lose(key)
        return idle

    # --- cycles

    def running(self) -> list[Future[CycleResult]]:
        """The cycles that were begun and whose results were not collected yet."""
        return [leased.running for leased in self.scopes.values() if leased.running is not None]

    def running_scopes(self) -> list[str]:
        """The scopes of these cycles."""
        return [key for key, leased in self.scopes.items() if leased.running is not None]

    def close(self) -> None:
        """End all writing and all watches; the leases are not given back."""
        for leased in self.scopes.values():
            leased.held.is_lost = True
        self.end_watches()

    def end_watches(self) -> None:
        """End the watches of all scopes."""
        for leased in self.scopes.values():
            self._watcher.end(leased.watch, leased.held)
