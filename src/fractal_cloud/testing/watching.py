"""What an agent does to a cloud, seen at the door between the two: every read and every write of every offer.

So nothing is asked of the cloud itself: it may be a double, a laptop's, or the real one. Writes are judged against what
the agent's own last read of the resource showed, as the protocol demands (S16).
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Final

from fractal_cloud.model.identity import Scope
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.wire import Host
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.offer import AnyOffer, Cloud, Provider, Session
from fractal_cloud.offers.registry import Registry
from fractal_cloud.testing.environment import Write
from fractal_sandbox.calls import Origin
from fractal_sandbox.monitor_rules import Change, forbidden, forbidden_creation

_NOBODY: Final = CallContext("", "", "")
_acting: ContextVar[CallContext] = ContextVar("fractal_cloud_watched_act", default=_NOBODY)


class Notes:
    """What was seen: the writes that had their effect, and those that the protocol forbids."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], Mapping[str, str]] = {}
        self.writes: list[Write] = []
        self.violations: list[str] = []
        self.before_call: Callable[[], None] | None = None

    def saw(self, sighting: Sighting) -> Sighting:
        """Remember the tags that a read showed."""
        with self._lock:
            self._seen[sighting.type, sighting.resource_id] = sighting.protocol.to_mapping()
        return sighting

    def read(self, verb: Callable[..., Sighting | None], *given: Any, **more: Any) -> Sighting | None:
        """One resource, fresh."""
        found = verb(*given, **more)
        return None if found is None else self.saw(found)

    def sightings(self, verb: Callable[..., Iterable[Sighting]], *given: Any, **more: Any) -> Iterator[Sighting]:
        """All resources of a type."""
        return (self.saw(found) for found in verb(*given, **more))

    def write(self, name: str, verb: Callable[..., Any], *given: Any, **more: Any) -> Any:
        """One writing call, judged before it is made."""
        act, before = _acting.get(), self.before_call
        if before is not None:
            self.before_call = None
            before()
        broken = self._judge(name, act, [*given[1:], *more.values()])
        if broken:
            with self._lock:
                self.violations.append(f"{name} for {act.live_system_id}/{act.component_id} ({act.reason}): {broken}")
        answer = verb(*given, **more)
        with self._lock:
            self.writes.append(Write(act.live_system_id, act.component_id, act.reason, name))
        return answer

    def _judge(self, name: str, act: CallContext, given: list[Any]) -> str:
        origin = Origin(
            live_system=act.live_system_id, component=act.component_id, reason=act.reason, tags=frozenset(act.tags)
        )
        if not act.live_system_id or not act.component_id:
            return "C7, nobody is acting: the offer was called outside of its cloud's calling_as()"
        if name == "create":
            broken = forbidden_creation(given[1].to_mapping(), origin)
            return f"{broken.rule}, {broken.text}" if broken else ""
        added, removed = (given[1].to_mapping(), given[2].to_mapping()) if name == "tag" else ({}, {})
        kind: Any = {"update": "modify"}.get(name, name)
        with self._lock:
            tags = self._seen.get((given[0].type, given[0].resource_id))
        if tags is None:
            return "S16, the resource was never read"
        broken = forbidden(Change(kind, added, dict(removed)), tags, origin)
        return f"{broken.rule}, {broken.text}" if broken else ""


class WatchedRegistry(Registry):
    """A registry in which every offer is watched, and every session says in whose name it is used."""

    def __init__(self, inner: Registry, notes: Notes) -> None:
        super().__init__([])
        self._notes = notes
        self.handlers = inner.handlers
        self._offers = {offer.type: _watched(offer, notes) for offer in inner}
        self._providers = {
            name: replace(provider, connect=partial(_connect, provider))
            for name, provider in ((name, inner.provider(name)) for name in inner.providers())
        }
        self._families = {family.name: family for family in inner.families()}

    def _kept(self, offer: AnyOffer) -> AnyOffer:
        return _watched(offer, self._notes)


def _watched(offer: AnyOffer, notes: Notes) -> AnyOffer:
    """The same offer, with its verbs going through the notes."""
    seen = copy.copy(offer)
    for name in ("create", "update", "delete", "tag"):
        setattr(seen, name, partial(notes.write, name, getattr(offer, name)))
    for name in ("read", "sightings"):
        setattr(seen, name, partial(getattr(notes, name), getattr(offer, name)))
    return seen


def _connect(provider: Provider) -> Session:
    return _WatchedSession(provider.connect())


class _WatchedSession(Session):
    """A session whose clouds say who acts."""

    def __init__(self, inner: Session) -> None:
        self._inner = inner
        self._clouds: dict[Scope, Cloud] = {}

    def realms(self) -> Mapping[str, str]:
        return self._inner.realms()

    def missing(self) -> Mapping[str, str]:
        return self._inner.missing()

    @property
    def accepts_hosts(self) -> bool:
        return self._inner.accepts_hosts

    def set_hosts(self, hosts: Sequence[Host]) -> None:
        self._inner.set_hosts(hosts)

    def at(self, scope: Scope) -> Cloud:
        if scope not in self._clouds:
            cloud = self._inner.at(scope)
            vars(cloud)["calling_as"] = partial(_noted, cloud.calling_as)
            self._clouds[scope] = cloud
        return self._clouds[scope]

    def watch(self, scope: Scope, offers: Iterable[AnyOffer], wake: Callable[[], None]) -> Callable[[], None] | None:
        return self._inner.watch(scope, offers, wake)


@contextmanager
def _noted(
    calling_as: Callable[[CallContext], AbstractContextManager[CallContext]], act: CallContext
) -> Iterator[CallContext]:
    token = _acting.set(act)
    try:
        with calling_as(act) as made:
            yield made
    finally:
        _acting.reset(token)
