"""Ten processes start together on one empty PostgreSQL: one history, and nobody fails."""

from __future__ import annotations

import multiprocessing

from alembic.script import ScriptDirectory
from sqlalchemy import text

from fractal_cloud.control.store import open_store
from fractal_cloud.control.store.migrate import config
from tests.store.playing import CATALOG

PROCESSES = 10
_FORKS = multiprocessing.get_context("forkserver")


def start(url: str) -> None:
    """Open the store, as a server process does when it starts."""
    open_store(url, types_here={}).close()


def test_ten_processes_that_start_at_once_make_one_history(postgres_database: str) -> None:
    _FORKS.set_forkserver_preload(["tests.store.test_starting"])
    processes = [_FORKS.Process(target=start, args=(postgres_database,)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    store = open_store(postgres_database, types_here=CATALOG)
    with store.read() as tx:
        versions = list(tx.connection.execute(text("SELECT version_num FROM alembic_version")).scalars())
        heads = ScriptDirectory.from_config(config(tx.connection)).get_heads()
    store.close()
    assert versions == list(heads)
