"""Agents: who runs where, what they reach, and until when they count as alive.

A lease has no deadline of its own: it lives as long as its holder's row here does.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sqlalchemy import Text, and_, bindparam, cast, delete, exists, func, select, update

from fractal_cloud.control.store import (
    access,
    approvals,
    hosts,
    incarnations,
    offers,
    scopes,
    sealing_keys,
    staleness,
    tokens,
)
from fractal_cloud.control.store import realm_bindings as realms_of_names
from fractal_cloud.control.store.access import Access, Allowed
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import Now, PreparedStatement, upsert
from fractal_cloud.control.store.errors import AgentRefused, Forbidden, NotFound
from fractal_cloud.control.store.placement import explain_other, place_newly_reached
from fractal_cloud.control.store.realm_bindings import Contact, Name
from fractal_cloud.control.store.records import Json, iso
from fractal_cloud.control.store.schema import agent_reaches, agents, reaches, scope_reads
from fractal_cloud.control.store.schema import scopes as scope_table
from fractal_cloud.control.store.visibility import Environments, covers
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.host import ANY_HOST
from fractal_cloud.model.sealing import fingerprint
from fractal_cloud.model.wire import Beat, Heartbeat, Reach, Registered, Registration, ScopeCycle
from fractal_cloud.rules.grants import missing
from fractal_cloud.rules.staleness import CYCLES

MIN_LEASE_SECONDS = 7.0
MOST_OF_A_TOKEN: Final = 5_000
"""So many agents of one token are known: more than that are no fleet, but somebody who invents names (A9)."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent as it registered; ``realms`` are those it may serve and was let in at, by their names.

    ``environments``: the patterns of environments that its token is bound to (A1). ``waiting``: those at which it waits
    for approval; ``has_news``: it was approved since, and is to register again (A2). ``key_is_news``: whoever seals for
    what it tends has not heard of its key yet; ``key_withdrawn``: nothing is sealed to it any more, and it is to make a
    new one (A5).
    """

    id: str
    environment: str
    token_id: str
    environments: frozenset[str]
    realms: Mapping[Name, str]
    cycle_seconds: float
    deadline: datetime
    last_seen: datetime
    public_key: str
    has_news: bool = False
    token_name: str = ""
    waiting: Sequence[Mapping[str, str]] = ()
    key_is_news: bool = False
    key_withdrawn: bool = False

    @property
    def hosted(self) -> frozenset[str]:
        """The providers for which it can reach hosts that are declared."""
        return frozenset(provider for provider, name in self.realms if name == ANY_HOST)

    @property
    def reaches(self) -> frozenset[tuple[str, str]]:
        """The realms it reaches, each with its provider."""
        return frozenset((provider, realm) for (provider, _), realm in self.realms.items())

    def lacks(self, environments: Iterable[str]) -> frozenset[str]:
        """Those of some environments that its token is not bound to (A1)."""
        return missing(self.environments, frozenset(environments))

    @property
    def lease_seconds(self) -> float:
        """How long it counts as alive after it was last heard of."""
        return max(2 * self.cycle_seconds, MIN_LEASE_SECONDS)


_COLUMNS = (
    agents.c.id,
    agents.c.environment,
    agents.c.token_id,
    agents.c.granted,
    agents.c.environments,
    agents.c.reaches,
    agents.c.cycle_seconds,
    agents.c.deadline,
    agents.c.last_seen,
    agents.c.public_key,
    agents.c.has_news,
    agents.c.key_is_news,
    agents.c.key_withdrawn,
)


_ONE: Final = PreparedStatement(select(*_COLUMNS).where(agents.c.id == bindparam("agent")))


def all_agents(tx: Tx) -> list[Agent]:
    """Every agent that ever registered, the dead too."""
    query = select(*_COLUMNS, agents.c.token_name, agents.c.waiting).order_by(agents.c.id)
    return [
        replace(_agent(row), token_name=row.token_name, waiting=row.waiting) for row in tx.connection.execute(query)
    ]


def _agent(row: Any) -> Agent:
    return agent_of(row, row.reaches, row.environments)


def agent_of(row: Any, reached: Iterable[Mapping[str, str]], environments: Iterable[str]) -> Agent:
    """An agent from its row, what it reaches as it said it, and the patterns of its token's environments."""
    return Agent(
        id=row.id,
        environment=row.environment,
        token_id=row.token_id,
        environments=frozenset(environments),
        realms={(item["provider"], item["name"]): item["realm"] for item in reached},
        cycle_seconds=row.cycle_seconds,
        deadline=row.deadline,
        last_seen=row.last_seen,
        public_key=row.public_key,
        has_news=row.has_news,
        key_is_news=row.key_is_news,
        key_withdrawn=row.key_withdrawn,
    )


@dataclass(frozen=True, slots=True)
class KnownTypes:
    """The component types that one agent knows: those it named, and every one of its families (by their names)."""

    named: frozenset[str]
    families: frozenset[str] = frozenset()

    def has(self, component_type: str, family: str) -> bool:
        """Whether it serves a type, which is of a family of that name (empty: of none)."""
        return component_type in self.named or (bool(family) and family in self.families)


def types_known(tx: Tx) -> dict[str, KnownTypes]:
    """The component types that each agent knows."""
    rows = tx.connection.execute(select(agents.c.id, agents.c.types, agents.c.families))
    return {row.id: KnownTypes(frozenset(row.types), frozenset(row.families)) for row in rows}


@dataclass(frozen=True, slots=True)
class Unapproved:
    """What a living agent reaches, and waits for approval of (A2)."""

    agent_id: str
    environment: str
    provider: str
    name: str
    realm: str


def unapproved(tx: Tx) -> list[Unapproved]:
    """All that living agents wait for approval of."""
    query = select(agents.c.id, agents.c.environment, agents.c.waiting).where(agents.c.deadline > tx.now)
    rows = tx.connection.execute(query.order_by(agents.c.id))
    return [
        Unapproved(row.id, row.environment, reach["provider"], reach["name"], reach["realm"])
        for row in rows
        for reach in row.waiting
    ]


def registrations(tx: Tx) -> dict[str, datetime | None]:
    """When each agent registered; None for one that registered before that was kept."""
    query = select(agents.c.id, agents.c.registered_at)
    return {row.id: row.registered_at for row in tx.connection.execute(query)}


def described(agent: Agent, now: datetime) -> Json:
    """An agent as the API shows it."""
    return {
        "id": agent.id,
        "environment": agent.environment,
        "token": agent.token_name,
        "key": fingerprint(agent.public_key) if agent.public_key else "",
        "reaches": [
            {"provider": p, "name": name, "realm": realm} for (p, name), realm in sorted(agent.realms.items()) if realm
        ],
        "waiting": sorted(agent.waiting, key=lambda reach: (reach["provider"], reach["name"])),
        "cycleSeconds": agent.cycle_seconds,
        "lastSeen": agent.last_seen,
        "alive": agent.deadline > now,
    }


def list_all(tx: Tx, sees: Environments = None) -> list[Json]:
    """All agents that somebody may see, as the API shows them: the dead first, then those that read too little, by id.

    ``order`` is their place in that order. An agent is stale when it was not heard of for two cycles, or when a scope
    that it holds is (C11).
    """
    c = scope_table.c
    held = select(c.key, c.holder, staleness.scope_is_stale(c.key).label("stale")).where(c.holder.is_not(None))
    scopes_of: dict[str, list[bool]] = {}
    for row in tx.connection.execute(held):
        scopes_of.setdefault(row.holder, []).append(bool(row.stale))
    versions = {row.id: row.version for row in tx.connection.execute(select(agents.c.id, agents.c.version))}
    said = staleness.said_by(tx)
    found = [
        {
            **described(agent, tx.now),
            "version": versions[agent.id],
            "environments": sorted(agent.environments),
            "scopes": len(scopes_of.get(agent.id, ())),
            "staleScopes": sum(scopes_of.get(agent.id, ())),
            "lastCycle": said[agent.id].newest_read,
            "stale": any(scopes_of.get(agent.id, ())) or _is_silent(agent, tx.now),
        }
        for agent in all_agents(tx)
        if covers(sees, agent.environment)
    ]
    for one in found:
        one["order"] = f"{int(one['alive'])}{int(not one['stale'])} {one['id']}"
    return sorted(found, key=operator.itemgetter("order"))


def _is_silent(agent: Agent, now: datetime) -> bool:
    return now - agent.last_seen > CYCLES * timedelta(seconds=agent.cycle_seconds)


def get(tx: Tx, agent_id: str, speaker: Access | None = None) -> Agent:
    """An agent that has registered; with a token, only if it registered with that one."""
    row = only_own(_ONE.rows(tx.connection, {"agent": agent_id}), agent_id, speaker)
    return _agent(row)


def of_token(tx: Tx, agent_id: str, token_id: str) -> Agent:
    """An agent that has registered with the token of that id."""
    agent = get(tx, agent_id)
    if agent.token_id != token_id:
        raise Forbidden(_OTHER_TOKEN.format(agent_id))
    return agent


_OTHER_TOKEN: Final = "agent {!r} registered with another token: use that one, or register again"


def only_own(found: Sequence[Any], agent_id: str, speaker: Access | None) -> Any:
    """The first of the rows found of an agent, if there is one and it registered with that token, as it is now."""
    if not found:
        raise NotFound(f"agent {agent_id!r} is not known here: register it first")
    if speaker is not None and found[0].token_id != speaker.token_id:
        raise Forbidden(_OTHER_TOKEN.format(agent_id))
    if speaker is not None and found[0].granted != speaker.grants.digest:
        raise Forbidden(
            f"token {speaker.token!r} was bound to something else since agent {agent_id!r} registered: register again"
        )
    return found[0]


def register(
    tx: Tx, registration: Registration, speaker: Access, installed: Mapping[str, TypeFacts] = MappingProxyType({})
) -> Registered:
    """Take an agent in: its reach settles where components of its environment are looked for.

    ``installed``: the types of packages that are installed here, which no agent's word changes (A4).
    """
    lease = max(2 * registration.cycle_seconds, MIN_LEASE_SECONDS)
    tokens.refuse_void(tx, speaker.token_id, speaker.grants)
    _refuse_name_of_another(tx, registration.agent_id, speaker.token_id)
    _refuse_one_too_many(tx, registration.agent_id, speaker)
    allowed = access.check(tx, speaker, registration)
    let_in, waiting = _let_in(tx, registration, speaker.token, allowed.reaches)
    offers.register(tx, _admitted_types(registration, let_in, waiting), speaker.token, installed)
    scopes.release(tx, registration.agent_id)  # a former life of this agent must not be able to report any more
    bound = enter(tx, registration.agent_id, registration.environment, replace(allowed, reaches=let_in))
    upsert(
        tx.connection,
        agents,
        [
            {
                "id": registration.agent_id,
                "environment": registration.environment,
                "token_id": speaker.token_id,
                "token_name": speaker.token,
                "granted": speaker.grants.digest,
                "environments": sorted(speaker.grants.environments),
                "reaches": [reach.to_json() for reach in let_in],
                "waiting": [reach.to_json() for reach in waiting],
                "others": [reach.to_json() for reach in allowed.others],
                "has_news": False,
                "types": sorted(facts.type for facts in registration.types),
                "families": sorted(set(registration.families)),
                "cycle_seconds": registration.cycle_seconds,
                "version": registration.version,
                "public_key": registration.public_key,
                "key_is_news": bool(registration.public_key),
                "key_withdrawn": sealing_keys.is_withdrawn(tx, registration.public_key),
                "registered_at": tx.now,
                "last_seen": tx.now,
                "deadline": tx.now + timedelta(seconds=lease),
                "read_at": {},
                "swept_since": {},
                "cycles": {},
            }
        ],
    )
    access.note_reaches(tx, registration.agent_id, {(reach.provider, reach.realm) for reach in let_in})
    said = [*let_in, *allowed.others]
    others = [reach for reach in said if bound.get((reach.provider, reach.name), reach.realm) != reach.realm]
    others += allowed.ignored
    newest = incarnations.newest(tx)
    return Registered(now=tx.now, lease_seconds=lease, last_seen=newest, others=others, waiting=waiting)


def _let_in(
    tx: Tx, registration: Registration, token_name: str, reaches: Sequence[Reach]
) -> tuple[list[Reach], list[Reach]]:
    """What an agent may serve and is let in at, and what it waits for approval of (A2)."""
    who = approvals.Newcomer(registration.agent_id, registration.environment, token_name, registration.public_key)
    held_back = approvals.note(tx, who, {(reach.provider, reach.realm) for reach in reaches})
    let_in = [reach for reach in reaches if (reach.provider, reach.realm) not in held_back]
    return let_in, [reach for reach in reaches if reach not in let_in]


def _admitted_types(registration: Registration, let_in: list[Reach], waiting: list[Reach]) -> list[TypeFacts]:
    """The types an agent may bring: while it waits, only those of the providers at which it was let in."""
    providers = {reach.provider for reach in let_in}
    return [facts for facts in registration.types if not waiting or facts.provider in providers]


def admit(tx: Tx, approved: Iterable[Json]) -> None:
    """Have the agents register again that wait for what was approved just now."""
    realms = {(one["environment"], one["token"], one["key"]) for one in approved}
    for row in tx.connection.execute(select(agents)):
        key = fingerprint(row.public_key) if row.public_key else ""
        if row.waiting and (row.environment, row.token_name, key) in realms:
            tx.connection.execute(update(agents).where(agents.c.id == row.id).values(has_news=True))


def hold_back(tx: Tx, withdrawn: Iterable[Json]) -> None:
    """Take from agents the realms at which they wait from now on, with their leases; they register again (A2)."""
    realms: dict[tuple[str, str, str], set[tuple[str, str]]] = defaultdict(set)
    for one in withdrawn:
        realms[one["environment"], one["token"], one["key"]].add((one["provider"], one["realm"]))
    if not realms:
        return
    for row in tx.connection.execute(select(agents)).all():
        key = fingerprint(row.public_key) if row.public_key else ""
        where = realms.get((row.environment, row.token_name, key), set())
        lost = [item for item in row.reaches if (item["provider"], item["realm"]) in where]
        if lost:
            access.remove_reaches(tx, row, lost, waiting=[*row.waiting, *lost], has_news=True)


def enter(tx: Tx, agent_id: str, environment: str, allowed: Allowed) -> dict[Name, str]:
    """An agent reaches these realms: settle there what belongs there, and say of the rest why nobody tends it.

    Returns the realm that every name is bound to, those of declared clusters too. Bound is the one first reached; what
    is in it stays in it, whatever is reached now (S26).
    """
    served, others = (
        {(reach.provider, reach.name): reach.realm for reach in reaches if reach.realm}
        for reaches in (allowed.reaches, allowed.others)
    )
    agents_own = {key: realm for key, realm in served.items() if realms_of_names.is_agents_own(key[1])}
    realms_of_names.note_agents_own(tx, environment, agents_own)
    named = {key: realm for key, realm in served.items() if key not in agents_own}
    named |= hosts.names_of(tx, environment, served)
    known = {(one.provider, one.name) for one in realms_of_names.every(tx, environment)} if others else set()
    named |= {key: realm for key, realm in (others | hosts.names_of(tx, environment, others)).items() if key in known}
    made = Contact(agent_id, environment, named, allowed.aliases, allowed.first, allowed.kept)
    bound, changed = realms_of_names.contact(tx, made)
    access.refresh(tx, changed, but=agent_id)
    hold_back(tx, approvals.let_wait_at(tx, environment, changed, lambda name: tokens.serves(tx, name, environment)))
    place_newly_reached(tx, environment, bound)
    for (provider, name), realm in named.items():
        before = bound[provider, name]
        if before != realm and not realms_of_names.is_reached(tx, provider, before, but=agent_id):
            explain_other(tx, environment, (provider, name), before, realm)
    return bound


def _refuse_name_of_another(tx: Tx, agent_id: str, token_id: str) -> None:
    """An agent's name is its token's as long as it is alive: nobody else may speak for it."""
    query = select(agents.c.token_id).where(agents.c.id == agent_id, agents.c.deadline > tx.now)
    other = tx.connection.execute(query).scalar()
    if other is not None and other != token_id:
        raise Forbidden(f"agent {agent_id!r} is alive and registered with another token: choose another agent id")


def _refuse_one_too_many(tx: Tx, agent_id: str, speaker: Access) -> None:
    """Let the dead of a token that has too many agents make way, and refuse a further one where all are alive (A9)."""
    of_token = agents.c.token_name == speaker.token
    known = tx.connection.execute(select(agents.c.id, agents.c.deadline).where(of_token)).all()
    if len(known) < MOST_OF_A_TOKEN or any(row.id == agent_id for row in known):
        return
    alive = sum(row.deadline > tx.now for row in known)
    if alive >= MOST_OF_A_TOKEN:
        raise AgentRefused(f"{alive} agents of token {speaker.token!r} are alive: use another token for more")
    for row in known:
        if row.deadline <= tx.now:
            scopes.release(tx, row.id)
            access.note_reaches(tx, row.id, ())
            tx.connection.execute(delete(agents).where(agents.c.id == row.id))


def realms(
    tx: Tx, environment: str | None = None, *, also: Iterable[tuple[str, str, str]] = ()
) -> dict[tuple[str, str, str], str]:
    """The realm each (environment, provider, name) is bound to, as far as an agent has reached it.

    ``also``: names that may be those of hosts, which are added as far as they are reached.
    """
    query = select(reaches)
    if environment is not None:
        query = query.where(reaches.c.environment == environment)
    found = {(row.environment, row.provider, row.name): row.realm for row in tx.connection.execute(query)}
    return {**found, **hosts.realms(tx, found, also)}


class Beaten(NamedTuple):
    """The answer to a heartbeat, and what the caller does next, in transactions that lock scopes first.

    ``beyond``: the scopes it holds in which there is, by now, an environment that its token is not bound to (A1): they
    are lost to it, and to be released. ``has_read``: some were stale, and it may have read them now (C11).
    """

    beat: Beat
    beyond: set[str]
    has_read: bool


def heartbeat(tx: Tx, beat: Heartbeat, speaker: Access) -> Beaten:
    """One row per agent and cycle: it is alive, and has read these scopes.

    The agent's row is held first: who claims a dead agent's scopes holds it too, and what was claimed before is seen
    here as lost.
    """
    asked = {"agent": beat.agent_id, incarnations.SEEN: beat.last_seen.event}
    own = only_own(_OWN.rows(tx.connection, asked), beat.agent_id, speaker)
    incarnations.check(own, beat.last_seen)
    tx.set_time(own.now)
    agent, known = _agent(own), own.read_at
    every = scopes.held_by(tx, agent.id)
    beyond = scopes.beyond(tx, every)
    held = {key: row for key, row in every.items() if key not in beyond}
    said = {key: iso(_plausible(at, tx.now)) for key, at in beat.read_at.items()}
    alive = {
        "agent": agent.id,
        "last_seen": tx.now,
        "deadline": tx.now + timedelta(seconds=agent.lease_seconds),
        "read_at": {key: at for key, at in {**known, **said}.items() if key in held},
        "swept_since": {key: iso(_plausible(at, tx.now)) for key, at in beat.swept_since.items() if key in held},
        "cycles": {key: _cycle(one, tx.now) for key, one in beat.cycles.items() if key in held},
    }
    _BEAT.run(tx.connection, alive)
    lost = set(beat.read_at) - set(held)
    lost |= {key for key, token in beat.held.items() if key not in held or held[key].token != token}
    has_stale = bool(own.has_stale)
    return Beaten(Beat(now=tx.now, lost=sorted(lost), has_stale=has_stale), beyond, has_stale)


_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


def _plausible(at: datetime, now: datetime) -> datetime:
    """A moment as an agent says it: nobody has read anything later than now, whatever its clock shows."""
    return min(max(at, _LONG_AGO), now)


def _cycle(said: ScopeCycle, now: datetime) -> Json:
    unread = {
        part: {
            "since": iso(_plausible(one.since, now)),
            "lastRead": None if one.last_read is None else iso(_plausible(one.last_read, now)),
        }
        for part, one in said.unread.items()
    }
    return {**said.to_json(), "unread": unread}


_OWN: Final = PreparedStatement(
    select(
        *(*_COLUMNS, agents.c.read_at, Now().label("now")),
        exists(
            staleness.stale_scopes().where(
                scope_table.c.key == scope_reads.c.scope_key, scope_table.c.holder == agents.c.id
            )
        ).label("has_stale"),
        *(column.label(name) for name, column in incarnations.columns().items()),
    )
    .where(agents.c.id == bindparam("agent"))
    .with_for_update(of=agents)
)
_BEAT: Final = PreparedStatement(
    update(agents)
    .where(agents.c.id == bindparam("agent"))
    .values({name: bindparam(name) for name in ("last_seen", "deadline", "read_at", "swept_since", "cycles")})
)


def leave(tx: Tx, agent_id: str) -> None:
    """An agent stops: what it holds is free at once, and no share is kept for it."""
    scopes.release(tx, agent_id)
    tx.connection.execute(update(agents).where(agents.c.id == agent_id).values(deadline=tx.now))


def wake_number(tx: Tx, agent_id: str, speaker: Access) -> tuple[int, frozenset[tuple[str, str]]]:
    """The number that changes when there is news for an agent, and what it reaches."""
    found = _WAKE.rows(tx.connection, {"agent": agent_id})
    own = only_own(found, agent_id, speaker)
    noted = frozenset((row.provider, row.realm) for row in found if row.provider is not None)
    reached = scopes.reached(own.reaches)
    if noted != reached:  # registered by a server that did not note it yet
        return scopes.wake_number(tx, reached), reached
    return sum(int(row.wake) for row in found), reached


_REACHED: Final = cast(agents.c.reaches, Text).label("reaches")
_WAKE: Final = PreparedStatement(
    select(
        *(agents.c.token_id, agents.c.granted, _REACHED, agent_reaches.c.provider, agent_reaches.c.realm),
        func.coalesce(func.sum(scope_table.c.wake_seq), 0).label("wake"),
    )
    .select_from(agents)
    .outerjoin(agent_reaches, agent_reaches.c.agent_id == agents.c.id)
    .outerjoin(
        scope_table,
        and_(scope_table.c.provider == agent_reaches.c.provider, scope_table.c.realm == agent_reaches.c.realm),
    )
    .where(agents.c.id == bindparam("agent"))
    .group_by(agents.c.token_id, agents.c.granted, _REACHED, agent_reaches.c.provider, agent_reaches.c.realm)
)
