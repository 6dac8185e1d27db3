"""What an agent can reach with its credentials: the sessions of its providers, their realms and hosts.

What does not answer is searched for again beside everything else, and keeps nobody waiting. Which scopes an agent gets
for what it reaches is decided by the control plane; what happens in them is the cycle's business.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import structlog

from fractal_cloud.agent.backoff import searching
from fractal_cloud.agent.isolation import read_safely, try_session
from fractal_cloud.agent.realms import confirmation
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.agent.watchdog import Beat, Watchdog
from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.model.host import ANY_HOST
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.wire import Hosts, Reach
from fractal_cloud.offers.offer import Cloud, Session
from fractal_cloud.offers.registry import Registry

log = structlog.get_logger()

T = TypeVar("T")
ReachKey = tuple[str, str]
"""A provider, and the name of what is reached there."""
REACH_SECONDS = 30.0
"""How long, in seconds, a provider may take at most to say what can be reached there."""
SEARCH_POLL_SECONDS = 0.2
"""How long, in seconds, an agent sleeps at most while it tries to reach something."""


class NotConnected(Cloud):
    """Stands for the cloud of a scope to which a session could not connect: nothing of it can be read (S24)."""

    def __init__(self, scope: Scope, why: str = "it is not connected to yet") -> None:
        self.scope = scope
        self._why = why

    def __getattr__(self, name: str) -> Any:
        raise Unreadable(f"the scope cannot be reached: {self._why}")


@dataclass(slots=True)
class Reached:
    """What could be reached, by provider and name, and whether that is all that was to be reached.

    ``unreached``: the hosts that could not, each with the reason.
    """

    reaches: dict[ReachKey, Reach] = field(default_factory=dict)
    is_complete: bool = True
    unreached: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Search:
    """The search for what could not be reached: when the next one is due, and the one under way.

    ``is_for_hosts``: hosts were declared or removed since the last search began.
    """

    due: float | None = None
    under_way: Future[Reached] | None = None
    is_for_hosts: bool = False

    @property
    def is_due(self) -> bool:
        return self.under_way is None and self.due is not None and time.monotonic() >= self.due


class Reachability:
    """What one agent reaches. ``calls``: the threads that ask providers. ``stopping``: ends all waiting for them.

    ``has_news``: a search found something else than is registered. ``is_other_realm``: another realm answers than the
    one that the control plane accepted (S26).
    """

    def __init__(
        self,
        settings: AgentSettings,
        registry: Registry,
        watchdog: Watchdog,
        calls: Executor,
        stopping: threading.Event,
    ) -> None:
        self.sessions: dict[str, Session] = {}
        self.reaches: dict[ReachKey, Reach] = {}
        self.hosts = Hosts(number=0)
        self.unreached: dict[str, str] = {}
        self.has_news = False
        self.is_other_realm = False
        self._search = _Search()
        self._settings = settings
        self._registry = registry
        self._watchdog = watchdog
        self._calls = calls
        self._stopping = stopping

    # --- asking every provider

    def ask_all(self) -> Reached:
        """Ask every provider what can be reached now; what cannot is named in the log, and keeps nobody waiting."""
        found = Reached()
        names = list(self._settings.providers)
        asked = [self._calls.submit(self._ask, name) for name in names]
        for name, one in zip(names, asked, strict=True):
            try:
                session, reaches, missing = self._unless_stopped(one)
            except CloudError as error:
                log.warning("provider cannot be reached", provider=name, error=error.message)
                found.is_complete = False
                continue
            self.sessions[name] = session
            found.reaches.update(reaches)
            for called, why in sorted(missing.items()):
                log.warning("realm cannot be reached: trying again", provider=name, realm=called, error=why)
                found.is_complete = False
                if called.startswith(ANY_HOST):
                    found.unreached[called] = why
        return found

    def _unless_stopped(self, asked: Future[T]) -> T:
        """Wait for something, but not once the agent is to stop."""
        while not self._stopping.is_set():
            if wait_for([asked], 0.2).done:
                return asked.result()
        raise Unreadable("the agent is stopping")

    def _ask(self, name: str) -> tuple[Session, dict[ReachKey, Reach], dict[str, str]]:
        """What one provider's session reaches and what it does not; raises ``CloudError``, whatever goes wrong."""
        known = self.sessions.get(name)

        def ask(_: Beat) -> tuple[Session, dict[ReachKey, Reach], dict[str, str]]:
            session = known or self._registry.provider(name).connect_to(self._settings.realms.get(name, ()))
            realms = dict(session.realms())
            reaches: dict[ReachKey, Reach] = {}
            if session.accepts_hosts:
                reaches[name, ANY_HOST] = Reach(provider=name, name=ANY_HOST, realm="")
            reaches.update({(name, c): Reach(provider=name, name=c, realm=r) for c, r in sorted(realms.items())})
            return session, reaches, dict(session.missing())

        return read_safely(self._watchdog, ("reach", name), f"the session of {name!r}", ask, seconds=REACH_SECONDS)

    def apply(self, found: Reached) -> bool:
        """Apply what a search found; True if that is not what was known. What is down for the moment stays known.

        A host that is no longer declared, or no longer where it was, is not: what answers there may be another one.
        """
        known = self.reaches
        hosts = {(host.provider, host.name) for host in self.hosts.hosts}
        self.reaches = {
            key: reach
            for key, reach in {**known, **found.reaches}.items()
            if key in hosts or not reach.realm or not reach.name.startswith(ANY_HOST)
        }
        self.unreached = found.unreached
        self._search.due = None
        if not found.is_complete or self.is_other_realm:
            self.search_later()
        return self.reaches != known

    # --- searching for what is missing

    @property
    def is_incomplete(self) -> bool:
        """Whether a search may find more than is known: hosts changed, some do not answer, or another realm does."""
        return self._search.is_for_hosts or bool(self.unreached) or self.is_other_realm

    def search_now(self) -> bool:
        """Search, and wait for it; True if something else is reached than before."""
        self._search.is_for_hosts = False
        return self.apply(self.ask_all())

    def search_soon(self) -> None:
        """Have the next ``search`` begin at once."""
        self._search.due = time.monotonic()

    def search_later(self) -> None:
        """Have it begin some time later: what is missing may be there then, or the realm that is meant (S26)."""
        self._search.due = time.monotonic() + searching(self._settings.cycle).delay(1).total_seconds()

    def search(self, pool: Executor, wake: Callable[[], None]) -> None:
        """Begin a search where one is due, and apply one that has ended; ``wake`` is called when it ends."""
        if self._search.is_due:
            self._begin_search(pool, wake)
        if self._search.under_way is not None and self._search.under_way.done():
            self._end_search(self._search.under_way)

    def _begin_search(self, pool: Executor, wake: Callable[[], None]) -> None:
        self._search.is_for_hosts = False
        self._search.under_way = pool.submit(self.ask_all)
        self._search.under_way.add_done_callback(lambda _: wake())

    def _end_search(self, ended: Future[Reached]) -> None:
        self._search.under_way = None
        self.has_news = self.apply(ended.result()) or self.has_news
        if self._search.is_for_hosts:  # they changed while it ran
            self.search_soon()

    def next_search(self, now: float) -> float | None:
        """When ``search`` has something to do at the latest; None if nothing is searched for."""
        return now + SEARCH_POLL_SECONDS if self._search.under_way is not None else self._search.due

    # --- hosts

    def set_hosts(self, hosts: Hosts) -> None:
        """Apply the hosts that the control plane lists: new ones are searched for beside everything else."""
        is_changed = hosts.hosts != self.hosts.hosts
        self.hosts = hosts
        if not is_changed:
            return
        for name, session in self.sessions.items():
            own = [host for host in hosts.hosts if host.provider == name]
            try_session(self._watchdog, ("set hosts", name), partial(session.set_hosts, own))
        self._search.is_for_hosts = True
        self.search_soon()

    def forget_hosts(self) -> None:
        """Have the control plane list all hosts again."""
        self.hosts = self.hosts.model_copy(update={"number": -1})

    # --- scopes

    def session_of(self, provider: str) -> Session:
        """The session of a provider that was reached once."""
        return self.sessions[provider]

    def hold(self, scope: Scope) -> HeldScope:
        """A scope that nothing is known of yet, and that is not connected to."""
        session = self.session_of(scope.provider)
        names = [r.name for r in self.reaches.values() if (r.provider, r.realm) == (scope.provider, scope.realm)]
        name = next((name for name in sorted(names) if name and not name.startswith(ANY_HOST)), "")
        confirm = confirmation(session, scope, name, self._settings.environment)
        key, what = ("realm", scope.key), f"the session of {scope.provider!r}"
        return HeldScope(
            scope,
            NotConnected(scope),
            lambda: read_safely(self._watchdog, key, what, lambda _: confirm()),
            elsewhere=lambda place: self._cloud_at(replace(scope, place=place)),
        )

    def _cloud_at(self, scope: Scope) -> Cloud:
        session = self.session_of(scope.provider)
        what = f"the session of {scope.provider!r}"
        return read_safely(self._watchdog, ("at", scope.key), what, lambda _: session.at(scope))

    def connect(self, held: HeldScope) -> None:
        """Connect a held scope to its cloud; where its session fails at it, nothing of it can be read (S24)."""
        if not isinstance(held.cloud, NotConnected):
            return
        scope = held.scope
        try:
            held.cloud = self._cloud_at(scope)
        except CloudError as error:
            log.warning("scope cannot be connected to", scope=scope.key, error=error.message)
            held.cloud = NotConnected(scope, error.message)
