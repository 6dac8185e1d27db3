"""A session that reaches what a file of realms names, and nothing else its credentials would open.

Where each realm has credentials of its own there is a session for each; where one set opens them all, one for all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.model.host import ANY_HOST
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.realm_entry import RealmEntry
from fractal_cloud.model.wire import Host
from fractal_cloud.offers.offer import AnyOffer, Cloud, Session

ASKED_AT_ONCE: Final = 16


class ListedRealm(RealmEntry):
    """A realm of a provider whose sessions say by themselves what they reach."""

    @property
    @abstractmethod
    def wanted(self) -> str:
        """What its session calls it: an id or a name; empty for the only one that there is."""

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.name or self.wanted


class Way:
    """A session, connected when it is first asked for, and the realms that are reached by it."""

    def __init__(self, connect: Callable[[], Session], entries: Sequence[ListedRealm]) -> None:
        self.entries = entries
        self.session: Session | None = None
        self._connect = connect

    def ask(self) -> _Answer:
        """What it reaches now."""
        try:
            self.session = self.session or self._connect()
            found = self.session.realms()
        except CloudError as error:
            return _Answer({}, {}, error.message)
        return _Answer(found, self.session.missing())


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one session reaches, by its own names, and what it does not; ``why``: it reaches nothing at all."""

    found: Mapping[str, str]
    missing: Mapping[str, str]
    why: str = ""


class ListedRealms(Session):
    """The realms that a file names, by the names that it gives them."""

    def __init__(self, ways: Sequence[Way]) -> None:
        self._ways = ways
        self._by_realm: dict[str, Session] = {}
        self._missing: dict[str, str] = {}

    def realms(self) -> Mapping[str, str]:
        """Those that answer, and declared hosts."""
        with ThreadPoolExecutor(min(len(self._ways), ASKED_AT_ONCE), thread_name_prefix="realms") as pool:
            answers = list(pool.map(Way.ask, self._ways))
        names: dict[str, str] = {}
        sessions: dict[str, Session] = {}
        missing: dict[str, str] = {}
        for way, answer in zip(self._ways, answers, strict=True):
            if way.session is None:
                missing.update({entry.label: answer.why for entry in way.entries})
                continue
            hosts = {name: realm for name, realm in answer.found.items() if name.startswith(ANY_HOST)}
            names.update(hosts)
            sessions.update(dict.fromkeys(hosts.values(), way.session))
            missing.update({name: why for name, why in answer.missing.items() if name.startswith(ANY_HOST)})
            for entry in way.entries:
                realm = answer.found.get(entry.wanted)
                if realm is None:
                    missing[entry.label] = (
                        answer.why
                        or answer.missing.get(entry.wanted)
                        or f"these credentials do not reach {entry.wanted!r}: allow it, or correct the file of realms"
                    )
                    continue
                names.update(dict.fromkeys({realm, entry.name or realm, *([""] if entry.default else [])}, realm))
                sessions[realm] = way.session
        self._by_realm, self._missing = sessions, missing
        if not names and not self.accepts_hosts:
            raise Unreadable("; ".join(f"{name!r}: {why}" for name, why in missing.items()))
        return names

    def missing(self) -> Mapping[str, str]:
        """The realms that did not answer when they were last asked, each with the reason."""
        return self._missing

    @property
    def accepts_hosts(self) -> bool:
        """Whether realms may be components that are declared."""
        return any(session.accepts_hosts for session in self._sessions())

    def set_hosts(self, hosts: Sequence[Host]) -> None:
        """Reach declared hosts, too."""
        for session in self._sessions():
            session.set_hosts(hosts)

    def _sessions(self) -> list[Session]:
        return [way.session for way in self._ways if way.session is not None]

    def at(self, scope: Scope) -> Cloud:
        """The cloud of one scope."""
        return self._session(scope).at(scope)

    def realm_now(self, scope: Scope) -> str:
        """The realm that calls for this scope really reach at this moment."""
        return self._session(scope).realm_now(scope)

    def watch(self, scope: Scope, offers: Iterable[AnyOffer], wake: Callable[[], None]) -> Callable[[], None] | None:
        """Watch as the scope's own session does."""
        return self._session(scope).watch(scope, offers, wake)

    def _session(self, scope: Scope) -> Session:
        found = self._by_realm.get(scope.realm)
        if found is None:
            raise Unreadable(f"{scope.realm!r} is not in the agent's file of realms, or did not answer")
        return found


def through_one(session: Session, entries: Sequence[ListedRealm]) -> ListedRealms:
    """All of them by one session, whose credentials open them all."""
    return ListedRealms([Way(lambda: session, entries)])
