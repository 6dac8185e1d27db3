"""Fills a control plane's database with as many components as asked for, as if they had been deployed and settled.

One LiveSystem is really deployed, claimed and reported on; its rows are then copied inside the database, each copy
under names of its own. So every row has the shape that the product gives it, and a million take a minute or two. The
agents that hold all this are made in the same way: as if each had registered and claimed its account.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Integer,
    Table,
    Text,
    cast,
    delete,
    func,
    literal,
    select,
    text,
    update,
)

from fractal_cloud.control.store import Store, agents, claims, incarnations, livesystems, reports, schema, tokens
from fractal_cloud.control.store.access import Access
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.declarations import checked
from fractal_cloud.control.store.driver import insert_missing, insert_rows, upsert
from fractal_cloud.control.store.livesystems import Deploy
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import (
    Claim,
    Claimed,
    ComponentChange,
    KnownResource,
    Reach,
    Registration,
    Report,
    ScopeReport,
    WorkComponent,
)
from fractal_cloud.rules.grants import EVERYTHING, Grants

CYCLE_SECONDS: Final = 180.0
PER_LIVE_SYSTEM: Final = 100
REGIONS: Final = 4
VPC: Final = "NetworkAndCompute.IaaS.AwsVpc"
_TEAM, _ACCOUNT = "team-0000000", "900000000000"
_AGENT: Final = "first"
_EVERYWHERE: Final = Access("admin", "admin", EVERYTHING)
_COPIED: Final = (
    *(schema.live_systems, schema.live_system_scopes, schema.live_system_environments, schema.mutations),
    *(schema.components, schema.refers, schema.resources),
)


def account(number: int) -> str:
    """The account of one agent; those of the agents are numbered from 1."""
    return str(int(_ACCOUNT) + number)


def environment(number: int) -> str:
    """The environment of one agent."""
    return f"env-{account(number)}"


def fill(store: Store, components: int, accounts: int) -> None:
    """Put so many components, a hundred per LiveSystem, evenly into so many accounts of four regions each."""
    _settle_one(store)
    is_sqlite = _is_sqlite(store)
    with store.write() as tx:
        if not is_sqlite:
            tx.connection.execute(text("SET LOCAL statement_timeout = 0"))
            tx.connection.execute(text("SET LOCAL maintenance_work_mem = '256MB'"))
        with _without_indexes(tx.connection):
            for table in _COPIED:
                copy = _copy(table, is_sqlite=is_sqlite, accounts=accounts)
                tx.connection.execute(copy, {"many": components // PER_LIVE_SYSTEM})
            tx.connection.execute(_copy(schema.scopes, is_sqlite=is_sqlite, accounts=0), {"many": accounts})
    if not is_sqlite:
        with store.read() as tx:
            tx.connection.execute(text("SET statement_timeout = 0"))
            tx.connection.execute(text("VACUUM ANALYZE"))


@dataclass(slots=True)
class Held:
    """What one agent has: its token of access, the leases of its scopes, the versions of their work, and components."""

    secret: str
    last_seen: dict[str, Any]
    tokens: dict[str, int] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    parts: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))


def lease(store: Store, accounts: int) -> list[Held]:
    """Let an agent of its own hold every account, from now on for as long as a lease lasts."""
    with store.write() as tx:
        connection = tx.connection
        first = connection.execute(select(schema.agents).where(schema.agents.c.id == _AGENT)).mappings().one()
        secrets = [tokens.new_secret() for _ in range(accounts)]
        connection.execute(delete(schema.tokens))
        insert_rows(connection, schema.tokens, [_token(n, secret, tx.now) for n, secret in enumerate(secrets, 1)])
        alive = {"last_seen": tx.now, "deadline": tx.now + timedelta(seconds=2 * CYCLE_SECONDS)}
        upsert(connection, schema.agents, [{**first, **_agent(n), **alive} for n in range(1, accounts + 1)])
        reached = [{"agent_id": f"agent-{n}", "provider": "aws", "realm": account(n)} for n in range(1, accounts + 1)]
        insert_missing(connection, schema.agent_reaches, reached)
        number = func.substr(schema.scopes.c.realm, len(_ACCOUNT) - 6)
        whose = literal("agent-") + cast(cast(number, Integer), Text)
        theirs = schema.scopes.c.realm != _ACCOUNT
        connection.execute(update(schema.scopes).where(theirs).values(holder=whose, token=schema.scopes.c.token + 1))
        return _held(tx, secrets)


def _token(number: int, secret: str, now: datetime) -> dict[str, Any]:
    known = {"id": f"token-{number}", "hash": tokens.hashed(secret), "name": f"agent-{number}", "created_at": now}
    granted = _granted(number)
    bound = {
        "providers": sorted(granted.providers),
        "environments": sorted(granted.environments),
        "realms": sorted(granted.realms),
    }
    return {**known, **bound, "role": "agent", "created_by": "benchmark"}


def _granted(number: int) -> Grants:
    """What the token of an agent is bound to: its own account."""
    return Grants.of(["aws"], [environment(number)], [account(number)])


def _agent(number: int) -> dict[str, Any]:
    reach = Reach(provider="aws", realm=account(number)).to_json()
    return {
        "id": f"agent-{number}",
        "environment": environment(number),
        "token_id": f"token-{number}",
        "token_name": f"agent-{number}",
        "granted": _granted(number).digest,
        "environments": [environment(number)],
        "reaches": [reach],
    }


def _held(tx: Tx, secrets: list[str]) -> list[Held]:
    """What stands, by agent; of each scope a hundred components, which is more than anybody reports on here."""
    connection, seen = tx.connection, incarnations.newest(tx).to_json()
    found = {f"agent-{number}": Held(secret, seen) for number, secret in enumerate(secrets, 1)}
    table = schema.components.c
    some = select(table.uid, table.live_system_id, table.generation).limit(100)
    for row in connection.execute(select(schema.scopes).where(schema.scopes.c.holder.in_(found))):
        held = found[row.holder]
        held.tokens[row.key], held.versions[row.key] = row.token, row.version
        for uid, live_system_id, generation in connection.execute(some.where(table.scope_key == row.key)):
            held.parts[row.key].append({"uid": uid, "liveSystemId": live_system_id, "generation": generation})
    return list(found.values())


@contextmanager
def _without_indexes(connection: Connection) -> Iterator[None]:
    """Drop the indexes of what is copied, and build them when all is there."""
    indexes = [index for table in _COPIED for index in table.indexes]
    for index in indexes:
        index.drop(connection)
    yield
    for index in indexes:
        index.create(connection)


def _is_sqlite(store: Store) -> bool:
    with store.read() as tx:
        return tx.connection.dialect.name == "sqlite"


def _settle_one(store: Store) -> None:
    """Deploy the LiveSystem that is copied, and report all of it as created."""
    with store.read() as tx:
        catalog = store.catalog(tx)
    document = {"id": _TEAM, "environment": environment(0), "components": [_vpc(i) for i in range(PER_LIVE_SYSTEM)]}
    declaration, identities = checked(document, catalog, _TEAM)
    types = [facts for facts in catalog.values() if facts.provider == "aws"]
    with store.write() as tx:
        reach = Reach(provider="aws", realm=_ACCOUNT)
        wanted = Registration(
            agent_id=_AGENT, environment=environment(0), reaches=[reach], types=types, cycle_seconds=CYCLE_SECONDS
        )
        agents.register(tx, wanted, _EVERYWHERE)
        livesystems.deploy(tx, Deploy(declaration, identities, "ann"))
    with store.read() as tx:
        seen = incarnations.newest(tx)
    claimed = Claimed.model_validate(claims.claim(store.database, Claim(agent_id=_AGENT, last_seen=seen), _EVERYWHERE))
    for lease in claimed.leases:
        assert lease.work is not None
        sent = ScopeReport(
            scope=lease.scope,
            token=lease.token,
            version=lease.work.version,
            changes=[_active(part) for part in lease.work.components],
            resources=[_resource(lease.scope, part) for part in lease.work.components],
        )
        with store.write() as tx:
            reports.report(tx, Report(agent_id=_AGENT, last_seen=seen, scopes=[sent]), "admin")
    with store.write() as tx:
        agents.leave(tx, _AGENT)


def _vpc(index: int) -> dict[str, Any]:
    """Every fifth stands for itself, the four after it depend on it; the first of each region on the very first."""
    per_region = PER_LIVE_SYSTEM // REGIONS
    leader = 0 if index % per_region == 0 else index - index % 5
    parameters = {
        "name": f"{_TEAM}-network-{index}",
        "region": f"eu-west-{index // per_region + 1}",
        "cidrBlock": "10.0.0.0/16",
        "enableDnsSupport": True,
        "enableDnsHostnames": True,
    }
    needed = [f"network-{leader}"] if leader != index else []
    return {"id": f"network-{index}", "type": VPC, "parameters": parameters, "dependencies": needed}


def _active(part: WorkComponent) -> ComponentChange:
    name = f"vpc-{part.uid[:17]}"
    return ComponentChange(
        uid=part.uid,
        stance=Stance.MANAGED,
        status=Status.ACTIVE,
        owner=part.live_system_id,
        resource_id=name,
        established=True,
        observed_generation=part.generation,
        output_fields={"vpcId": name, "cidrBlock": "10.0.0.0/16", "ownerId": _ACCOUNT},
    )


def _resource(scope: str, part: WorkComponent) -> KnownResource:
    identity = f"{VPC}:{scope}:{part.name}"
    return KnownResource(identity=identity, owner=part.live_system_id, resource_id=f"vpc-{part.uid[:17]}")


def _copy(table: Table, *, is_sqlite: bool, accounts: int) -> Any:
    """The statement that copies the rows of the one LiveSystem ``many`` times; without accounts: into each account."""
    number = "printf('%08x', k)" if is_sqlite else "lpad(to_hex(k), 8, '0')"
    padded = "printf('%07d', k)" if is_sqlite else "lpad(CAST(k AS text), 7, '0')"
    numbered = f"k % {accounts} + 1" if accounts else "k"
    where = f"CAST({_ACCOUNT} + {numbered} AS text)"
    columns = ", ".join(f'"{column.name}"' for column in table.c)
    values = ", ".join(_copied(column, number, padded, where) for column in table.c)
    series = "WITH RECURSIVE series(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM series WHERE k < :many)"
    one = f"SELECT * FROM {table.name} WHERE {_ours(table)}"
    return text(f"{series} INSERT INTO {table.name} ({columns}) SELECT {values} FROM ({one}) AS one, series")


def _ours(table: Table) -> str:
    column = next(
        c
        for c in ("live_system_id", "owner", "realm", "id")
        if c in table.c and (c, table.name) != ("realm", "components")
    )
    return f"{column} = '{_ACCOUNT if column == 'realm' else _TEAM}'"


def _copied(column: Column[Any], number: str, padded: str, where: str) -> str:
    """One column of a copy: ids of rows get the copy's number at their end, names its team and account."""
    name = f'one."{column.name}"'
    if column.name in ("uid", "mutation_id") or (column.name == "id" and column.table.name == "mutations"):
        return f"substr({name}, 1, 24) || {number}"
    if not isinstance(column.type, Text | JSON):
        return name
    plain = f"CAST({name} AS text)" if isinstance(column.type, JSON) else name
    renamed = f"replace(replace({plain}, '{_TEAM}', 'team-' || {padded}), '{_ACCOUNT}', {where})"
    return f"CAST({renamed} AS json)" if isinstance(column.type, JSON) and "printf" not in number else renamed
