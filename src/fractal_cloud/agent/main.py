"""An agent's life: introduce itself, claim scopes, run their cycles, answer plans, sleep until woken, let go.

Which scope is due is decided here; what happens in it is the cycle's business.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import structlog

from fractal_cloud.agent.backoff import CONTROL_PLANE, searching
from fractal_cloud.agent.client import ControlPlane, ControlPlaneRefuses, ControlPlaneUnreachable, LeaseLost
from fractal_cloud.agent.cycle import Cycle, CycleContext, CycleResult
from fractal_cloud.agent.deadline import Deadline, Moment, moment
from fractal_cloud.agent.evaluator import OfferFacts
from fractal_cloud.agent.gc_freeze import Heap
from fractal_cloud.agent.isolation import read_safely
from fractal_cloud.agent.last_seen import LastSeenFile
from fractal_cloud.agent.planning import plan
from fractal_cloud.agent.reading import Reader
from fractal_cloud.agent.realms import confirmation
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.agent.watchdog import Beat, DaemonPool, Watchdog
from fractal_cloud.model.errors import CloudError, RegistrationError, Unreadable
from fractal_cloud.model.host import ANY_HOST
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.wire import (
    Claim,
    Claimed,
    Heartbeat,
    Hosts,
    LastSeen,
    PlanTask,
    Reach,
    Registration,
    Report,
    ScopeReport,
    Wait,
    Woken,
)
from fractal_cloud.offers.offer import Cloud, Session
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.offers.registry import Registry, installed
from fractal_cloud.offers.secret import SealingKey
from fractal_cloud.offers.type_validation import type_errors

log = structlog.get_logger()

T = TypeVar("T")
SCOPES_AT_ONCE = 8
PLANS_AT_ONCE = 4
LONGEST_WAIT = 45.0
MIN_WATCH_INTERVAL = 2.0
"""The least time, in seconds, between the beginnings of two cycles of a scope that a watch may bring about."""
SEARCH_POLL_SECONDS = 0.2
"""How long, in seconds, an agent sleeps at most while it tries to reach something."""


REACH_SECONDS = 30.0
"""How long, in seconds, a provider may take at most to say what can be reached there."""
WATCH_SECONDS = 2.0
"""How long, in seconds, a session may take at most to begin or to end watching: the agent's own loop waits for it."""
STOP_SECONDS = 8.0
"""How long, in seconds, an agent that was told to stop waits for its cycles; what hangs is left behind (S24)."""
LAST_CALL_SECONDS = 5.0
"""How long, in seconds, a call may make no progress once the agent was told to stop."""


class Clock:
    """The control plane's time, kept with this machine's steady clock between two answers."""

    def __init__(self, here: Callable[[], Moment] = moment) -> None:
        self._here = here
        at = here()
        self._offset = at.wall - at.steady

    def set(self, now: datetime) -> None:
        """The control plane said what time it is."""
        self._offset = now.timestamp() - self._here().steady

    def now(self) -> datetime:
        """What time it is at the control plane."""
        return datetime.fromtimestamp(self._offset + self._here().steady, UTC)


class NotConnected(Cloud):
    """Stands for the cloud of a scope to which a session could not connect: nothing of it can be read (S24)."""

    def __init__(self, scope: Scope, why: str = "it is not connected to yet") -> None:
        self.scope = scope
        self._why = why

    def __getattr__(self, name: str) -> Any:
        raise Unreadable(f"the scope cannot be reached: {self._why}")


@dataclass(slots=True)
class _Turn:
    """When a scope is due, the cycle that is running for it, if any, and who watches it between two cycles.

    ``woken``: something changed in the scope; set by whoever watches it, from any thread.
    """

    held: HeldScope
    due: float = 0.0
    running: Future[CycleResult] | None = None
    begun: float = 0.0
    woken: threading.Event = field(default_factory=threading.Event)
    watched: frozenset[str] = frozenset()
    unwatch: Callable[[], None] | None = None


@dataclass(slots=True)
class _Reached:
    """What could be reached, by provider and name, and whether that is all that was to be reached.

    ``unreached``: the hosts that could not, each with the reason.
    """

    reaches: dict[tuple[str, str], Reach] = field(default_factory=dict)
    is_complete: bool = True
    unreached: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Search:
    """The search for what could not be reached: when to try again, the try under way, news not yet registered."""

    due: float | None = None
    found: Future[_Reached] | None = None
    is_news: bool = False
    is_about_hosts: bool = False


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
        self._sealing = SealingKey.from_text(settings.sealing_key) if settings.sealing_key else SealingKey()
        self._stopping = threading.Event()
        self._is_gone = threading.Event()
        self._sessions: dict[str, Session] = {}
        self._reaches: dict[tuple[str, str], Reach] = {}
        self._search = _Search()
        self._hosts = Hosts(number=0)
        self._unreached: dict[str, str] = {}
        self._is_elsewhere = False
        self._turns: dict[str, _Turn] = {}
        self._wake = 0
        self._deadline = Deadline()
        self._lease_seconds = 10.0
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
        self._context = self._cycle_context()
        self._heap = heap

    def _cycle_context(self) -> CycleContext:
        found = [offer for name in self.settings.providers for offer in self._registry.of_provider(name)]
        faults = type_errors([offer.facts() for offer in found], {})
        if faults:
            raise RegistrationError("; ".join(map(str, faults)))
        offers = {offer.type: OfferFacts(offer, self._watchdog) for offer in found}
        reader = Reader(
            {name: facts.offer for name, facts in offers.items()},
            {name: facts.compared for name, facts in offers.items()},
            self._calls,
            self.settings.sweep_budget,
        )
        return CycleContext(
            settings=self.settings,
            watchdog=self._watchdog,
            offers=offers,
            reader=reader,
            pool=self._calls,
            publisher=self,
            handlers=self._registry.handlers,
            sealing=self._sealing,
            now=self._clock.now,
            may_write=self._may_write,
        )

    # --- the loop

    def run(self) -> None:
        """Work until told to stop; a control plane or a cloud that is not there is waited for."""
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
        """End without a word to anybody: threads are let go, leases run out by themselves."""
        self._stopping.set()
        self._stop_watching()
        self._watchdog.hurry(LAST_CALL_SECONDS)
        self._cycles.shutdown(wait=True, cancel_futures=True)
        self._calls.shutdown(wait=True, cancel_futures=True)
        self._polls.shutdown(wait=False, cancel_futures=True)
        self._plans.shutdown(wait=False, cancel_futures=True)
        self._watchdog.close()

    def _stop_watching(self) -> None:
        for turn in self._turns.values():
            self._unwatch(turn)

    def _unwatch(self, turn: _Turn) -> None:
        """Nobody has to be woken any more; a session that fails or hangs at it keeps nobody waiting (S24)."""
        unwatch, turn.unwatch, turn.watched = turn.unwatch, None, frozenset()
        if unwatch is not None:
            self._try_session("unwatch", turn.held.scope.provider, unwatch)

    def _try_session(
        self, verb: str, provider: str, run: Callable[[], T], late: Callable[[T], None] | None = None
    ) -> T | None:
        """Have a session do something on which nothing depends; None, and a line in the log, where it cannot."""
        try:
            return self._watchdog.call((verb, provider), lambda _: run(), seconds=WATCH_SECONDS, late=late)
        except Exception as error:  # noqa: BLE001  # somebody else's code
            log.warning("session failed", verb=verb, provider=provider, error=describe_unexpected(error))
            return None

    def step(self) -> None:
        """One round: register if need be, say that it lives, claim, start what is due, wait."""
        if not self._registered:
            self._register()
        self._search_on()
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
        if self._search.is_about_hosts or self._unreached or self._is_elsewhere:
            self._search.is_about_hosts = False
            if self._apply_reach(self._reach()):
                self._introduce()
            self._claim()
        results = [self._run_cycle(turn) for turn in list(self._turns.values())]
        self._is_elsewhere = self._is_elsewhere or any(result.is_elsewhere for result in results)
        return results

    def _register(self) -> None:
        self._apply_reach(self._reach())
        if not self._reaches and self.settings.providers:
            names = ", ".join(self.settings.providers)
            raise ControlPlaneUnreachable(f"none of {names} can be reached with these credentials")
        self._introduce()

    def _introduce(self) -> None:
        catalog = self._registry.catalog()
        asked = moment()
        answer = self._control.register(
            Registration(
                agent_id=self.settings.agent_id,
                environment=self.settings.environment,
                reaches=list(self._reaches.values()),
                types=[catalog[name] for name in self._context.offers],
                cycle_seconds=self.settings.cycle_seconds,
                public_key=self._sealing.public,
                last_seen=self._seen.value,
            )
        )
        self._adopt_incarnation(answer.last_seen)
        self._clock.set(answer.now)
        self._lease_seconds = answer.lease_seconds
        for key in [key for key, turn in self._turns.items() if turn.running is not None]:
            self._lose(key)  # a registration takes all leases back
        self._deadline.renew(asked, answer.lease_seconds)
        self._registered = True
        self._is_elsewhere = bool(answer.others)
        for other in answer.others:
            log.warning("another realm is reached: it must be accepted", provider=other.provider, realm=other.realm)
        if self._is_elsewhere:
            self._search_again()
        reaches = [f"{r.provider}/{r.realm}" + (f" ({r.name})" if r.name else "") for r in self._reaches.values()]
        log.info("registered", agent=self.settings.agent_id, reaches=reaches)

    def _adopt_incarnation(self, seen: LastSeen) -> None:
        """Remember what was seen; of another life of the database, nothing that was told before may be used (C9)."""
        before = self._seen.value
        self._seen.keep(seen)
        if before is not None and before.incarnation != seen.incarnation:
            log.warning("the control plane has another database than before, or a restored one", known=before.event)
            self._hosts = self._hosts.model_copy(update={"number": -1})
            for key in list(self._turns):
                self._lose(key)

    def _known_event(self) -> LastSeen:
        """What this agent has seen last: said with everything that it says after it registered."""
        seen = self._seen.value
        assert seen is not None, "only an agent that registered speaks"
        return seen

    def _reach(self) -> _Reached:
        """Ask every provider what can be reached now; what cannot is named in the log, and keeps nobody waiting."""
        found = _Reached()
        names = list(self.settings.providers)
        asked = [self._calls.submit(self._reach_one, name) for name in names]
        for name, one in zip(names, asked, strict=True):
            try:
                session, reaches, missing = self._unless_stopped(one)
            except CloudError as error:
                log.warning("provider cannot be reached", provider=name, error=error.message)
                found.is_complete = False
                continue
            self._sessions[name] = session
            found.reaches.update(reaches)
            for called, why in sorted(missing.items()):
                log.warning("realm cannot be reached: trying again", provider=name, realm=called, error=why)
                found.is_complete = False
                if called.startswith(ANY_HOST):
                    found.unreached[called] = why
        return found

    def _unless_stopped(self, asked: Future[T]) -> T:
        """Wait for something, but not once the agent was told to stop."""
        while not self._stopping.is_set():
            if wait_for([asked], 0.2).done:
                return asked.result()
        raise Unreadable("the agent was told to stop")

    def _reach_one(self, name: str) -> tuple[Session, dict[tuple[str, str], Reach], dict[str, str]]:
        """What one provider's session reaches and what it does not; raises ``CloudError``, whatever goes wrong."""
        known = self._sessions.get(name)

        def ask(_: Beat) -> tuple[Session, dict[tuple[str, str], Reach], dict[str, str]]:
            session = known or self._registry.provider(name).connect()
            realms = dict(session.realms())
            reaches: dict[tuple[str, str], Reach] = {}
            if session.accepts_hosts:
                reaches[name, ANY_HOST] = Reach(provider=name, name=ANY_HOST, realm="")
            reaches.update({(name, c): Reach(provider=name, name=c, realm=r) for c, r in sorted(realms.items())})
            return session, reaches, dict(session.missing())

        return read_safely(self._watchdog, ("reach", name), f"the session of {name!r}", ask, seconds=REACH_SECONDS)

    def _apply_reach(self, found: _Reached) -> bool:
        """Take in what can be reached; True if that is not what it was. What is down for the moment stays known.

        A host that is no longer declared, or no longer where it was, is not: what answers there may be another one.
        """
        known = dict(self._reaches)
        hosts = {(host.provider, host.name) for host in self._hosts.hosts}
        reached = {**known, **found.reaches}
        self._reaches = {
            key: reach
            for key, reach in reached.items()
            if key in hosts or not reach.realm or not reach.name.startswith(ANY_HOST)
        }
        self._unreached = found.unreached
        self._search.due = None
        if not found.is_complete or self._is_elsewhere:
            self._search_again()
        return self._reaches != known

    def _search_again(self) -> None:
        """Ask once more, some time later, what is reached: it may be there then, or the realm that is meant (S26)."""
        self._search.due = time.monotonic() + searching(self.settings.cycle).delay(1).total_seconds()

    def _search_on(self) -> None:
        """Try again what could not be reached, beside everything else; what is found then is registered.

        A registration takes all leases back. So it waits until no cycle runs, and none begins before it.
        """
        search = self._search
        if search.found is None and search.due is not None and time.monotonic() >= search.due:
            search.is_about_hosts = False
            search.found = self._plans.submit(self._reach)
            search.found.add_done_callback(lambda _: self._alarm.set())
        if search.found is not None and search.found.done():
            found, search.found = search.found, None
            search.is_news = self._apply_reach(found.result()) or search.is_news
            if search.is_about_hosts:
                search.due = time.monotonic()  # it was told of more meanwhile
        if search.is_news and all(turn.running is None for turn in self._turns.values()):
            search.is_news = False
            self._introduce()

    def _claim(self) -> None:
        held = {key: turn.held.version for key, turn in self._turns.items()}
        asked = Claim(
            agent_id=self.settings.agent_id,
            last_seen=self._known_event(),
            held=held,
            hosts=self._hosts.number,
            unreached=self._unreached,
        )
        claimed = self._control.claim(asked)
        self._seen.keep(claimed.last_seen)
        self._clock.set(claimed.now)
        self._wake = claimed.wake
        if claimed.hosts is not None:
            self._apply_hosts(claimed.hosts)
        self._apply_leases(claimed)
        self._give_back(claimed.asked_back)
        for task in claimed.plans:
            self._plans.submit(self._answer_plan, task)

    def _apply_hosts(self, told: Hosts) -> None:
        """Hosts were published, or are gone: what is new of them is looked for beside everything else."""
        is_news = told.hosts != self._hosts.hosts
        self._hosts = told
        if not is_news:
            return
        for name, session in self._sessions.items():
            hosts = [host for host in told.hosts if host.provider == name]
            self._try_session("take hosts", name, partial(session.set_hosts, hosts))
        self._search.due = time.monotonic()
        self._search.is_about_hosts = True

    def _apply_leases(self, claimed: Claimed) -> None:
        kept = {lease.scope for lease in claimed.leases}
        for key in [key for key in self._turns if key not in kept]:
            log.warning("scope lost", scope=key)
            self._lose(key)
        for lease in claimed.leases:
            turn = self._turns.get(lease.scope)
            if turn is not None and turn.held.token not in (0, lease.token) and (turn.running or lease.work is None):
                self._lose(lease.scope)  # it was somebody else's in between: nothing known of it may be used
                turn = None
            if turn is None:
                if lease.work is None:
                    continue  # all of its work is asked for in the next claim
                scope = Scope.from_key(lease.scope)
                turn = self._turns[lease.scope] = _Turn(self._hold(scope))
            if turn.running is not None and not turn.running.done():
                continue  # its work is asked for again when the cycle is over
            turn.held.token = lease.token
            if lease.work is not None:
                turn.held.apply(lease.work, self._context.offers)
                turn.due = 0.0
                self._watch(turn)

    def _hold(self, scope: Scope) -> HeldScope:
        """A scope that nothing is known of yet."""
        session = self._sessions[scope.provider]
        names = [r.name for r in self._reaches.values() if (r.provider, r.realm) == (scope.provider, scope.realm)]
        name = next((name for name in sorted(names) if name and not name.startswith(ANY_HOST)), "")
        confirm = confirmation(session, scope, name, self.settings.environment)
        key, what = ("realm", scope.key), f"the session of {scope.provider!r}"
        return HeldScope(
            scope, NotConnected(scope), lambda: read_safely(self._watchdog, key, what, lambda _: confirm())
        )

    def _lose(self, key: str) -> None:
        """A scope is no longer this agent's: a cycle that still runs in it writes nothing any more."""
        turn = self._turns.pop(key)
        turn.held.is_lost = True
        self._unwatch(turn)

    def _give_back(self, asked_back: list[str]) -> None:
        """Give scopes beyond the share back, those in which no cycle runs; the others are asked for again."""
        idle = [key for key in asked_back if key in self._turns and self._turns[key].running is None]
        if not idle:
            return
        for key in idle:
            self._lose(key)  # before it is said: whoever takes it is alone
        self._control.release(self.settings.agent_id, idle)
        log.info("scopes given back", count=len(idle), held=len(self._turns))

    def _watch(self, turn: _Turn) -> None:
        """Have the scope watched for the types that are in it now, where its provider can do that."""
        types = frozenset(tracked.type for tracked in turn.held.tracked.values())
        if types == turn.watched:
            return
        self._unwatch(turn)
        turn.watched = types
        offers = [self._context.offers[component_type].own for component_type in sorted(types)]

        def wake() -> None:
            turn.woken.set()
            self._alarm.set()

        def end(unwatch: Callable[[], None] | None) -> None:
            if unwatch is not None:
                unwatch()  # it was begun too late: nobody waits for it any more

        session, scope = self._sessions[turn.held.scope.provider], turn.held.scope
        turn.unwatch = self._try_session("watch", scope.provider, lambda: session.watch(scope, offers, wake), late=end)

    def _start_due(self) -> None:
        if self._search.is_news:
            return
        now = time.monotonic()
        for turn in self._turns.values():
            if turn.running is None and self._due(turn) <= now and not self._stopping.is_set():
                turn.begun = now
                turn.woken.clear()
                turn.running = self._cycles.submit(self._run_cycle, turn)

    def _due(self, turn: _Turn) -> float:
        """When the next cycle of a scope begins: sooner where it was woken, but not again and again."""
        return min(turn.due, turn.begun + MIN_WATCH_INTERVAL) if turn.woken.is_set() else turn.due

    def _run_cycle(self, turn: _Turn) -> CycleResult:
        held = turn.held
        started = time.monotonic()
        if isinstance(held.cloud, NotConnected):
            held.cloud = self._cloud_of(held.scope)
        try:
            result = Cycle(held, self._context).run()
        except (ControlPlaneUnreachable, LeaseLost) as error:
            # What was published is not known: forget the scope's work and ask for all of it again.
            log.warning("cycle given up", scope=held.scope.key, error=str(error))
            held.version = -1
            held.invalidate()
            return CycleResult(again_in=1.0, settled=False)
        log.debug(
            "cycle",
            scope=held.scope.key,
            seconds=round(time.monotonic() - started, 3),
            writes=result.writes,
            changes=result.changes,
        )
        return result

    def _collect(self) -> None:
        """Take in the cycles that have ended; wait a moment for those that are nearly there."""
        for turn in self._turns.values():
            if turn.running is None or not turn.running.done():
                continue
            running, turn.running = turn.running, None
            result = _result_of(running)
            turn.due = time.monotonic() + result.again_in
            if result.is_elsewhere and not self._is_elsewhere:
                self._is_elsewhere, self._search.due = True, time.monotonic()  # which one it is must be registered

    def _wait(self) -> None:
        running = [turn.running for turn in self._turns.values() if turn.running is not None]
        if running:
            _wait_for_any(running, 0.5)
            self._collect()
            return
        if self._heap is not None:
            self._heap.freeze(sum(len(turn.held.tracked) for turn in self._turns.values()))
        now = time.monotonic()
        next_due = min((self._due(turn) for turn in self._turns.values()), default=now + self.settings.cycle_seconds)
        next_beat = self._last_beat + min(self.settings.cycle_seconds, self._lease_seconds / 3)
        next_search = now + SEARCH_POLL_SECONDS if self._search.found is not None else self._search.due or next_due
        seconds = max(0.0, min(next_due, next_beat, next_search, now + LONGEST_WAIT) - now)
        seconds = min(seconds, self._lease_seconds / 4)
        if self._stopping.is_set():
            return
        if seconds < 0.05:
            self._stopping.wait(seconds)
            return
        self._sleep(seconds)

    def _sleep(self, seconds: float) -> None:
        """Wait for news of the control plane, for whoever watches a scope, or until the time is over.

        News is waited for in a thread of its own; that goes on while this one has been woken by somebody else, or was
        told to stop.
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

    def _beat_if_due(self) -> None:
        due = self._last_beat + min(self.settings.cycle_seconds, self._lease_seconds / 3)
        if time.monotonic() >= due:
            self._beat()

    def _beat(self) -> None:
        asked, begun = moment(), time.monotonic()
        held = {key: turn.held.token for key, turn in self._turns.items()}
        read_at = {k: t.held.read_at for k, t in self._turns.items() if t.held.read_at is not None}
        swept = {k: min(s.at for s in t.held.swept.values()) for k, t in self._turns.items() if t.held.swept}
        beat = self._control.heartbeat(
            Heartbeat(
                agent_id=self.settings.agent_id,
                last_seen=self._known_event(),
                held=held,
                read_at=read_at,
                swept_since=swept,
            )
        )
        self._clock.set(beat.now)
        self._last_beat = begun
        for key in beat.lost:
            if key in self._turns:
                log.warning("scope lost", scope=key)
                self._lose(key)
        # Last: what was lost meanwhile must not be written to again because the agent itself is alive.
        self._deadline.renew(asked, self._lease_seconds)

    def _may_write(self) -> bool:
        """Whether the leases certainly still hold: asked right before every write to a cloud."""
        return not self._deadline.has_passed() and not self._stopping.is_set()

    # --- publishing and planning

    def publish(self, report: ScopeReport) -> datetime:
        """Publish what changed in a scope; a cycle that was left behind publishes nothing."""
        if self._is_gone.is_set():
            raise LeaseLost("this agent has let its scopes go")
        sent = Report(agent_id=self.settings.agent_id, last_seen=self._known_event(), scopes=[report])
        return self._control.report(sent).at

    def _answer_plan(self, task: PlanTask) -> None:
        scope = Scope.from_key(task.work.scope)
        if scope.provider not in self._sessions:
            return
        try:
            held = self._hold(scope)
            held.cloud = self._cloud_of(scope)
            self._control.answer_plan(task.id, plan(task, held, self._context))
        except (ControlPlaneUnreachable, ControlPlaneRefuses, LeaseLost) as error:
            log.warning("plan not answered", plan=task.id, error=str(error))
        except Exception:
            log.exception("plan failed: an error of the agent itself", plan=task.id)

    def _cloud_of(self, scope: Scope) -> Cloud:
        """The cloud of one scope; where its session fails at it, one of which nothing can be read (S24)."""
        session = self._sessions[scope.provider]
        what = f"the session of {scope.provider!r}"
        try:
            return read_safely(self._watchdog, ("at", scope.key), what, lambda _: session.at(scope))
        except CloudError as error:
            log.warning("scope cannot be connected to", scope=scope.key, error=error.message)
            return NotConnected(scope, error.message)

    def _let_go(self) -> None:
        self._watchdog.hurry(LAST_CALL_SECONDS)
        self._polls.shutdown(wait=False, cancel_futures=True)
        running = [turn.running for turn in self._turns.values() if turn.running is not None]
        left_behind = wait_for(running, STOP_SECONDS).not_done
        self._is_gone.set()  # before the scopes are given back: who takes them is alone
        if left_behind:
            log.warning("cycles left behind: a call did not return", count=len(left_behind))
        for turn in self._turns.values():
            turn.held.is_lost = True
        self._stop_watching()
        for crew in (self._cycles, self._calls, self._plans):
            crew.shutdown(wait=False, cancel_futures=True)
        self._watchdog.close()
        try:
            self._control.release(self.settings.agent_id)
        except (ControlPlaneUnreachable, ControlPlaneRefuses, LeaseLost) as error:
            log.warning("scopes not given back", error=str(error))


def _result_of(running: Future[CycleResult]) -> CycleResult:
    error = running.exception()
    if error is not None:
        log.error("cycle failed: a fault of the agent itself", exc_info=error)
        return CycleResult(again_in=5.0, settled=False)
    return running.result()


def _wait_for_any(running: list[Future[CycleResult]], seconds: float) -> None:
    done = threading.Event()
    for future in running:
        future.add_done_callback(lambda _: done.set())
    done.wait(seconds)


def run(settings: AgentSettings, on_ready: Callable[[], None] | None = None) -> None:
    """Run an agent in this process until SIGTERM or SIGINT; ``RegistrationError`` where a type contradicts itself."""
    with ControlPlane(settings.url, settings.token) as control:
        agent = Agent(settings, control, heap=Heap())
        for number in (signal.SIGTERM, signal.SIGINT):
            # In a thread of its own: a handler runs in the middle of whatever the main one holds just then.
            signal.signal(number, lambda *_: threading.Thread(target=agent.stop, daemon=True).start())
        if on_ready is not None:
            on_ready()
        agent.run()


__all__ = ["Agent", "AgentSettings", "run"]
