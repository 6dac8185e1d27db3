"""An agent's life: introduce itself, claim scopes, run their cycles, answer plans, sleep until woken, let go.

It decides which scope is due. What can be reached is in ``reaching``, what is leased in ``leases``; a cycle is run by
``cycle_runner``, and what the control plane asks beside is answered by ``plan_answers``.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import replace
from datetime import datetime

import structlog

from fractal_cloud import __version__
from fractal_cloud.agent.backoff import CONTROL_PLANE
from fractal_cloud.agent.client import ControlPlane, ControlPlaneRefuses, ControlPlaneUnreachable, LeaseLost
from fractal_cloud.agent.clock import Clock
from fractal_cloud.agent.cycle import CycleResult
from fractal_cloud.agent.cycle_runner import CycleRunner, result_of, wait_for_any
from fractal_cloud.agent.cycle_state import CycleContext
from fractal_cloud.agent.deadline import moment
from fractal_cloud.agent.gc_freeze import Heap
from fractal_cloud.agent.last_seen import LastSeenFile
from fractal_cloud.agent.learning import Learner
from fractal_cloud.agent.leases import LeasedScope, Leases
from fractal_cloud.agent.plan_answers import PlanAnswers
from fractal_cloud.agent.reaching import Reachability
from fractal_cloud.agent.reading import Reader
from fractal_cloud.agent.sealing_key_file import SealingKeyFile
from fractal_cloud.agent.secrets import DigestKey, Secrets
from fractal_cloud.agent.served_types import ServedTypes
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.agent.watchdog import DaemonPool, Watchdog
from fractal_cloud.agent.watching import Watcher
from fractal_cloud.model.wire import (
    Claim,
    LastSeen,
    Registration,
    Report,
    ScopeReport,
    Wait,
    Woken,
)
from fractal_cloud.offers.registry import Registry, installed
from fractal_cloud.offers.secret_stores import SecretSource

log = structlog.get_logger()

SCOPES_AT_ONCE = 8
PLANS_AT_ONCE = 4
LONGEST_WAIT = 45.0
SHORTEST_POLL = 0.05
"""For less time than this, in seconds, no news of the control plane is asked for."""
READ_NEWS_SECONDS = 1.0
"""The least time, in seconds, before a heartbeat that reports a read for which the control plane waits (C11)."""
STOP_SECONDS = 8.0
"""How long, in seconds, an agent that is to stop waits for its cycles; what hangs is left behind (S24)."""
LAST_CALL_SECONDS = 5.0
"""How long, in seconds, a call may make no progress once the agent is to stop."""


class Agent:
    """One agent. ``run`` lives until ``stop`` is called; ``step`` is one round of it.

    ``heap``: the objects of this process, where the agent has it to itself.
    """

    def __init__(
        self,
        settings: AgentSettings,
        control: ControlPlane,
        registry: Registry | None = None,
        heap: Heap | None = None,
    ) -> None:
        self.settings = settings
        self._control = control
        self._registry = registry or installed(*sorted(settings.providers))
        self._clock = Clock()
        self._sealing = SealingKeyFile(settings)
        self._has_withdrawn_key = False
        self._stopping = threading.Event()
        self._is_gone = threading.Event()
        self._wake = 0
        self._registered = False
        self._seen = LastSeenFile(settings.state_dir, settings.url)
        self._last_beat = 0.0
        self._alarm = threading.Event()
        self._poll: Future[Woken] | None = None
        self._watchdog = Watchdog(settings.call_seconds)
        self._polls = DaemonPool(1, "news")
        self._calls = DaemonPool(settings.concurrency, "cloud")
        self._cycles = DaemonPool(SCOPES_AT_ONCE, "scope")
        self._plans = DaemonPool(PLANS_AT_ONCE, "plan")
        self._types = ServedTypes(self._registry, settings.providers, self._watchdog)
        learner = Learner(self._types, self._watchdog, settings.cycle_seconds)
        self._context = self._cycle_context()
        self._reachable = Reachability(settings, self._registry, self._watchdog, self._calls, self._stopping)
        self._runner = CycleRunner(self._reachable, learner, settings.cycle_seconds)
        self._answers = PlanAnswers(control, self._reachable, learner)
        watcher = Watcher(self._reachable.session_of, self._types, self._watchdog, self._alarm.set)
        self._leases = Leases(self._reachable.hold, watcher, self._types)
        self._heap = heap

    def _cycle_context(self) -> CycleContext:
        return CycleContext(
            settings=self.settings,
            watchdog=self._watchdog,
            offers=self._types,
            reader=Reader(self._types, self._calls, self.settings.sweep_budget),
            pool=self._calls,
            publisher=self,
            handlers=self._registry.handlers,
            sealing=self._sealing.key,
            secrets=self._secrets(),
            now=self._clock.now,
            may_write=self._may_write,
        )

    def _secrets(self) -> Secrets:
        settings = self.settings
        source = SecretSource(settings.agent_id, settings.secrets_file, settings.secrets_dir)
        return Secrets(source.resolve, DigestKey.in_folder(settings.state_dir), self._watchdog, self._calls)

    # --- the loop

    def run(self) -> None:
        """Work until ``stop`` is called; a control plane or a cloud that does not answer is waited for."""
        failures = 0
        while not self._stopping.is_set():
            try:
                self.step()
                failures = 0
            except (ControlPlaneUnreachable, ControlPlaneRefuses, LeaseLost) as error:
                failures += 1
                delay = CONTROL_PLANE.delay(failures).total_seconds()
                if isinstance(error, ControlPlaneUnreachable):
                    log.warning("control plane unreachable", error=str(error), again_in=round(delay, 1))
                else:
                    log.error("control plane refuses", error=str(error), again_in=round(delay, 1))
                    self._registered = False
                self._stopping.wait(delay)
        self._let_go()

    def stop(self) -> None:
        """End cleanly: writes under way are finished, no new one begins, scopes are given back."""
        self._stopping.set()
        self._alarm.set()

    def close(self) -> None:
        """End without a request to the control plane: threads are let go, leases run out by themselves."""
        self._stopping.set()
        self._leases.end_watches()
        self._watchdog.hurry(LAST_CALL_SECONDS)
        self._cycles.shutdown(wait=True, cancel_futures=True)
        self._calls.shutdown(wait=True, cancel_futures=True)
        self._polls.shutdown(wait=False, cancel_futures=True)
        self._plans.shutdown(wait=False, cancel_futures=True)
        self._watchdog.close()

    def _let_go(self) -> None:
        """End what runs, as far as it ends in time, and give all scopes back."""
        self._watchdog.hurry(LAST_CALL_SECONDS)
        self._polls.shutdown(wait=False, cancel_futures=True)
        left_behind = wait_for(self._leases.running(), STOP_SECONDS).not_done
        self._is_gone.set()  # before the scopes are given back: whoever gets them is alone
        if left_behind:
            log.warning("cycles left behind: a call did not return", count=len(left_behind))
        self._leases.close()
        for pool in (self._cycles, self._calls, self._plans):
            pool.shutdown(wait=False, cancel_futures=True)
        self._watchdog.close()
        try:
            self._control.release(self.settings.agent_id)
        except (ControlPlaneUnreachable, ControlPlaneRefuses, LeaseLost) as error:
            log.warning("scopes not given back", error=str(error))

    def step(self) -> None:
        """One round: register if need be, send a heartbeat, claim, start what is due, wait."""
        if not self._registered:
            self._register()
        self._search()
        self._replace_withdrawn_key()
        self._beat_if_due()
        self._claim()
        self._start_due()
        self._collect()
        self._wait()

    def run_once(self) -> list[CycleResult]:
        """One cycle of every scope, in this thread, due or not (for tests and one-shot runs)."""
        if not self._registered:
            self._register()
        self._beat()
        self._claim()
        if self._reachable.has_news:
            self._introduce()
            self._claim()
        if self._has_withdrawn_key:
            self._replace_withdrawn_key()
            self._claim()
        if self._reachable.is_incomplete:
            if self._reachable.search_now():
                self._introduce()
            self._claim()
        results = [self._run_cycle(leased) for leased in list(self._leases.scopes.values())]
        self._reachable.is_other_realm |= any(result.is_elsewhere for result in results)
        return results

    # --- introducing itself

    def _register(self) -> None:
        self._reachable.apply(self._reachable.ask_all())
        if not self._reachable.reaches and self.settings.providers:
            names = ", ".join(self.settings.providers)
            raise ControlPlaneUnreachable(f"none of {names} can be reached with these credentials")
        self._introduce()

    def _introduce(self) -> None:
        catalog = self._registry.catalog()
        reaches = list(self._reachable.reaches.values())
        asked = moment()
        answer = self._control.register(
            Registration(
                agent_id=self.settings.agent_id,
                environment=self.settings.environment,
                reaches=reaches,
                types=[catalog[name] for name in self._types],
                families=[family.name for family in self._types.families],
                cycle_seconds=self.settings.cycle_seconds,
                version=__version__,
                public_key=self._sealing.key.public,
                last_seen=self._seen.value,
            )
        )
        self._adopt_incarnation(answer.last_seen)
        self._clock.set(answer.now)
        self._leases.seconds = answer.lease_seconds
        for key in self._leases.running_scopes():
            self._leases.lose(key)  # a registration takes all leases back
        self._leases.renew(asked)
        self._registered = True
        self._reachable.has_news = False
        self._reachable.is_other_realm = bool(answer.others)
        for other in answer.others:
            log.warning("another realm is reached: it must be accepted", provider=other.provider, realm=other.realm)
        for reach in answer.waiting:
            advice = f"fractal agent approve {self.settings.agent_id}"
            log.warning("waits for approval", provider=reach.provider, realm=reach.realm, approve=advice)
        if answer.others:
            self._reachable.search_later()
        named = [f"{r.provider}/{r.realm}" + (f" ({r.name})" if r.name else "") for r in reaches]
        log.info("registered", agent=self.settings.agent_id, reaches=named)

    def _adopt_incarnation(self, seen: LastSeen) -> None:
        """Remember the newest event; nothing that another incarnation of the database reported may be used (C9)."""
        before = self._seen.value
        self._seen.keep(seen)
        if before is not None and before.incarnation != seen.incarnation:
            log.warning("the control plane has another database than before, or a restored one", known=before.event)
            self._reachable.forget_hosts()
            for key in list(self._leases.scopes):
                self._leases.lose(key)

    def _known_event(self) -> LastSeen:
        """The newest event that this agent knows of: part of every request after its registration."""
        seen = self._seen.value
        assert seen is not None, "only an agent that registered speaks"
        return seen

    def _search(self) -> None:
        """Search for what could not be reached, beside everything else; what is found is registered.

        A registration takes all leases back. So it waits until no cycle runs, and none begins before it.
        """
        self._reachable.search(self._plans, self._alarm.set)
        if self._reachable.has_news and not self._leases.running():
            self._introduce()

    def _replace_withdrawn_key(self) -> None:
        """Make a new sealing key in the place of a withdrawn one, and register with it; not while a cycle runs."""
        if not self._has_withdrawn_key or self._leases.running():
            return
        self._has_withdrawn_key = False
        if self._sealing.replace_withdrawn():
            self._context = replace(self._context, sealing=self._sealing.key)
            self._introduce()

    # --- leases

    def _claim(self) -> None:
        claimed = self._control.claim(
            Claim(
                agent_id=self.settings.agent_id,
                last_seen=self._known_event(),
                held=self._leases.versions(),
                hosts=self._reachable.hosts.number,
                unreached=self._reachable.unreached,
            )
        )
        self._seen.keep(claimed.last_seen)
        self._clock.set(claimed.now)
        self._wake = claimed.wake
        if claimed.hosts is not None:
            self._reachable.set_hosts(claimed.hosts)
        self._leases.apply(claimed.leases)
        self._reachable.has_news |= claimed.register_again
        self._has_withdrawn_key = claimed.key_withdrawn and self._sealing.is_replaceable
        self._give_back(claimed.asked_back)
        for task in claimed.plans:
            self._plans.submit(self._answers.answer, task, self._context)

    def _give_back(self, asked_back: list[str]) -> None:
        """Give scopes beyond the share back, those in which no cycle runs; the others are asked for again."""
        idle = self._leases.drop_idle(asked_back)
        if idle:
            self._control.release(self.settings.agent_id, idle)
            log.info("scopes given back", count=len(idle), held=len(self._leases.scopes))

    @property
    def _next_beat(self) -> float:
        interval = min(self.settings.cycle_seconds, self._leases.beat_interval)
        return self._last_beat + (min(interval, READ_NEWS_SECONDS) if self._leases.has_awaited_read else interval)

    def _beat_if_due(self) -> None:
        if time.monotonic() >= self._next_beat:
            self._beat()

    def _beat(self) -> None:
        asked, begun = moment(), time.monotonic()
        said = self._leases.heartbeat(self.settings.agent_id, self._known_event())
        beat = self._control.heartbeat(said)
        self._clock.set(beat.now)
        self._last_beat = begun
        self._leases.note_reported(said, has_stale=beat.has_stale)
        self._leases.lose_all(beat.lost)
        # Last: what was lost meanwhile must not be written to again because the agent itself is alive.
        self._leases.renew(asked)

    def _may_write(self) -> bool:
        """Whether the leases certainly still hold: asked right before every write to a cloud."""
        return not self._leases.deadline.has_passed() and not self._stopping.is_set()

    # --- cycles

    def _start_due(self) -> None:
        if self._reachable.has_news or self._has_withdrawn_key:
            return
        now = time.monotonic()
        for leased in self._leases.scopes.values():
            if leased.running is None and leased.next_cycle <= now and not self._stopping.is_set():
                leased.begun = now
                leased.watch.woken.clear()
                leased.running = self._cycles.submit(self._run_cycle, leased)

    def _run_cycle(self, leased: LeasedScope) -> CycleResult:
        return self._runner.run(leased.held, self._context)

    def _collect(self) -> None:
        """Collect the results of the cycles that have ended."""
        for leased in self._leases.scopes.values():
            if leased.running is None or leased.is_running:
                continue
            running, leased.running = leased.running, None
            result = result_of(running)
            leased.due = time.monotonic() + result.again_in
            if result.is_elsewhere and not self._reachable.is_other_realm:
                self._reachable.is_other_realm = True
                self._reachable.search_soon()  # which one it is must be registered

    # --- waiting

    def _wait(self) -> None:
        """Wait for the next thing to do: the end of a cycle while one runs, else news, a watch, or the time."""
        running = self._leases.running()
        if running:
            wait_for_any(running, 0.5)
            self._collect()
            return
        if self._heap is not None:
            self._heap.freeze(sum(len(leased.held.work.tracked) for leased in self._leases.scopes.values()))
        seconds = self._idle_seconds()
        if self._stopping.is_set():
            return
        if seconds < SHORTEST_POLL:
            self._stopping.wait(seconds)
        else:
            self._sleep(seconds)

    def _idle_seconds(self) -> float:
        """How long there is nothing to do: until the next cycle, heartbeat or search, and not for too long."""
        now = time.monotonic()
        due = [leased.next_cycle for leased in self._leases.scopes.values()] or [now + self.settings.cycle_seconds]
        due.append(self._next_beat)
        next_search = self._reachable.next_search(now)
        if next_search is not None:
            due.append(next_search)
        longest = min(LONGEST_WAIT, self._leases.seconds / 4)
        return min(max(0.0, min(due) - now), longest)

    def _sleep(self, seconds: float) -> None:
        """Wait for news of the control plane, for a watch of a scope, or until the time is over.

        News is waited for in a thread of its own; that goes on while this one has been woken by somebody else, or is
        to stop.
        """
        if self._poll is None:
            asked = Wait(agent_id=self.settings.agent_id, wake=self._wake, seconds=seconds)
            self._poll = self._polls.submit(self._control.wait, asked)
            self._poll.add_done_callback(lambda _: self._alarm.set())
        self._alarm.wait(seconds)
        self._alarm.clear()
        if self._poll.done():
            poll, self._poll = self._poll, None
            self._wake = poll.result().wake

    # --- publishing

    def publish(self, report: ScopeReport) -> datetime:
        """Publish what changed in a scope; a cycle that was left behind publishes nothing."""
        if self._is_gone.is_set():
            raise LeaseLost("this agent has let its scopes go")
        sent = Report(agent_id=self.settings.agent_id, last_seen=self._known_event(), scopes=[report])
        return self._control.report(sent).at


def run(settings: AgentSettings, on_ready: Callable[[], None] | None = None) -> None:
    """Run an agent in this process until SIGTERM or SIGINT; ``RegistrationError`` where a type contradicts itself."""
    with ControlPlane(settings.url, settings.token, ca_file=settings.ca_file) as control:
        agent = Agent(settings, control, heap=Heap())
        for number in (signal.SIGTERM, signal.SIGINT):
            # In a thread of its own: a handler runs in the middle of whatever the main one holds just then.
            signal.signal(number, lambda *_: threading.Thread(target=agent.stop, daemon=True).start())
        if on_ready is not None:
            on_ready()
        agent.run()


__all__ = ["Agent", "AgentSettings", "run"]
