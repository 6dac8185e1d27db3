"""Agents: who runs where, what they reach, and until when they count as alive.

A lease has no deadline of its own: it lives as long as its holder's row here does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Text, and_, bindparam, cast, delete, func, select, update

from fractal_cloud.control.store import hosts, incarnations, offers, scopes, tokens
from fractal_cloud.control.store import realm_bindings as realms_of_names
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import Now, PreparedStatement, insert_rows, upsert
from fractal_cloud.control.store.errors import Forbidden, NotFound
from fractal_cloud.control.store.placement import explain_other, place_newly_reached
from fractal_cloud.control.store.realm_bindings import Name
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.schema import agent_reaches, agents, reaches
from fractal_cloud.control.store.schema import scopes as scope_table
from fractal_cloud.model.host import ANY_HOST
from fractal_cloud.model.wire import Beat, Heartbeat, Registered, Registration

MIN_LEASE_SECONDS = 7.0


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent as it registered; ``realms`` are those it reaches, by their names."""

    id: str
    environment: str
    token_id: str
    realms: Mapping[Name, str]
    cycle_seconds: float
    deadline: datetime
    last_seen: datetime
    public_key: str

    @property
    def hosted(self) -> frozenset[str]:
        """The providers for which it can reach hosts that are declared."""
        return frozenset(provider for provider, name in self.realms if name == ANY_HOST)

    @property
    def reaches(self) -> frozenset[tuple[str, str]]:
        """The realms it reaches, each with its provider."""
        return frozenset((provider, realm) for (provider, _), realm in self.realms.items())

    @property
    def lease_seconds(self) -> float:
        """How long it counts as alive after it was last heard of."""
        return max(2 * self.cycle_seconds, MIN_LEASE_SECONDS)


_COLUMNS = (
    agents.c.id,
    agents.c.environment,
    agents.c.token_id,
    agents.c.reaches,
    agents.c.cycle_seconds,
    agents.c.deadline,
    agents.c.last_seen,
    agents.c.public_key,
)


_ONE: Final = PreparedStatement(select(*_COLUMNS).where(agents.c.id == bindparam("agent")))


def all_agents(tx: Tx) -> list[Agent]:
    """Every agent that ever registered, the dead too."""
    return [_agent(row) for row in tx.connection.execute(select(*_COLUMNS).order_by(agents.c.id))]


def _agent(row: Any) -> Agent:
    return agent_of(row, row.reaches)


def agent_of(row: Any, reached: Iterable[Mapping[str, str]]) -> Agent:
    """An agent from its row, and what it reaches as it said it."""
    return Agent(
        id=row.id,
        environment=row.environment,
        token_id=row.token_id,
        realms={(item["provider"], item["name"]): item["realm"] for item in reached},
        cycle_seconds=row.cycle_seconds,
        deadline=row.deadline,
        last_seen=row.last_seen,
        public_key=row.public_key,
    )


def types_known(tx: Tx) -> dict[str, frozenset[str]]:
    """The component types that each agent knows."""
    return {row.id: frozenset(row.types) for row in tx.connection.execute(select(agents.c.id, agents.c.types))}


def registrations(tx: Tx) -> dict[str, datetime | None]:
    """When each agent registered; None for one that registered before that was kept."""
    query = select(agents.c.id, agents.c.registered_at)
    return {row.id: row.registered_at for row in tx.connection.execute(query)}


def described(agent: Agent, now: datetime) -> Json:
    """An agent as the API shows it."""
    return {
        "id": agent.id,
        "environment": agent.environment,
        "reaches": [
            {"provider": p, "name": name, "realm": realm} for (p, name), realm in sorted(agent.realms.items()) if realm
        ],
        "cycleSeconds": agent.cycle_seconds,
        "lastSeen": agent.last_seen,
        "alive": agent.deadline > now,
    }


def get(tx: Tx, agent_id: str, token_id: str | None = None) -> Agent:
    """An agent that has registered; with a token, only if it registered with that one."""
    row = only_own(_ONE.rows(tx.connection, {"agent": agent_id}), agent_id, token_id)
    return _agent(row)


def only_own(found: Sequence[Any], agent_id: str, token_id: str | None) -> Any:
    """The first of the rows found of an agent, if there is one and it registered with that token."""
    if not found:
        raise NotFound(f"agent {agent_id!r} is not known here: register it first")
    if token_id is not None and found[0].token_id != token_id:
        raise Forbidden(f"agent {agent_id!r} registered with another token: use that one, or register again")
    return found[0]


def register(tx: Tx, registration: Registration, token_id: str) -> Registered:
    """Take an agent in: its reach settles where components of its environment are looked for."""
    lease = max(2 * registration.cycle_seconds, MIN_LEASE_SECONDS)
    tokens.refuse_waiting(tx, token_id)
    _refuse_name_of_another(tx, registration.agent_id, token_id)
    offers.register(tx, registration.types)
    scopes.release(tx, registration.agent_id)  # a former life of this agent must not be able to report any more
    reached = {(reach.provider, reach.name): reach.realm for reach in registration.reaches if reach.realm}
    bound = enter(tx, registration.agent_id, registration.environment, reached)
    upsert(
        tx.connection,
        agents,
        [
            {
                "id": registration.agent_id,
                "environment": registration.environment,
                "token_id": token_id,
                "reaches": [reach.to_json() for reach in registration.reaches],
                "types": sorted(facts.type for facts in registration.types),
                "cycle_seconds": registration.cycle_seconds,
                "version": registration.version,
                "public_key": registration.public_key,
                "registered_at": tx.now,
                "last_seen": tx.now,
                "deadline": tx.now + timedelta(seconds=lease),
                "read_at": {},
                "swept_since": {},
            }
        ],
    )
    note_reaches(tx, registration.agent_id, {(reach.provider, reach.realm) for reach in registration.reaches})
    others = [
        reach for reach in registration.reaches if bound.get((reach.provider, reach.name), reach.realm) != reach.realm
    ]
    return Registered(now=tx.now, lease_seconds=lease, last_seen=incarnations.newest(tx), others=others)


def enter(tx: Tx, agent_id: str, environment: str, reached: Mapping[Name, str]) -> dict[Name, str]:
    """An agent reaches these realms: settle there what belongs there, and say of the rest why nobody tends it.

    Returns the realm that every name is bound to, those of declared clusters too. Bound is the one first reached; what
    is in it stays in it, whatever is reached now (S26).
    """
    agents_own = {key: realm for key, realm in reached.items() if realms_of_names.is_agents_own(key[1])}
    realms_of_names.note_agents_own(tx, environment, agents_own)
    named = {key: realm for key, realm in reached.items() if key not in agents_own}
    named |= hosts.names_of(tx, environment, reached)
    bound = realms_of_names.contact(tx, agent_id, environment, named)
    place_newly_reached(tx, environment, bound)
    for (provider, name), realm in named.items():
        before = bound[provider, name]
        if before != realm and not realms_of_names.is_reached(tx, provider, before, but=agent_id):
            explain_other(tx, environment, (provider, name), before, realm)
    return bound


def note_reaches(tx: Tx, agent_id: str, reached: Iterable[tuple[str, str]]) -> None:
    """Have an agent found by the realms it reaches."""
    tx.connection.execute(delete(agent_reaches).where(agent_reaches.c.agent_id == agent_id))
    rows = [{"agent_id": agent_id, "provider": provider, "realm": realm} for provider, realm in sorted(reached)]
    insert_rows(tx.connection, agent_reaches, rows)


def _refuse_name_of_another(tx: Tx, agent_id: str, token_id: str) -> None:
    """An agent's name is its token's as long as it is alive: nobody else may speak for it."""
    query = select(agents.c.token_id).where(agents.c.id == agent_id, agents.c.deadline > tx.now)
    other = tx.connection.execute(query).scalar()
    if other is not None and other != token_id:
        raise Forbidden(f"agent {agent_id!r} is alive and registered with another token: choose another agent id")


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


def heartbeat(tx: Tx, beat: Heartbeat, token_id: str) -> Beat:
    """One row per agent and cycle: it is alive, and has read these scopes.

    The agent's row is held first: who claims a dead agent's scopes holds it too, and what was claimed before is seen
    here as lost.
    """
    asked = {"agent": beat.agent_id, incarnations.SEEN: beat.last_seen.event}
    own = only_own(_OWN.rows(tx.connection, asked), beat.agent_id, token_id)
    incarnations.check(own, beat.last_seen)
    tx.set_time(own.now)
    agent, known = _agent(own), own.read_at
    held = scopes.held_by(tx, agent.id)
    news = beat.to_json()
    alive = {
        "agent": agent.id,
        "last_seen": tx.now,
        "deadline": tx.now + timedelta(seconds=agent.lease_seconds),
        "read_at": {key: at for key, at in {**known, **news["readAt"]}.items() if key in held},
        "swept_since": {key: at for key, at in news["sweptSince"].items() if key in held},
    }
    _BEAT.run(tx.connection, alive)
    lost = set(beat.read_at) - set(held)
    lost |= {key for key, token in beat.held.items() if key not in held or held[key].token != token}
    return Beat(now=tx.now, lost=sorted(lost))


_OWN: Final = PreparedStatement(
    select(
        *(*_COLUMNS, agents.c.read_at, Now().label("now")),
        *(column.label(name) for name, column in incarnations.columns().items()),
    )
    .where(agents.c.id == bindparam("agent"))
    .with_for_update(of=agents)
)
_BEAT: Final = PreparedStatement(
    update(agents)
    .where(agents.c.id == bindparam("agent"))
    .values({name: bindparam(name) for name in ("last_seen", "deadline", "read_at", "swept_since")})
)


def leave(tx: Tx, agent_id: str) -> None:
    """An agent stops: what it holds is free at once, and no share is kept for it."""
    scopes.release(tx, agent_id)
    tx.connection.execute(update(agents).where(agents.c.id == agent_id).values(deadline=tx.now))


def last_reads(tx: Tx, agent_ids: Iterable[str]) -> dict[str, dict[str, str]]:
    """When each of these agents last read its scopes, by agent and scope."""
    query = select(agents.c.id, agents.c.read_at).where(agents.c.id.in_(list(agent_ids)))
    return {row.id: row.read_at for row in tx.connection.execute(query)}


def wake_number(tx: Tx, agent_id: str, token_id: str) -> tuple[int, frozenset[tuple[str, str]]]:
    """The number that changes when there is news for an agent, and what it reaches."""
    found = _WAKE.rows(tx.connection, {"agent": agent_id})
    own = only_own(found, agent_id, token_id)
    noted = frozenset((row.provider, row.realm) for row in found if row.provider is not None)
    reached = scopes.reached(own.reaches)
    if noted != reached:  # registered by a server that did not note it yet
        return scopes.wake_number(tx, reached), reached
    return sum(int(row.wake) for row in found), reached


_REACHED: Final = cast(agents.c.reaches, Text).label("reaches")
_WAKE: Final = PreparedStatement(
    select(
        *(agents.c.token_id, _REACHED, agent_reaches.c.provider, agent_reaches.c.realm),
        func.coalesce(func.sum(scope_table.c.wake_seq), 0).label("wake"),
    )
    .select_from(agents)
    .outerjoin(agent_reaches, agent_reaches.c.agent_id == agents.c.id)
    .outerjoin(
        scope_table,
        and_(scope_table.c.provider == agent_reaches.c.provider, scope_table.c.realm == agent_reaches.c.realm),
    )
    .where(agents.c.id == bindparam("agent"))
    .group_by(agents.c.token_id, _REACHED, agent_reaches.c.provider, agent_reaches.c.realm)
)
