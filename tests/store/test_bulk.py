"""Many rows in one statement: the same on both databases, found by indexes, and few statements for a report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.dialects import sqlite

from fractal_cloud.control.store import driver, listeners, placement, reported_components, scopes
from fractal_cloud.control.store.driver import PreparedStatement, observe_statements
from fractal_cloud.control.store.schema import resources, types
from fractal_cloud.model.status import Status
from tests.store.playing import World, net

HOT = {
    "the LiveSystems of a report": placement._HOLD_OF,
    "the components of a report": reported_components._COMPONENTS,
    "who listens": listeners._AROUND,
    "whose owner listens": PreparedStatement(listeners._DECLARING),
    "the scopes of a report": scopes._LOCK,
    "the scopes of an agent": scopes._HELD_BY,
    "the number that wakes an agent": scopes._WAKE_NUMBER,
}


@contextmanager
def _counted() -> Iterator[list[str]]:
    seen: list[str] = []
    with observe_statements(seen.append):
        yield seen


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # PostgreSQL scans small tables, index or not
@pytest.mark.parametrize("what", HOT)
def test_what_every_report_and_every_poll_asks_is_found_by_an_index(world: World, what: str) -> None:
    with world.store.read() as tx:
        compiled: Any = HOT[what].statement.compile(dialect=sqlite.dialect(paramstyle="named"))
        asked = {name: "[]" if value is None else value for name, value in compiled.params.items()}
        steps = [row[3] for row in tx.connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}"), asked)]
    assert not [step for step in steps if step.startswith("SCAN") and "json_each" not in step]


def test_a_report_is_as_many_statements_for_twenty_components_as_for_two(world: World) -> None:
    world.deploy("ls-a", *(net(f"net-{number}") for number in range(20)))
    agent = world.agent()
    agent.settle()

    def statements(count: int, status: Status) -> int:
        changes = [agent.says("ls-a", f"net-{number}", status=status) for number in range(count)]
        with _counted() as seen:
            agent.report(*changes)
        return len(seen)

    few = statements(2, Status.FAILED)
    assert statements(20, Status.MUTATING) == few
    assert few <= 11


def test_of_two_rows_with_one_key_the_later_counts(world: World) -> None:
    with world.store.write() as tx:
        rows = [{"type": "T", "provider": provider, "facts": {"é": None}} for provider in ("one", "two")]
        driver.upsert(tx.connection, types, rows)
    with world.store.read() as tx:
        assert [(row.provider, row.facts) for row in tx.connection.execute(select(types))] == [("two", {"é": None})]


def test_values_come_back_as_they_were_written(world: World) -> None:
    with world.store.write() as tx:
        row = {"identity_key": "k", "scope_key": "s", "owner": None, "resource_id": "i", "updated_at": tx.now}
        driver.insert_rows(tx.connection, resources, [row])
        driver.insert_missing(tx.connection, resources, [{**row, "resource_id": "another"}])
        driver.update_rows(tx.connection, resources, [{"identity_key": "k", "owner": '\'; "ls" :x %s'}])
        moment = tx.now
    with world.store.read() as tx:
        found = tx.connection.execute(select(resources)).one()
    assert (found.owner, found.resource_id, found.left_by) == ('\'; "ls" :x %s', "i", None)
    assert found.updated_at == moment


def test_an_agent_without_news_writes_nothing(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.settle()
    agent.claim()
    with _counted() as seen:
        agent.claim()
    assert not [statement for statement in seen if not statement.startswith(("SELECT", "BEGIN"))]
