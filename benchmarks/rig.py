"""An agent's cycle on a bench: the real cycle, reader and offers, with a ledger in the place of the control plane."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from benchmarks.stock import REGION, Declared, Lot
from fractal_cloud.agent.cycle import Cycle, CycleResult
from fractal_cloud.agent.cycle_state import CycleContext
from fractal_cloud.agent.gc_freeze import Heap
from fractal_cloud.agent.reading import Reader
from fractal_cloud.agent.realms import confirmation
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.observed import CARRIED, STAMPED, Observed, Override
from fractal_cloud.model.wire import ComponentChange, KnownResource, ScopeReport, ScopeWork
from fractal_cloud.offers.offer import Session
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.secret import SealingKey
from fractal_sandbox.aws import AGENT_ACCESS_KEY


class Canned:
    """The cloud of canned pages, in a process of its own, seen from here."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def stock(self, lots: list[Lot], latency: float = 0.0) -> None:
        """Fill it anew; all calls so far are forgotten."""
        self._post("stock", {"lots": [[lot.kind, lot.count, lot.per_live_system] for lot in lots], "latency": latency})

    def calls(self) -> dict[str, int]:
        """The calls by operation since this was last asked."""
        return self._post("calls", {})

    def touch(self) -> None:
        """Let a person change one VPC in a hundred, on every page."""
        self._post("touch", {})

    def moments(self) -> tuple[float, float]:
        """When the first and the last writing call came since it was filled."""
        moments = self._post("moments", {})
        return moments["first"], moments["last"]

    def _post(self, what: str, content: Any) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.url}/_canned/{what}", json.dumps(content).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            answered: dict[str, Any] = json.load(answer)
            return answered


@contextmanager
def canned_cloud() -> Iterator[Canned]:
    """Start the cloud, and point everything in this process and its children at it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.canned"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        canned = Canned(int(process.stdout.readline()))
        with pointed_at(canned.url):
            yield canned
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


@contextmanager
def pointed_at(url: str) -> Iterator[None]:
    """Let the AWS SDK of this process and its children find one endpoint, and credentials that open nothing else."""
    settings = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": AGENT_ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": "benchmark",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


class Counting:
    """A control plane that only counts what is published: what an agent's process holds is then the agent's own."""

    def __init__(self) -> None:
        self.publications = 0

    def publish(self, report: ScopeReport) -> datetime:
        """Take in one report."""
        del report
        self.publications += 1
        return datetime.now(UTC)


class Ledger(Counting):
    """The smallest control plane there is: it remembers what is published, and can hand it out again."""

    def __init__(self, work: ScopeWork) -> None:
        super().__init__()
        self._work = work
        self._components = {component.uid: component for component in work.components}
        self._resources: dict[str, KnownResource] = {}

    def publish(self, report: ScopeReport) -> datetime:
        """Take in one report."""
        now = super().publish(report)
        for change in report.changes:
            component = self._components[change.uid]
            component.memory = _remembered(component.memory, change, now)
        self._resources.update((resource.identity, resource) for resource in report.resources)
        return now

    def work(self) -> ScopeWork:
        """The scope's work as an agent that starts now would get it."""
        return self._work.model_copy(update={"resources": list(self._resources.values())})


def _remembered(before: Observed, change: ComponentChange, now: datetime) -> Observed:
    known: dict[str, Any] = {name: getattr(change, name) for name in CARRIED}
    for since, flag in STAMPED.items():
        known[since] = (getattr(before, since) or now) if getattr(change, flag) else None
    return Observed(**known, override=(before.override or Override(since=now)) if change.overridden else None)


def _cycle_context(control: Counting, pool: ThreadPoolExecutor) -> CycleContext:
    settings, registry = AgentSettings(providers=("aws",)), installed("aws")
    watchdog = Watchdog(settings.call_seconds)
    offers = {offer.type: OfferFacts(offer, watchdog) for offer in registry.of_provider("aws")}
    reader = Reader(offers, pool, settings.sweep_budget)
    return CycleContext(
        settings=settings,
        watchdog=watchdog,
        offers=offers,
        reader=reader,
        pool=pool,
        publisher=control,
        handlers=registry.handlers,
        sealing=SealingKey(),
        now=lambda: datetime.now(UTC),
        may_write=lambda: True,
    )


class Bench:
    """One agent's scope, and the means to run its cycles one by one; ``beside``: another scope of the same agent."""

    def __init__(
        self,
        work: ScopeWork,
        control: Counting | None = None,
        session: Session | None = None,
        beside: Bench | None = None,
        concurrency: int | None = None,
    ) -> None:
        self.control: Counting = control or (beside.control if beside else Counting())
        threads = concurrency or AgentSettings().concurrency
        self.pool: ThreadPoolExecutor = beside.pool if beside else ThreadPoolExecutor(threads)
        self.context: CycleContext = beside.context if beside else _cycle_context(self.control, self.pool)
        self.heap: Heap = beside.heap if beside else Heap()
        scope = Scope.from_key(work.scope)
        if session is None:
            session = installed("aws").provider("aws").connect()
            assert session.realms() == {"": scope.realm}
        self.held = HeldScope(scope, session.at(scope), confirmation(session, scope, "", "default"))
        self.claim(work)

    def claim(self, work: ScopeWork) -> None:
        """Take work in, as an agent that claimed it does."""
        self.held.apply(work, self.context.offers)

    def cycle(self) -> CycleResult:
        """Run one cycle."""
        return Cycle(self.held, self.context).run()

    def settle(self, at_most: int = 6) -> None:
        """Run cycles until one changes nothing, and the scope is quiet."""
        for _ in range(at_most):
            result = self.cycle()
            if self.held.work.is_quiet and not result.changes:
                self.heap.freeze(len(self.held.work.tracked))
                return
        raise RuntimeError(f"not at rest after {at_most} cycles: {self._complaint()}")

    def _complaint(self) -> str:
        found = {(t.memory.status.value, t.memory.message) for t in self.held.work.tracked.values()}
        return "; ".join(f"{status}: {message}" for status, message in sorted(found)[:3])

    def close(self) -> None:
        """Let the threads go."""
        self.pool.shutdown()


@contextmanager
def bench(work: ScopeWork, control: Counting | None = None, concurrency: int | None = None) -> Iterator[Bench]:
    """A bench that is cleared away afterwards; ``concurrency``: other than the agent's default."""
    made = Bench(work, control, concurrency=concurrency)
    try:
        yield made
    finally:
        made.close()


def settled_work(declared: Declared) -> ScopeWork:
    """The work of a scope at rest, as the control plane would hand it to an agent that starts now."""
    work = declared.work(settled=True)
    ledger = Ledger(work)
    with bench(work, ledger) as made:
        made.cycle()  # publishes everything there is to remember
    return ledger.work()
