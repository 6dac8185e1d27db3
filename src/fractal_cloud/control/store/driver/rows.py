"""Many rows in one statement, whatever their number: inserted, overwritten, numbered.

PostgreSQL receives the rows as one JSON document, so that a statement's text is always the same (it is compiled and
planned once) and costs one round trip. SQLite, where there is no round trip, receives them one by one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pydantic_core import to_json
from sqlalchemy import ColumnDefault, Connection, Table, bindparam, insert, text, update
from sqlalchemy.dialects import sqlite

from fractal_cloud.control.store.driver.prepared import PreparedStatement

Row = Mapping[str, Any]
_ROWS: Final = "rows"


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows; columns they do not name get their defaults."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        _send(connection, _inserting(table, _names(table, rows), ""), _completed(table, rows))
    else:
        connection.execute(_plain_insert(table), list(rows))


def insert_missing(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert those rows whose primary key is not there yet."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        _send(connection, _inserting(table, _names(table, rows), "ON CONFLICT DO NOTHING"), _completed(table, rows))
    else:
        connection.execute(sqlite.insert(table).on_conflict_do_nothing(), list(rows))


def upsert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows, or overwrite the columns given where the primary key is there already; of two, the later counts."""
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    given = [name for name in rows[0] if name not in keys]
    if connection.dialect.name == "postgresql":
        identify = operator.itemgetter(*keys)
        newest = list({identify(row): row for row in rows}.values())
        overwritten = ", ".join(f'"{name}" = excluded."{name}"' for name in given)
        way = f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {overwritten}"
        _send(connection, _inserting(table, _names(table, rows), way), _completed(table, newest))
    else:
        statement = sqlite.insert(table)
        changed = {name: statement.excluded[name] for name in given}
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed), list(rows))


def update_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Overwrite the columns given, in the rows found by their primary key, which is one column."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name == "postgresql":
        _send(connection, _updating(table, names), rows)
    else:
        _one_by_one(connection, table, names, rows)


@dataclass(frozen=True, slots=True)
class Numbered:
    """A table whose rows are numbered in the order of commits, and the counter that knows the last number."""

    table: Table
    column: str
    counters: Table
    counter: str


def begin_numbering(connection: Connection, to: Numbered) -> None:
    """Make the counter, where it is not there yet."""
    insert_missing(connection, to.counters, [{"name": to.counter, "value": 0}])


def append_numbered(connection: Connection, to: Numbered, rows: Sequence[Row]) -> None:
    """Insert rows that bear the numbers 1, 2, …, which are counted on from the last number there is.

    The counter is held until the commit, so that numbers appear to readers in their order. Without it, it fails.
    """
    asked = {"counter": to.counter, "count": len(rows)}
    if connection.dialect.name == "postgresql":
        document = to_json(rows, inf_nan_mode="null").decode()
        _appending(to, tuple(rows[0])).run(connection, {**asked, _ROWS: document})
    else:
        (last,) = _advancing(to).rows(connection, asked)
        before = last.value - len(rows)
        insert_rows(connection, to.table, [{**row, to.column: before + row[to.column]} for row in rows])


@lru_cache(16)
def _appending(to: Numbered, names: tuple[str, ...]) -> PreparedStatement:
    columns = ", ".join(f'"{name}"' for name in names)
    values = ", ".join(f"last.value - :count + new.{name}" if name == to.column else f'new."{name}"' for name in names)
    rows = f"json_populate_recordset(NULL::{to.table.name}, CAST(:{_ROWS} AS json)) AS new"
    counters, table = to.counters.name, to.table.name
    advanced = f"UPDATE {counters} SET value = value + :count WHERE name = :counter RETURNING value"  # noqa: S608
    inserted = f"INSERT INTO {table} ({columns}) SELECT {values} FROM {rows} LEFT JOIN last ON true"  # noqa: S608 (our names)
    return PreparedStatement(text(f"WITH last AS ({advanced}) {inserted}"))


@lru_cache(16)
def _advancing(to: Numbered) -> PreparedStatement:
    table = to.counters.c
    here = update(to.counters).where(table.name == bindparam("counter"))
    return PreparedStatement(here.values(value=table.value + bindparam("count")).returning(table.value))


def _send(connection: Connection, statement: PreparedStatement, rows: Sequence[Row]) -> None:
    statement.run(connection, {_ROWS: to_json(rows, inf_nan_mode="null").decode()})


@lru_cache(256)
def _inserting(table: Table, names: tuple[str, ...], way: str) -> PreparedStatement:
    columns = ", ".join(f'"{name}"' for name in names)
    rows = f"json_populate_recordset(NULL::{table.name}, CAST(:{_ROWS} AS json))"
    return PreparedStatement(text(f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {rows} {way}"))  # noqa: S608 (our names)


@lru_cache(256)
def _updating(table: Table, names: tuple[str, ...]) -> PreparedStatement:
    (key,) = (column.name for column in table.primary_key)
    changed = ", ".join(f'"{name}" = new."{name}"' for name in names if name != key)
    rows = f"json_populate_recordset(NULL::{table.name}, CAST(:{_ROWS} AS json)) AS new"
    there = f"{table.name}.{key} = new.{key}"
    return PreparedStatement(text(f"UPDATE {table.name} SET {changed} FROM {rows} WHERE {there}"))  # noqa: S608 (our names)


@lru_cache(256)
def _plain_insert(table: Table) -> Any:
    return insert(table)


def _one_by_one(connection: Connection, table: Table, names: tuple[str, ...], rows: Sequence[Row]) -> None:
    statement, named = _single_update(table, names)
    connection.execute(statement, [named(row) for row in rows])


@lru_cache(256)
def _single_update(table: Table, names: tuple[str, ...]) -> tuple[Any, Callable[[Row], dict[str, Any]]]:
    """The statement, and its parameters for a row: the key has a name of its own, as SQLAlchemy wants it."""
    (key,) = table.primary_key
    values = {name: bindparam(name, type_=table.c[name].type) for name in names if name != key.name}
    statement = update(table).where(key == bindparam("_key")).values(values)
    return statement, lambda row: {"_key": row[key.name], **{name: row[name] for name in values}}


@lru_cache(64)
def _defaults(table: Table) -> dict[str, Any]:
    """The values of columns that are not given: those whose default is a plain value."""
    found = {column.name: column.default for column in table.c if isinstance(column.default, ColumnDefault)}
    return {name: default.arg for name, default in found.items() if default.is_scalar}


def _names(table: Table, rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple({**_defaults(table), **rows[0]})


def _completed(table: Table, rows: Sequence[Row]) -> list[Row]:
    return [{**_defaults(table), **row} for row in rows]
