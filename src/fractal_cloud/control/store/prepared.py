"""Statements of one text: SQLAlchemy writes them once for each kind of database, and the driver takes them as they are.

For what every report, claim and poll asks. Executing a statement through SQLAlchemy costs the server as much again as
the driver and the socket do; nothing of that is needed where text, parameters and columns are known before.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection, Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.elements import ClauseElement

_Processor = Callable[[Any], Any]


class PreparedStatement:
    """One statement whose text is always the same: lists and rows travel as one parameter each (``bulk``)."""

    def __init__(self, statement: ClauseElement) -> None:
        self.statement = statement
        self._written: dict[str, _Compiled] = {}

    def rows(self, connection: Connection, parameters: Mapping[str, Any]) -> list[Any]:
        """What it finds, as tuples that know the names of their columns."""
        written = self._for(connection.dialect)
        return written.read(written.send(connection, parameters))

    def run(self, connection: Connection, parameters: Mapping[str, Any]) -> int:
        """Carry it out; how many rows it touched."""
        return int(self._for(connection.dialect).send(connection, parameters).rowcount)

    def _for(self, dialect: Dialect) -> _Compiled:
        if dialect.name not in self._written:
            self._written[dialect.name] = _Compiled(self.statement, dialect)
        return self._written[dialect.name]


class _Compiled:
    """A statement as one kind of database is told it."""

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect)
        self._text: str = compiled.string
        self._order: list[str] | None = compiled.positiontup
        self._given: dict[str, Any] = compiled.params
        named = compiled.bind_names.items()
        self._binding = _only((name, bind.type.dialect_impl(dialect).bind_processor(dialect)) for bind, name in named)
        self._dialect = dialect
        self._columns: list[Any] = list(getattr(statement, "exported_columns", ()))
        self._row = _row_of([column.name for column in self._columns])
        self._reading: list[tuple[int, _Processor]] | None = None

    def send(self, connection: Connection, parameters: Mapping[str, Any]) -> Any:
        """Let the driver execute it; what goes wrong is told as SQLAlchemy tells it."""
        values = {**self._given, **parameters}
        for name, process in self._binding:
            values[name] = process(values[name])
        sent: Any = values if self._order is None else tuple(values[name] for name in self._order)
        raw: Any = connection.connection
        cursor = raw.driver_connection.cursor()
        for watch in connection.dispatch.before_cursor_execute:
            watch(connection, cursor, self._text, sent, None, False)  # noqa: FBT003 (as SQLAlchemy calls it)
        try:
            cursor.execute(self._text, sent)
        except connection.dialect.loaded_dbapi.Error as error:
            raise _told(connection, cursor, error, self._text) from error
        return cursor

    def read(self, cursor: Any) -> list[Any]:
        """Rows as the columns' types say they are in Python."""
        if self._reading is None:
            self._reading = self._readers([told[1] for told in cursor.description])
        found = cursor.fetchall()
        if not self._reading:
            return [self._row._make(row) for row in found]
        rows = []
        for row in found:
            values = list(row)
            for at, process in self._reading:
                values[at] = process(values[at])
            rows.append(self._row._make(values))
        return rows

    def _readers(self, codes: list[Any]) -> list[tuple[int, _Processor]]:
        """What has to be done with columns, given the driver's codes of their types."""
        kinds = [column.type.dialect_impl(self._dialect) for column in self._columns]
        return _only(
            (at, kind.result_processor(self._dialect, code))
            for at, (kind, code) in enumerate(zip(kinds, codes, strict=True))
        )


def _row_of(names: list[str]) -> Any:
    return namedtuple("Row", names, rename=True)


def _only(processors: Any) -> list[tuple[Any, _Processor]]:
    """Those that have anything to do."""
    return [(key, process) for key, process in processors if process is not None]


def _told(connection: Connection, cursor: Any, error: Exception, text: str) -> Exception:
    """A driver's error as SQLAlchemy's own."""
    dialect: Any = connection.dialect
    is_cut = dialect.is_disconnect(error, connection.connection.driver_connection, cursor)
    if is_cut:
        connection.exec_driver_sql("SELECT 1")  # raises, too: so SQLAlchemy knows, and lets the pool's others go
    told: Exception = DBAPIError.instance(
        text, None, error, dialect.loaded_dbapi.Error, connection_invalidated=is_cut, dialect=dialect
    )
    return told
