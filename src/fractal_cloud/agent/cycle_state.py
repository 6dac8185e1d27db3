"""What the phases of one cycle share: the scope, the agent's means, and what is collected for the report.

The phases are in ``observing``, ``waves``, ``outcomes`` and ``conclusions``; their order is in ``cycle``. Nothing is
read, decided or written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import datetime

from fractal_cloud.agent.deadline import steady
from fractal_cloud.agent.errors import WriteErrors
from fractal_cloud.agent.evaluator import Evaluator
from fractal_cloud.agent.link_handlers import LinkHandlers
from fractal_cloud.agent.link_reconciler import LinkReconciler
from fractal_cloud.agent.lookups import remembered
from fractal_cloud.agent.reading import Reader, Snapshot
from fractal_cloud.agent.report_builder import Publisher, ReportBuilder
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.secrets import CycleSecrets, Secrets
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.link import Handlers
from fractal_cloud.offers.offer import AnyOffer
from fractal_cloud.offers.secret import SealingKey


@dataclass(frozen=True, slots=True)
class CycleContext:
    """What cycles share: offers, threads, secrets, the right to write, and two clocks: the control plane's, and a
    steady one.
    """

    settings: AgentSettings
    watchdog: Watchdog
    offers: Mapping[str, OfferFacts]
    reader: Reader
    pool: Executor
    publisher: Publisher
    handlers: Handlers
    sealing: SealingKey
    now: Callable[[], datetime]
    may_write: Callable[[], bool]
    secrets: Secrets | None = None
    steadily: Callable[[], float] = steady


class CycleState:
    """One cycle of one scope, as its phases see it."""

    def __init__(self, held: HeldScope, context: CycleContext) -> None:
        self.held = held
        self.context = context
        self.secrets = CycleSecrets(held, context.secrets)
        self.report = ReportBuilder(held, context.publisher, context.offers)
        self.errors = WriteErrors(held, self.report, context.offers, context.settings.cycle)
        settings, offers = context.settings, context.offers
        self.evaluator = Evaluator(held, Snapshot(), offers, settings, context.now(), self.secrets)
        handlers = LinkHandlers(held, self.evaluator, context.offers, context.sealing, self.may_write, context.watchdog)
        self.links = LinkReconciler(held, self.evaluator, self.report, context.handlers, handlers, context.pool)

    def may_write(self) -> bool:
        """Whether this scope is certainly still this agent's, and the agent may write at all."""
        return not self.held.is_lost and self.context.may_write()

    def offer_of(self, tracked: Tracked) -> AnyOffer:
        """The offer of a component's type."""
        return self.context.offers[tracked.type].offer

    def keep_found(self, tracked: Tracked) -> None:
        """Remember what lookups of a component found, before anything follows from it (C12)."""
        if not (tracked.finds or tracked.memory.found) or tracked.deleting:
            return
        found = remembered(tracked, self.evaluator.filled(tracked).found)
        if found != tracked.memory.found:
            tracked.memory = replace(tracked.memory, found=found)
            self.report.unpublished.add(tracked.uid)

    def keep_made(self, tracked: Tracked) -> None:
        """Remember which secrets that are made for a component are there (A8)."""
        made = self.secrets.made(tracked) if tracked.secrets and not tracked.import_only else tracked.memory.generated
        if made != tracked.memory.generated:
            tracked.memory = replace(tracked.memory, generated=made)
            self.report.unpublished.add(tracked.uid)

    def refresh(self) -> None:
        """Have every view drawn anew, because something was read again."""
        self.evaluator.refresh(self.context.now())
