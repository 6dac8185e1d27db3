"""Prepared statements: compiled once per database by SQLAlchemy, and executed by the driver's own cursor.

For what every report, claim, heartbeat and poll executes. ``Connection.execute`` costs the server as much again as the
driver and the socket do, for what is known beforehand here: text, parameters and columns. Only documented API of
SQLAlchemy is used: what the compiler returns, the types' own processors, and its classes of errors.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import ClauseElement, Connection, Dialect, Engine, event, exc

_Processor = Callable[[Any], Any]
_Observer = Callable[[str], None]
_observers: Final[list[_Observer]] = []
# PEP 249 gives the errors of every driver these names, and SQLAlchemy its own after them.
_ERRORS: Final[Mapping[str, type[exc.DBAPIError]]] = {
    kind.__name__: kind
    for kind in (
        exc.DataError,
        exc.OperationalError,
        exc.IntegrityError,
        exc.InternalError,
        exc.ProgrammingError,
        exc.NotSupportedError,
        exc.DatabaseError,
        exc.InterfaceError,
    )
}


class PreparedStatement:
    """One statement whose text is always the same: lists and rows travel as one parameter each."""

    def __init__(self, statement: ClauseElement) -> None:
        self.statement = statement
        self._compiled: dict[str, _Compiled] = {}

    def rows(self, connection: Connection, parameters: Mapping[str, Any]) -> list[Any]:
        """Execute it; the rows it returns, as tuples with the names of their columns."""
        compiled = self._for(connection.dialect)
        return compiled.read(compiled.execute(connection, parameters))

    def run(self, connection: Connection, parameters: Mapping[str, Any]) -> int:
        """Execute it; how many rows it touched."""
        return int(self._for(connection.dialect).execute(connection, parameters).rowcount)

    def _for(self, dialect: Dialect) -> _Compiled:
        if dialect.name not in self._compiled:
            self._compiled[dialect.name] = _Compiled(self.statement, dialect)
        return self._compiled[dialect.name]


@contextmanager
def observe_statements(observer: _Observer) -> Iterator[None]:
    """Call an observer with the text of every statement of this process, prepared or not, before it is executed."""

    def by_sqlalchemy(*arguments: Any) -> None:
        observer(arguments[2])

    event.listen(Engine, "before_cursor_execute", by_sqlalchemy)
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)
        event.remove(Engine, "before_cursor_execute", by_sqlalchemy)


class _Compiled:
    """A statement in the SQL of one database, with what converts its parameters and its columns."""

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect)
        self._text: str = compiled.string
        self._positions: list[str] | None = compiled.positiontup
        self._defaults: dict[str, Any] = compiled.params
        named = compiled.bind_names.items()
        self._binding = _needed((name, bind.type.dialect_impl(dialect).bind_processor(dialect)) for bind, name in named)
        self._dialect = dialect
        self._columns: list[Any] = list(getattr(statement, "exported_columns", ()))
        self._row = _row_class([column.name for column in self._columns])
        self._converting: list[tuple[int, _Processor]] | None = None

    def execute(self, connection: Connection, parameters: Mapping[str, Any]) -> Any:
        """Let a cursor of the driver execute it; its errors are raised as SQLAlchemy raises them."""
        values = {**self._defaults, **parameters}
        for name, process in self._binding:
            values[name] = process(values[name])
        sent = values if self._positions is None else tuple(values[name] for name in self._positions)
        driver: Any = connection.connection.driver_connection
        cursor = driver.cursor()
        for observe in _observers:
            observe(self._text)
        try:
            cursor.execute(self._text, sent)
        except connection.dialect.loaded_dbapi.Error as error:
            raise _as_sqlalchemy(connection, cursor, error, self._text) from error
        return cursor

    def read(self, cursor: Any) -> list[Any]:
        """Fetch all rows, with the values that the columns' types have in Python."""
        if self._converting is None:
            self._converting = self._converters([column[1] for column in cursor.description])
        fetched = cursor.fetchall()
        if not self._converting:
            return [self._row._make(row) for row in fetched]
        rows = []
        for row in fetched:
            values = list(row)
            for at, process in self._converting:
                values[at] = process(values[at])
            rows.append(self._row._make(values))
        return rows

    def _converters(self, type_codes: list[Any]) -> list[tuple[int, _Processor]]:
        """What converts which columns, given the driver's codes of their types."""
        types = [column.type.dialect_impl(self._dialect) for column in self._columns]
        return _needed(
            (at, kind.result_processor(self._dialect, code))
            for at, (kind, code) in enumerate(zip(types, type_codes, strict=True))
        )


def _row_class(names: list[str]) -> Any:
    return namedtuple("Row", names, rename=True)


def _needed(processors: Any) -> list[tuple[Any, _Processor]]:
    """Leave out what SQLAlchemy says needs no processing."""
    return [(key, process) for key, process in processors if process is not None]


def _as_sqlalchemy(connection: Connection, cursor: Any, error: Any, text: str) -> Exception:
    """A driver's error as SQLAlchemy's class of the same name."""
    is_disconnect = connection.dialect.is_disconnect(error, connection.connection.driver_connection, cursor)
    if is_disconnect:
        connection.exec_driver_sql("SELECT 1")  # raises, too: so SQLAlchemy learns of it, and renews its pool
    kind = next((_ERRORS[base.__name__] for base in type(error).__mro__ if base.__name__ in _ERRORS), exc.DBAPIError)
    return kind(text, None, error, connection_invalidated=is_disconnect)
