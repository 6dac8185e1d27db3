"""Many rows in one statement, whatever their number: found by a list of values, inserted, overwritten.

PostgreSQL takes the list as one array and the rows as one JSON document, so that a statement's text is always the same
(it is compiled and planned once) and costs one round trip. SQLite, where there is no round trip, takes the list as JSON
and the rows one by one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pydantic_core import to_json
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Dialect,
    Select,
    Table,
    Text,
    bindparam,
    insert,
    text,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.schema import ScalarElementColumnDefault
from sqlalchemy.types import NullType, TypeDecorator

from fractal_cloud.control.store.prepared import PreparedStatement

Row = Mapping[str, Any]
_ROWS: Final = "rows"


class _Texts(TypeDecorator[Any]):
    """A list of texts as one parameter."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Iterable[str] | None, dialect: Dialect) -> str:
        """Any collection will do; PostgreSQL reads it as an array, SQLite as JSON."""
        texts = value or ()
        return _as_array(texts) if dialect.name == "postgresql" else to_json(list(texts)).decode()


def _as_array(texts: Iterable[str]) -> str:
    """Texts as PostgreSQL writes an array of them; the driver would look at every element twice before."""
    return "{" + ",".join('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts) + "}"


class _Among(FunctionElement[Any]):
    """Whether a column's value is in a list that comes as one parameter.

    It has no type, because SQLAlchemy would compare a Boolean with 1 on SQLite, which then uses no index for it.
    """

    type = NullType()
    inherit_cache = True


@compiles(_Among, "postgresql")
def _any(element: _Among, compiler: Any, **how: Any) -> str:
    column, values = element.clauses
    return f"{compiler.process(column, **how)} = ANY (CAST({compiler.process(values, **how)} AS text[]))"


@compiles(_Among)
def _each(element: _Among, compiler: Any, **how: Any) -> str:
    column, values = element.clauses
    listed = f"json_each({compiler.process(values, **how)})"
    return f"{compiler.process(column, **how)} IN (SELECT value FROM {listed})"  # noqa: S608 (no values in it)


def among(column: ColumnElement[Any], values: str | Iterable[str]) -> ColumnElement[bool]:
    """Whether a text column has one of some values: those given, or those of the parameter of that name."""
    listed: BindParameter[Any] = (
        bindparam(values, type_=_Texts()) if isinstance(values, str) else bindparam(None, list(values), type_=_Texts())
    )
    return _Among(column, listed)


class _AmongMany(_Among):
    """As ``_Among``, for a list that may be as long as the table."""

    inherit_cache = True


@compiles(_AmongMany, "postgresql")
def _any_of_many(element: _AmongMany, compiler: Any, **how: Any) -> str:
    column, values = (compiler.process(part, **how) for part in element.clauses)
    return f"{column} IN (SELECT unnest(CAST({values} AS text[])))"


def among_many(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """As ``among``, for many values in a small table: PostgreSQL would walk through the whole list for every row."""
    return _AmongMany(column, bindparam(name, type_=_Texts()))


class _AmongFound(FunctionElement[Any]):
    """Whether a column's value is among the few that a query finds."""

    type = NullType()
    inherit_cache = True


@compiles(_AmongFound, "postgresql")
def _any_found(element: _AmongFound, compiler: Any, **how: Any) -> str:
    column, found = (compiler.process(part, **how) for part in element.clauses)
    return f"{column} = ANY (ARRAY{found})"


@compiles(_AmongFound)
def _in_found(element: _AmongFound, compiler: Any, **how: Any) -> str:
    column, found = (compiler.process(part, **how) for part in element.clauses)
    return f"{column} IN {found}"


def among_found(column: ColumnElement[Any], query: Select[Any]) -> ColumnElement[Any]:
    """Whether a column has one of the few values that a query finds, which goes first: the index serves these alone.

    PostgreSQL would rather read a small table as a whole, for every report.
    """
    return _AmongFound(column, query.scalar_subquery())


class _PairAmong(FunctionElement[Any]):
    """Whether two columns together are in a list of pairs that comes as one parameter."""

    type = NullType()
    inherit_cache = True


@compiles(_PairAmong, "postgresql")
def _any_pair(element: _PairAmong, compiler: Any, **how: Any) -> str:
    first, second, pairs = (compiler.process(part, **how) for part in element.clauses)
    listed = f"json_array_elements(CAST({pairs} AS json)) AS pair"
    return f"({first}, {second}) IN (SELECT pair->>0, pair->>1 FROM {listed})"  # noqa: S608 (no values in it)


@compiles(_PairAmong)
def _each_pair(element: _PairAmong, compiler: Any, **how: Any) -> str:
    first, second, pairs = (compiler.process(part, **how) for part in element.clauses)
    parts = "json_extract(value, '$[0]'), json_extract(value, '$[1]')"
    listed = f"SELECT {parts} FROM json_each({pairs})"  # noqa: S608 (no values in it)
    return f"({first}, {second}) IN ({listed})"


class _Pairs(TypeDecorator[Any]):
    """A list of pairs of texts as one parameter."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Iterable[tuple[str, str]] | None, _dialect: Dialect) -> str:
        """Any collection will do."""
        return to_json(list(value or ())).decode()


def pair_among(first: ColumnElement[Any], second: ColumnElement[Any], name: str) -> ColumnElement[Any]:
    """Whether two text columns have one of the pairs of values of the parameter of that name."""
    return _PairAmong(first, second, bindparam(name, type_=_Pairs()))


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
    return {
        column.name: column.default.arg for column in table.c if isinstance(column.default, ScalarElementColumnDefault)
    }


def _names(table: Table, rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple({**_defaults(table), **rows[0]})


def _completed(table: Table, rows: Sequence[Row]) -> list[Row]:
    return [{**_defaults(table), **row} for row in rows]
