"""What an agent's claim needs of the database, in one snapshot: where nothing is new, nothing else is read.

One statement of one text, with the agent's id as all it is given: PostgreSQL plans it once. Nothing is locked: what is
found here is a reason to write, or not to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pydantic_core import from_json
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    null,
    select,
    union_all,
)

from fractal_cloud.control.store import agents, balancing, hosts, incarnations, plan_tasks, scopes
from fractal_cloud.control.store.access import Access
from fractal_cloud.control.store.agents import Agent
from fractal_cloud.control.store.balancing import Place, Pool, Reaching, Realm
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import Now, PreparedStatement, has_clock
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.schema import agent_reaches, departures
from fractal_cloud.control.store.schema import agents as agent_table
from fractal_cloud.control.store.schema import plans as plan_table
from fractal_cloud.control.store.schema import scopes as scope_table
from fractal_cloud.control.store.scopes import ScopeRow
from fractal_cloud.model.wire import LastSeen


@dataclass(frozen=True, slots=True)
class ClaimSnapshot:
    """An agent, and all that concerns it.

    ``beyond``: the scopes it holds in which there is an environment that its token is not bound to (A1).
    ``pools``: what it may have a share of, while it is alive. ``wake``: as ``scopes.wake_number``; ``hosts``: as
    ``hosts.number``. ``departures``: the oldest version in which somebody left, by scope it holds. ``is_noted``:
    whether it is found by the realms it reaches. ``last_seen``: what the agent is to keep, as ``LastSeen`` spells it.
    """

    agent: Agent
    held: Mapping[str, ScopeRow]
    beyond: Collection[str]
    pools: list[Pool]
    wake: int
    hosts: int
    departures: Mapping[str, int]
    is_plan_waiting: bool
    is_noted: bool
    last_seen: Json

    def has_heard(self, versions: Mapping[str, int]) -> bool:
        """Whether departures are kept of which the agent, who has these versions, knows already."""
        return any(oldest <= versions[key] for key, oldest in self.departures.items() if key in versions)


def read_snapshot(tx: Tx, agent_id: str, seen: LastSeen, speaker: Access | None = None) -> ClaimSnapshot:
    """Read all that a claim needs by one statement; refused as ``agents.get`` and ``incarnations.check`` refuse."""
    now = None if tx.clock is None and has_clock(tx.connection) else tx.now
    found: dict[str, list[Any]] = {kind: [] for kind in _PARTS}
    for row in _SNAPSHOT.rows(tx.connection, {"agent": agent_id, "now": now, incarnations.SEEN: seen.event}):
        found[row.kind].append(row)
    own = agents.only_own(found["agent"], agent_id, speaker)
    incarnations.check(own, seen)
    tx.set_time(own.now)
    agent = agents.agent_of(own, from_json(own.reaches), from_json(own.environments))
    realms = {(row.provider, row.realm): row for row in found["realm"]}
    held = {row.id: _held(row, agent) for row in found["held"]}
    return ClaimSnapshot(
        agent,
        held=held,
        beyond=scopes.beyond(tx, held),
        pools=_pools(tx, agent, found) if agent.deadline > tx.now else [],
        wake=sum(int(row.number) for row in realms.values()),
        hosts=_hosts_number(tx, agent, realms),
        departures={row.id: row.oldest for row in found["held"] if row.oldest is not None},
        is_plan_waiting=any(
            plan_tasks.is_waiting(row.created_at, row.handed_at, tx.now)
            and not agent.lacks(from_json(row.environments))
            for row in found["plan"]
        ),
        is_noted=realms.keys() == agent.reaches,
        last_seen=incarnations.last_seen(own, tx),
    )


def _hosts_number(tx: Tx, agent: Agent, realms: Mapping[Realm, Any]) -> int:
    """As ``hosts.number``, from the rows of the realms without a name, where the agent's reaches are noted."""
    nameless = {(provider, "") for provider in agent.hosted}
    if nameless <= realms.keys():
        return sum(int(realms[realm].version) for realm in nameless)
    return hosts.number(tx, agent.environment, agent.hosted)


def _held(row: Any, agent: Agent) -> ScopeRow:
    return ScopeRow(
        key=row.id,
        provider=row.provider,
        realm=row.realm,
        holder=agent.id,
        token=row.number,
        version=row.version,
        holder_token_id=agent.token_id,
        deadline=agent.deadline,
        label=row.label,
        environments=sorted(agent.environments),
    )


def _pools(tx: Tx, agent: Agent, found: Mapping[str, list[Any]]) -> list[Pool]:
    """The pools in the realms it reaches: what there is, how many of the living reach it, and who holds how much."""
    reaching: Counter[Reaching] = Counter()
    for row in found["reach"]:
        reaching[Reaching(scopes.reached(row.reaches), _patterns(row.environments))] += row.number
    with_work = [row for row in found["pool"] if row.label is not None]
    counts = [(Place(row.provider, row.realm, row.label), row.id, row.number) for row in with_work]
    inside = scopes.environments_of(tx, {place.label for place, _, _ in counts})
    return balancing.pools(Reaching(agent.reaches, agent.environments), reaching, counts, inside)


@lru_cache(4_096)
def _patterns(text: str) -> frozenset[str]:
    return frozenset(from_json(text))


# --- the statement

_mine = agent_reaches.alias("mine")
_others = agent_reaches.alias("others")
_IS_MINE: Final = _mine.c.agent_id == bindparam("agent")
_IN_MINE: Final = and_(scope_table.c.provider == _mine.c.provider, scope_table.c.realm == _mine.c.realm)
_REACHES: Final = cast(agent_table.c.reaches, Text)
_PATTERNS: Final = cast(agent_table.c.environments, Text)
# The time of whoever has one to give, else the database's.
_IS_ALIVE: Final = agent_table.c.deadline > func.coalesce(bindparam("now", type_=agent_table.c.deadline.type), Now())
# Every column that any part has; the type of each is that of the part ``agent``, which comes first.
_COLUMNS: Final = (
    *("id", "provider", "realm", "label", "environment", "token_id", "granted", "environments", "public_key"),
    *("has_news", "reaches", "cycle_seconds"),
    *("number", "version", "oldest", "deadline", "last_seen", "created_at", "handed_at", "now"),
    *("key_is_news", "key_withdrawn"),
    *incarnations.COLUMNS,
)


def _part(kind: str, **columns: ColumnElement[Any]) -> Select[Any]:
    """One SELECT of the UNION: rows of a kind with these columns, and NULL in all the others."""
    every = [columns.get(name, null()).label(name) for name in _COLUMNS]
    return select(literal_column(f"'{kind}'", Text).label("kind"), *every)


def _agent() -> Select[Any]:
    """The agent itself; columns of the other parts are NULL here, of the type they have there."""
    c = agent_table.c
    no_text, no_number, no_time = cast(null(), Text), cast(null(), BigInteger), cast(null(), c.deadline.type)
    return _part(
        "agent",
        id=c.id,
        provider=no_text,
        realm=no_text,
        label=no_text,
        environment=c.environment,
        token_id=c.token_id,
        granted=c.granted,
        environments=_PATTERNS,
        public_key=c.public_key,
        has_news=c.has_news,
        reaches=_REACHES,
        cycle_seconds=c.cycle_seconds,
        number=no_number,
        version=no_number,
        oldest=no_number,
        deadline=c.deadline,
        last_seen=c.last_seen,
        created_at=no_time,
        handed_at=no_time,
        now=Now(),
        key_is_news=c.key_is_news,
        key_withdrawn=c.key_withdrawn,
        **incarnations.columns(),
    ).where(c.id == bindparam("agent"))


def _scopes_held() -> Select[Any]:
    c = scope_table.c
    oldest = select(func.min(departures.c.version)).where(departures.c.scope_key == c.key).scalar_subquery()
    return _part(
        "held",
        id=c.key,
        provider=c.provider,
        realm=c.realm,
        label=scopes.label(),
        number=c.token,
        version=c.version,
        oldest=oldest,
    ).where(c.holder == bindparam("agent"))


def _realms() -> Select[Any]:
    """The realms it reaches; of one without a name, the version of the environment's hosts."""
    c = scope_table.c
    counts_hosts = and_(c.realm == "", c.place == agent_table.c.environment)
    return (
        _part(
            "realm",
            provider=_mine.c.provider,
            realm=_mine.c.realm,
            number=cast(func.coalesce(func.sum(c.wake_seq), 0), BigInteger),
            version=cast(func.coalesce(func.sum(case((counts_hosts, c.version), else_=0)), 0), BigInteger),
        )
        .select_from(_mine)
        .join(agent_table, agent_table.c.id == _mine.c.agent_id)
        .outerjoin(scope_table, _IN_MINE)
        .where(_IS_MINE)
        .group_by(_mine.c.provider, _mine.c.realm)
    )


def _with_work() -> Select[Any]:
    """Scopes with work in these realms, by the environments in them and by who of the living holds them."""
    c = scope_table.c
    return (
        _part(
            "pool", provider=c.provider, realm=c.realm, label=scopes.label(), id=agent_table.c.id, number=func.count()
        )
        .select_from(_mine)
        .join(scope_table, _IN_MINE)
        .outerjoin(agent_table, and_(agent_table.c.id == c.holder, _IS_ALIVE))
        .where(_IS_MINE)
        .group_by(c.provider, c.realm, literal_column("label"), agent_table.c.id)
    )


def _reaching() -> Select[Any]:
    """What those of the living reach who reach one of these realms; not the nameless one, in which nothing ever is."""
    theirs = and_(_others.c.provider == _mine.c.provider, _others.c.realm == _mine.c.realm)
    ids = select(_others.c.agent_id).join(_mine, theirs).where(_IS_MINE, _mine.c.realm != "")
    return (
        _part("reach", reaches=_REACHES, environments=_PATTERNS, number=func.count())
        .select_from(agent_table)
        .where(_IS_ALIVE, agent_table.c.id.in_(ids))
        .group_by(_REACHES, _PATTERNS)
    )


def _plans() -> Select[Any]:
    c = plan_table.c
    return (
        _part("plan", environments=cast(c.environments, Text), created_at=c.created_at, handed_at=c.handed_at)
        .join(_mine, and_(c.provider == _mine.c.provider, c.realm == _mine.c.realm))
        .where(_IS_MINE, c.result.is_(None))
    )


_PARTS: Final[Mapping[str, Select[Any]]] = {
    "agent": _agent(),
    "held": _scopes_held(),
    "realm": _realms(),
    "pool": _with_work(),
    "reach": _reaching(),
    "plan": _plans(),
}
_SNAPSHOT: Final = PreparedStatement(union_all(*_PARTS.values()))
