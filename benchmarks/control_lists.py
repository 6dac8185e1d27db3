"""What a page of each list costs at 10,000 LiveSystems with 1,000,000 components: time, CPU and bytes.

The server is `fractal serve` in a process of its own, on PostgreSQL. Of a fleet that is well, some components are made
to fail, to be missing or held by hand, and some scopes to be read by nobody, as on a bad day.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx2 as httpx
from sqlalchemy import text

from benchmarks.control_load import Filled, filled_once, sizes
from benchmarks.control_planes import TOKEN, Planes, serving
from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result
from fractal_cloud.control.store import Store, open_store, summaries

MOST_MS: Final = 100.0
MOST_BYTES: Final = 100_000
ROUNDS: Final = 15
WARMING: Final = 6
"""Requests before any counts: PostgreSQL plans a statement anew the first times."""
EVENTS: Final = 200_000
PER_PAGE: Final = 50

_HELD: Final = """json_build_object('since', '2026-11-18T0' || CAST(position % 10 AS text) || ':14:00Z', 'by', 'anna',
    'reason', 'INC-4711', 'until', NULL)"""
_BAD_DAY: Final = (
    "UPDATE components SET status = 'Failed' WHERE component_id = 'network-3' AND live_system_id LIKE '%00'",
    "UPDATE components SET status = 'Missing' WHERE component_id = 'network-7' AND live_system_id LIKE '%50'",
    f"""UPDATE components SET status = 'ManualOverride', stance = 'override', override = {_HELD},
        overdue = live_system_id LIKE '%77'
    WHERE component_id IN ('network-9', 'network-11') AND live_system_id LIKE '%7'""",
    """INSERT INTO scope_reads (scope_key, unread, stale_since) SELECT key, '{}', now() FROM scopes
    WHERE CAST(right(realm, 2) AS integer) = 17 ON CONFLICT DO NOTHING""",
    f"""INSERT INTO events (seq, id, at, live_system_id, component_id, kind, "by", message)
    SELECT value + k, lpad(to_hex(k), 16, '0'), now() - make_interval(secs => {EVENTS} - k),
        'team-' || lpad(CAST(k % 10000 + 1 AS text), 7, '0'), 'network-' || CAST(k % 100 AS text),
        CASE WHEN k % 20000 = 0 THEN 'GlassBroken' ELSE 'StatusChanged' END,
        CASE WHEN k % 20000 = 0 THEN 'anna' ELSE 'agent-1' END, 'a status changed'
    FROM counters, generate_series(1, {EVENTS}) AS k WHERE name = 'events'""",
    f"UPDATE counters SET value = value + {EVENTS} WHERE name = 'events'",
)
_PATHS: Final = (
    "/livesystems",
    "/livesystems?sort=worst",
    "/livesystems?sort=-lastUpdated",
    "/livesystems?status=Failed&sort=worst",
    "/livesystems?environment=env-900000000017&sort=worst",
    "/livesystems?type=AwsVpc&provider=aws&sort=worst",
    "/livesystems?type=AwsSubnet",
    "/livesystems?owner=team-0000017",
    "/livesystems?override=overdue&sort=worst",
    "/livesystems?stale=true&sort=worst",
    "/livesystems?since=2026-01-01T00:00:00Z",
    "/livesystems?search=0017",
    "/livesystems?search=900000000017",
    "/livesystems?search=vpc-0000",
    "/livesystems?search=nothing-like-this",
    "/components",
    "/components?status=Failed",
    "/components?status=Failed&status=Missing&environment=env-900000000017",
    "/components?type=AwsVpc",
    "/components?owner=team-0000017",
    "/components?stale=true",
    "/components?override=true&sort=override",
    "/components?override=overdue&sort=override&by=anna",
    "/components?search=network-77",
    "/components?search=network-9999",
    "/components?search=0017",
    "/events",
    "/events?kind=GlassBroken",
    "/events?by=anna&since=2026-01-01T00:00:00Z",
    "/events?environment=env-900000000017",
    "/events?search=team-0000017",
    "/ui",
    "/ui?status=Failed",
    "/ui/agents",
    "/ui/scopes",
    "/ui/overrides",
)


def spoil(store: Store) -> None:
    """Make a bad day of a fleet that is well."""
    with store.write() as tx:
        tx.connection.execute(text("SET LOCAL statement_timeout = 0"))
        for statement in _BAD_DAY:
            tx.connection.execute(text(statement))
        changed = "SELECT DISTINCT live_system_id FROM components WHERE status <> 'Active' OR override IS NOT NULL"
        ids = list(tx.connection.execute(text(changed)).scalars())
        summaries.recount(tx.connection, ids, tx.now)
    with store.read() as tx:
        tx.connection.execute(text("SET statement_timeout = 0"))
        tx.connection.execute(text("VACUUM ANALYZE"))


def _client(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60, follow_redirects=True)


def _address(path: str) -> str:
    if path.startswith("/ui"):
        return path
    return f"{path}{'&' if '?' in path else '?'}limit={PER_PAGE}"


def _measured(client: httpx.Client, planes: Planes, path: str) -> dict[str, Any]:
    address = _address(path)
    for _ in range(WARMING):
        client.get(address).raise_for_status()
    before, taken, size = sum(planes.cpu_seconds()), [], 0
    for _ in range(ROUNDS):
        started = time.perf_counter()
        answer = client.get(address)
        taken.append(1000 * (time.perf_counter() - started))
        size = max(size, len(answer.content))
    used = 1000 * (sum(planes.cpu_seconds()) - before) / ROUNDS
    return {
        "median ms": round(statistics.median(taken), 1),
        "slowest ms": round(max(taken), 1),
        "CPU ms each": round(used, 1),
        "bytes": size,
    }


def lists(stage: Stage) -> Iterator[Result]:
    """Every list with every filter and order, a page of 50 each, and the first page for people."""
    filled = filled_once(stage, "postgresql", max(sizes()))
    yield from _of(filled)


def _of(filled: Filled) -> Iterator[Result]:
    store = open_store(filled.url)
    try:
        spoil(store)
    finally:
        store.close()
    with (
        TemporaryDirectory() as folder,
        serving(filled.url, 1, Path(folder)) as planes,
        _client(planes.urls[0]) as client,
    ):
        client.get("/ui", params={"token": TOKEN})  # logs in: pages take a cookie
        for path in _PATHS:
            figures = _measured(client, planes, path)
            bars = (
                Bar("CPU of server and PostgreSQL", figures["CPU ms each"], MOST_MS, "ms", most=1.0),
                Bar("bytes of the page", figures["bytes"], MOST_BYTES, "bytes", most=1.0),
            )
            yield Result("control-lists", path, filled.components, figures, bars)


JOBS: Final = (Job("control-lists", "a page of every list of 10,000 LiveSystems with 1,000,000 components", lists, 83),)
