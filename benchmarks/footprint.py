"""What the control plane's database holds and does: bytes per row of every table, and what a claim and a commit cost.

    FRACTAL_DATABASE_URL=postgresql://… python -m benchmarks.footprint [components]

The database must be empty; it is left full. The figures of docs/scaling.md come from here.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import text

from fractal_cloud.control.store import Store, agents, claims, incarnations, livesystems, open_store, reports
from fractal_cloud.control.store.access import Access
from fractal_cloud.control.store.declarations import checked
from fractal_cloud.control.store.livesystems import Deploy
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import (
    Claim,
    Claimed,
    ComponentChange,
    Heartbeat,
    JournalEntry,
    KnownResource,
    Reach,
    Registration,
    Report,
    ScopeReport,
    WorkComponent,
)
from fractal_cloud.rules.grants import EVERYTHING

PER_LIVE_SYSTEM = 100
SCOPES = 200
ACCOUNTS = 10
EVERYWHERE = Access("admin", "admin", EVERYTHING)
VPC = "NetworkAndCompute.IaaS.AwsVpc"


def declarations(count: int) -> Iterator[dict[str, Any]]:
    """LiveSystems of a hundred VPCs each, spread over the scopes."""
    for start in range(0, count, PER_LIVE_SYSTEM):
        name = f"team-{start // PER_LIVE_SYSTEM:05}"
        yield {
            "id": name,
            "environment": f"account-{start // PER_LIVE_SYSTEM % ACCOUNTS}",
            "components": [_vpc(name, index) for index in range(start, start + PER_LIVE_SYSTEM)],
        }


def _vpc(live_system: str, index: int) -> dict[str, Any]:
    parameters = {
        "name": f"{live_system}-network-{index}",
        "region": f"eu-west-{index % (SCOPES // ACCOUNTS) + 1}",
        "cidrBlock": "10.0.0.0/16",
        "enableDnsSupport": True,
        "enableDnsHostnames": True,
    }
    return {"id": f"network-{index}", "type": VPC, "parameters": parameters}


def fill(store: Store, count: int) -> None:
    """Deploy everything, as operators do."""
    with store.read() as tx:
        catalog = store.catalog(tx)
    for document in declarations(count):
        declaration, identities = checked(document, catalog, document["id"])
        with store.write() as tx:
            livesystems.deploy(tx, Deploy(declaration, identities, "ann", frozenset(), must_be_new=False))


def register(store: Store, name: str, account: int) -> None:
    """An agent that reaches one account."""
    reach = Reach(provider="aws", realm=f"{account:012}")
    with store.read() as tx:
        types = [facts for facts in store.catalog(tx).values() if facts.provider == "aws"]
    with store.write() as tx:
        wanted = Registration(
            agent_id=name, environment=f"account-{account}", reaches=[reach], types=types, cycle_seconds=180
        )
        agents.register(tx, wanted, EVERYWHERE)


def settle(store: Store, name: str) -> int:
    """Claim everything, and report it as created, with its intents journalled first."""
    with store.read() as tx:
        seen = incarnations.newest(tx)
    claimed = Claimed.model_validate(claims.claim(store.database, Claim(agent_id=name, last_seen=seen), EVERYWHERE))
    count = 0
    for lease in claimed.leases:
        assert lease.work is not None
        parts = lease.work.components
        for is_done in (False, True):
            sent = ScopeReport(
                scope=lease.scope,
                token=lease.token,
                version=lease.work.version,
                changes=[_change(part) for part in parts] if is_done else [],
                resources=[_resource(lease.scope, part) for part in parts] if is_done else [],
                journal=[_entry(part, is_done=is_done) for part in parts],
            )
            with store.write() as tx:
                reports.report(tx, Report(agent_id=name, last_seen=seen, scopes=[sent]), EVERYWHERE.token_id)
        count += len(parts)
    return count


def _change(part: WorkComponent) -> ComponentChange:
    return ComponentChange(
        uid=part.uid,
        stance=Stance.MANAGED,
        status=Status.ACTIVE,
        owner=part.live_system_id,
        resource_id=f"vpc-{part.uid[:17]}",
        established=True,
        observed_generation=part.generation,
        output_fields={"vpcId": f"vpc-{part.uid[:17]}", "cidrBlock": "10.0.0.0/16", "ownerId": "123456789012"},
    )


def _resource(scope: str, part: WorkComponent) -> KnownResource:
    return KnownResource(
        identity=f"{scope}/{VPC}/{part.name}", owner=part.live_system_id, resource_id=f"vpc-{part.uid[:17]}"
    )


def _entry(part: WorkComponent, *, is_done: bool) -> JournalEntry:
    return JournalEntry(
        id=part.uid,
        uid=part.uid,
        generation=part.generation,
        verb="create",
        reason="S1: nothing bears this name",
        after=dict(part.declaration.parameters),
        outcome="done" if is_done else None,
        request_ids=["59dbff89-35bd-4eac-99ed-be587EXAMPLE"] if is_done else [],
    )


def sizes(store: Store) -> list[tuple[str, int, int, int]]:
    """Rows and bytes of every table: the table with its oversized values, and its indexes."""
    found = []
    with store.read() as tx:
        for table in livesystem_tables(store):
            rows = tx.connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
            if rows:
                sized = text(f"SELECT pg_table_size('{table}'), pg_indexes_size('{table}')")
                found.append((table, rows, *tx.connection.execute(sized).one()))
    return found


def livesystem_tables(store: Store) -> list[str]:
    """All tables of the database."""
    with store.read() as tx:
        query = text("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        return list(tx.connection.execute(query).scalars())


TIMES = "median {:.2f} ms, p99 {:.2f} ms, {:.2f} ms of this process's CPU"


def timed(run: Callable[[], object], times: int) -> tuple[float, float, float]:
    """Median and p99 of a run, and its CPU in this process on average, in milliseconds."""
    taken = []
    used = time.process_time()
    for _ in range(times):
        started = time.perf_counter()
        run()
        taken.append((time.perf_counter() - started) * 1000)
    used = (time.process_time() - used) * 1000 / times
    return statistics.median(taken), sorted(taken)[int(0.99 * (len(taken) - 1))], used


def reporting(store: Store, changes: int) -> Callable[[], None]:
    """A report of so many changed components in one scope; each run changes them again."""
    with store.read() as tx:
        seen = incarnations.newest(tx)
    claimed = Claimed.model_validate(
        claims.claim(store.database, Claim(agent_id="agent-0", last_seen=seen), EVERYWHERE)
    )
    lease = claimed.leases[0]
    assert lease.work is not None
    parts, number = lease.work.components[:changes], iter(range(1_000_000))

    def report() -> None:
        address = f"10.0.0.{next(number)}"
        changed = [replace(_change(part), output_fields={"address": address}) for part in parts]
        sent = ScopeReport(scope=lease.scope, token=lease.token, version=lease.work.version, changes=changed)  # type: ignore[union-attr]
        with store.write() as tx:
            reports.report(tx, Report(agent_id="agent-0", last_seen=seen, scopes=[sent]), EVERYWHERE.token_id)

    return report


def logged(store: Store, run: Callable[[], object], times: int = 50) -> float:
    """Bytes of PostgreSQL's write-ahead log for one run."""

    def position() -> int:
        with store.read() as tx:
            return int(tx.connection.execute(text("SELECT pg_current_wal_insert_lsn() - '0/0'")).scalar_one())

    before = position()
    for _ in range(times):
        run()
    return (position() - before) / times


def notifying(store: Store, topics: bool, threads: int = 8, seconds: float = 3.0) -> float:
    """Commits a second by several threads at once, each of a small write, with or without a notification."""
    until = time.monotonic() + seconds
    done = [0] * threads

    def run(index: int) -> None:
        while time.monotonic() < until:
            with store.write() as tx:
                tx.connection.execute(
                    text("UPDATE agents SET last_seen = now() WHERE id = :id"), {"id": f"agent-{index}"}
                )
                if topics:
                    tx.wake([f"reach:aws/{index}"])
            done[index] += 1

    workers = [threading.Thread(target=run, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(done) / seconds


def main() -> None:
    """Fill, measure, print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    store = open_store(os.environ["FRACTAL_DATABASE_URL"])
    started = time.perf_counter()
    fill(store, count)
    print(f"deployed {count} components in {time.perf_counter() - started:.1f} s")
    for account in range(ACCOUNTS):
        register(store, f"agent-{account}", account)
    started = time.perf_counter()
    settled = sum(settle(store, f"agent-{account}") for account in range(ACCOUNTS))
    print(f"claimed, journalled and reported {settled} in {time.perf_counter() - started:.1f} s")
    with store.read() as tx:
        print(tx.connection.execute(text("SELECT version()")).scalar_one())
    for table, rows, table_bytes, index_bytes in sizes(store):
        print(
            f"{table:22} {rows:>9} rows {table_bytes / rows:8.0f} B/row and {index_bytes / rows:6.0f} B/row in indexes"
        )

    with store.read() as tx:
        seen = incarnations.newest(tx)

    def beat() -> None:
        with store.write() as tx:
            agents.heartbeat(tx, Heartbeat(agent_id="agent-0", last_seen=seen), EVERYWHERE)

    with store.read() as tx:
        held = {row.key: row.version for row in tx.connection.execute(text("SELECT key, version FROM scopes"))}

    def claim() -> None:
        claims.claim(store.database, Claim(agent_id="agent-0", last_seen=seen, held=held), EVERYWHERE)

    print("heartbeat:", TIMES.format(*timed(beat, 300)))
    print("claim without news:", TIMES.format(*timed(claim, 300)))
    report = reporting(store, 10)
    print("report of 10 changes:", TIMES.format(*timed(report, 200)))
    print(f"write-ahead log: heartbeat {logged(store, beat):.0f} B, report of 10 changes {logged(store, report):.0f} B")
    for index in range(1_000 - ACCOUNTS):
        register(store, f"idle-{index}", index % ACCOUNTS)
    print("claim without news beside 1,000 living agents:", TIMES.format(*timed(claim, 100)))
    quiet, loud = notifying(store, topics=False), notifying(store, topics=True)
    print(f"small commits, 8 threads: {quiet:.0f}/s; with a notification each: {loud:.0f}/s")
    store.close()


if __name__ == "__main__":
    main()
