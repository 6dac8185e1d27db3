"""Components that nobody serves: no agent reaches their realm, or knows their type (S21).

Each says what is missing within two cycles, and once. What was never reconciled by then has failed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import or_, select, true

from fractal_cloud.control.store import agents as agent_store
from fractal_cloud.control.store import hosts, livesystems, offers, realm_bindings, scopes
from fractal_cloud.control.store.agents import Agent, KnownTypes, Unapproved
from fractal_cloud.control.store.database import Database, Tx
from fractal_cloud.control.store.events import status_changed
from fractal_cloud.control.store.hosted_components import BY, was_never_reconciled
from fractal_cloud.control.store.periodic import when_due
from fractal_cloud.control.store.placement import foreign_message, lock_live_systems
from fractal_cloud.control.store.records import ComponentRecord, records, select_records, update_records
from fractal_cloud.control.store.schema import components, live_systems
from fractal_cloud.model.host import host_of
from fractal_cloud.model.status import Status

# In cycles: said soon enough to be read within two.
_PATIENCE: Final = 1.5


def report_unserved(database: Database, cycle: timedelta) -> None:
    """Say of components that nobody serves what is missing: within two cycles, and once."""

    def report(tx: Tx) -> None:
        for group in _unserved(tx, cycle):
            _report(tx, _unsaid(tx, group, cycle), is_final=group.is_final)

    when_due(database, lambda tx: any(_unsaid(tx, group, cycle) for group in _unserved(tx, cycle)), report)


@dataclass(frozen=True, slots=True)
class _Group:
    """Components that nobody serves, all for the same reason.

    ``is_final``: the agents had their time: what was never observed has failed, and the rest waits for a person.
    ``other``: the other realm that is reached where theirs was (S26). ``scope``: the one that all of them are in, where
    that is what the reason is about.
    """

    environment: str
    provider: str
    name: str
    realm: str | None
    type: str
    words: str = ""
    is_final: bool = True
    other: str | None = None
    scope: str | None = None

    def said_of(self, record: ComponentRecord) -> str:
        """What a component of the group says."""
        return self.words if self.other is None else foreign_message(record, self.other)


@dataclass(frozen=True, slots=True)
class _Living:
    """The agents that are alive, by what they reach: there may be as many of them as there are groups."""

    by_realm: defaultdict[tuple[str, str], list[Agent]]
    by_name: defaultdict[tuple[str, str, str], list[Agent]]
    by_provider: defaultdict[tuple[str, str], list[Agent]]
    by_environment: defaultdict[str, list[Agent]]

    @classmethod
    def of(cls, agents: Iterable[Agent]) -> _Living:
        """Sort agents by realm, by environment with provider and name, with provider alone, and by environment."""
        living = cls(defaultdict(list), defaultdict(list), defaultdict(list), defaultdict(list))
        for agent in agents:
            living.by_environment[agent.environment].append(agent)
            for reach in agent.reaches:
                living.by_realm[reach].append(agent)
            for provider, name in agent.realms:
                living.by_name[agent.environment, provider, name].append(agent)
            for provider in {provider for provider, _ in agent.realms}:
                living.by_provider[agent.environment, provider].append(agent)
        return living

    def reaching(self, group: _Group) -> list[Agent]:
        """Those who reach the realm of a group; where it is not settled yet, those of its environment who name it."""
        if group.realm is not None:
            return self.by_realm[group.provider, group.realm]
        return self.by_name[group.environment, group.provider, group.name]

    def had_time(self, environment: str, registered: Mapping[str, datetime | None], until: datetime) -> bool:
        """Whether no agent of an environment runs, or one registered so long ago that the others should be there."""
        times = [registered.get(agent.id) for agent in self.by_environment[environment]]
        return not times or any(at is None or at <= until for at in times)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of agents and realms, by which it is decided who serves a group.

    ``types``: those each agent knows; ``families``: those of declared types that no agent named. ``registered``: when
    each did. ``realms``: what names are bound to; ``others``: the other realms that are reached by names (S26).
    ``environments``: those in which an agent ever registered. ``waiting``: what agents reach that nobody approved (A2).
    """

    living: _Living
    types: Mapping[str, KnownTypes]
    families: Mapping[str, str]
    registered: Mapping[str, datetime | None]
    realms: Mapping[tuple[str, str, str], str]
    others: Mapping[tuple[str, str, str], str]
    environments: Collection[str]
    waiting: Sequence[Unapproved]


def _known(tx: Tx, groups: Collection[_Group]) -> _Known:
    every = agent_store.all_agents(tx)
    bound = agent_store.realms(tx)
    types = agent_store.types_known(tx)
    named = frozenset().union(*(known.named for known in types.values()))
    return _Known(
        living=_Living.of(agent for agent in every if agent.deadline > tx.now),
        types=types,
        families=offers.families(tx, {group.type for group in groups} - named),
        registered=agent_store.registrations(tx),
        realms=agent_store.realms(tx, also={(group.environment, group.provider, group.name) for group in groups}),
        others=realm_bindings.others(tx),
        environments={agent.environment for agent in every} | {environment for environment, _, _ in bound},
        waiting=agent_store.unapproved(tx),
    )


def _unserved(tx: Tx, cycle: timedelta) -> list[_Group]:
    """All groups that nobody serves, with the reason."""
    c = components.c
    query = select(c.environment, c.provider, c.realm_name, c.realm, c.type).distinct()
    groups = [_Group(*row) for row in tx.connection.execute(query)]
    known = _known(tx, groups)
    explained = (_explained(tx, group, known, cycle) for group in groups)
    found = [group for group in explained if group is not None]
    return [*found, *_shared(tx, known, cycle, {(group.environment, group.provider, group.realm) for group in found})]


def _shared(
    tx: Tx, known: _Known, cycle: timedelta, unserved: Collection[tuple[str, str, str | None]]
) -> Iterator[_Group]:
    """The groups of scopes that several environments share, and for all of which no agent has a token (A1)."""
    for scope, environments in scopes.shared(tx).items():
        reaching = known.living.by_realm[scope.provider, scope.realm]
        if not reaching or any(not agent.lacks(environments) for agent in reaching):
            continue
        lacking = {agent.id: agent.lacks(environments) for agent in reaching}
        for environment, name, kind in scopes.kinds_in(tx, scope.key):
            if (environment, scope.provider, scope.realm) not in unserved:
                yield _Group(
                    *(environment, scope.provider, name, scope.realm, kind),
                    words=livesystems.shared_message(scope, environments, lacking),
                    is_final=known.living.had_time(environment, known.registered, tx.now - _PATIENCE * cycle),
                    scope=scope.key,
                )


def _explained(tx: Tx, group: _Group, known: _Known, cycle: timedelta) -> _Group | None:
    """A group with the reason why nobody serves it; None where somebody does, or where it only waits."""
    name = (group.environment, group.provider, group.name)
    reaching = known.living.reaching(group)
    other = known.others.get(name) or known.realms.get(name)
    if not reaching and group.realm is not None and other not in (None, group.realm):
        return replace(group, other=other)
    family = known.families.get(group.type, "")
    knowing = [agent for agent in reaching if agent.id in known.types and known.types[agent.id].has(group.type, family)]
    if any(not agent.lacks([group.environment]) for agent in knowing):
        return None
    words = _words(tx, group, reaching, knowing, known)
    if not words:
        return None
    if group.environment not in known.environments:
        words = livesystems.never_served_message(group.provider, group.environment)
        return replace(group, words=words, is_final=False)
    is_final = known.living.had_time(group.environment, known.registered, tx.now - _PATIENCE * cycle)
    return replace(group, words=words, is_final=is_final)


def _words(tx: Tx, group: _Group, reaching: Sequence[Agent], knowing: Sequence[Agent], known: _Known) -> str:
    """What is missing; empty where a group only waits for its host."""
    if knowing:
        ids = [agent.id for agent in knowing]
        return livesystems.unbound_message(group.provider, group.realm or group.name, group.environment, ids)
    if reaching:
        names = ", ".join(agent.id for agent in reaching)
        return (
            f"no running agent knows the type {group.type!r} ({names} serve {group.provider!r}): "
            "install its package where an agent runs"
        )
    waiting = sorted({one.agent_id for one in known.waiting if _would_serve(one, group)})
    if waiting:
        return livesystems.unapproved_message(group.provider, group.environment, waiting)
    serving = known.living.by_provider[group.environment, group.provider]
    if host_of(group.name) is not None:
        can_reach_hosts = any(group.provider in agent.hosted for agent in serving)
        return _words_of_host(tx, group, can_reach_hosts=can_reach_hosts)
    return livesystems.unserved_message(group.provider, group.environment, group.name if serving else "")


def _would_serve(waiting: Unapproved, group: _Group) -> bool:
    """Whether an agent would reach a group if somebody approved it."""
    if group.realm is not None:
        return (waiting.provider, waiting.realm) == (group.provider, group.realm)
    return (waiting.environment, waiting.provider, waiting.name) == (group.environment, group.provider, group.name)


def _words_of_host(tx: Tx, group: _Group, *, can_reach_hosts: bool) -> str:
    """Why no agent reconciles what is in a host; empty where it only waits, or an agent says itself what is wrong."""
    host = host_of(group.name)
    if host is None or not can_reach_hosts:
        return livesystems.unserved_message(group.provider, group.environment)
    if group.realm is None:
        return ""
    known = hosts.states(tx, group.provider, [group.name]).get(group.name)
    if known is None or known.is_absent:
        return f"it is in {host.component_id!r}, which is gone: nothing is read or written until that is there again"
    return ""


def _unsaid(tx: Tx, group: _Group, cycle: timedelta) -> list[ComponentRecord]:
    """The components of a group of which it was not said yet, with the words in their message."""
    c = components.c
    query = (
        select_records()
        .join(live_systems, live_systems.c.id == c.live_system_id)
        .where(
            c.environment == group.environment,
            c.provider == group.provider,
            c.type == group.type,
            c.realm_name == group.name,
            c.realm.is_(None) if group.realm is None else c.realm == group.realm,
            true() if group.scope is None else c.scope_key == group.scope,
            or_(c.message != group.words, c.stuck != group.is_final) if group.other is None else true(),
            ~live_systems.c.in_recovery,
            live_systems.c.deployed_at <= tx.now - _PATIENCE * cycle,
        )
    )
    found = [(record, group.said_of(record)) for record in records(tx, query)]
    unsaid = [(record, said) for record, said in found if (record.message, record.stuck) != (said, group.is_final)]
    for record, said in unsaid:
        record.message, record.stuck = said, group.is_final
    return [record for record, _ in unsaid]


def _report(tx: Tx, unsaid: Sequence[ComponentRecord], *, is_final: bool) -> None:
    if not unsaid:
        return
    lock_live_systems(tx, (record.live_system_id for record in unsaid))
    versions = scopes.renew_work(tx, {r.scope_key for r in unsaid if r.scope_key is not None})
    for record in unsaid:
        record.last_updated = tx.now
        record.declared_in(versions.get(record.scope_key or "", 0))
        if is_final and was_never_reconciled(record):
            before, record.status = record.status, Status.FAILED.value
            record.dealt_generation = record.generation
            tx.record(status_changed(record, BY, before))
    columns = ("message", "status", "stuck", "dealt_generation", "last_updated", "work_version", "declared_version")
    update_records(tx, unsaid, columns)
