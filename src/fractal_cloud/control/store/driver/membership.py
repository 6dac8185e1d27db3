"""Conditions on a list of values, whatever its length: the list travels as one parameter.

So a statement's text is always the same: it is compiled and planned once (decision 0050). PostgreSQL receives an array
or a JSON document, SQLite JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pydantic_core import to_json
from sqlalchemy import BindParameter, ColumnElement, Dialect, FunctionElement, Select, Text, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import NullType, TypeDecorator

CHUNK: Final = 500


def chunks(values: Iterable[str]) -> Iterator[list[str]]:
    """Values in lists short enough for one IN clause."""
    items = list(values)
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]


class _Texts(TypeDecorator[Any]):
    """A list of texts as one parameter."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Iterable[str] | None, dialect: Dialect) -> str:
        """Write any collection as PostgreSQL's array, or as JSON for SQLite."""
        texts = value or ()
        return _as_array(texts) if dialect.name == "postgresql" else to_json(list(texts)).decode()


def _as_array(texts: Iterable[str]) -> str:
    """Texts as PostgreSQL writes an array of them; the driver would inspect every element twice before."""
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
    """Whether a column has one of the few values that a query finds, which runs first: then an index finds the rows.

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
        """Write any collection as JSON."""
        return to_json(list(value or ())).decode()


def pair_among(first: ColumnElement[Any], second: ColumnElement[Any], name: str) -> ColumnElement[Any]:
    """Whether two text columns have one of the pairs of values of the parameter of that name."""
    return _PairAmong(first, second, bindparam(name, type_=_Pairs()))
