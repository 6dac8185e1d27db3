"""Conditions on texts that mean the same on both databases, whatever language a database was made for."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, FunctionElement, Text, func, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import NullType

_ESCAPE: Final = "\\"
_LAST: Final = "\U0010ffff"


class _Binary(FunctionElement[str]):
    """A text that is compared byte by byte."""

    type = Text()
    inherit_cache = True


@compiles(_Binary, "postgresql")
def _in_c(element: _Binary, compiler: Any, **how: Any) -> str:
    (column,) = element.clauses
    return f'({compiler.process(column, **how)} COLLATE "C")'


@compiles(_Binary)
def _as_it_is(element: _Binary, compiler: Any, **how: Any) -> str:
    (column,) = element.clauses
    return str(compiler.process(column, **how))


def binary(column: ColumnElement[Any]) -> ColumnElement[str]:
    """A text as it is ordered byte by byte."""
    return _Binary(column)


def contains(column: ColumnElement[Any], text: str) -> ColumnElement[bool]:
    """Whether a text contains another, in whatever case."""
    escaped = text.lower()
    for special in (_ESCAPE, "%", "_"):
        escaped = escaped.replace(special, _ESCAPE + special)
    return func.lower(column).like(f"%{escaped}%", escape=_ESCAPE)


class _BeginsWith(FunctionElement[Any]):
    """Whether a text lies between the two that begin and end what begins with a prefix."""

    type = NullType()
    inherit_cache = True


@compiles(_BeginsWith, "postgresql")
def _by_pattern_operators(element: _BeginsWith, compiler: Any, **how: Any) -> str:
    column, first, last = (compiler.process(part, **how) for part in element.clauses)
    return f"({column} ~>=~ {first} AND {column} ~<~ {last})"


@compiles(_BeginsWith)
def _by_range(element: _BeginsWith, compiler: Any, **how: Any) -> str:
    column, first, last = (compiler.process(part, **how) for part in element.clauses)
    return f"({column} >= {first} AND {column} < {last})"


def begins_with(column: ColumnElement[Any], prefix: str) -> ColumnElement[Any]:
    """Whether a text begins with another, letter by letter; an index made with ``prefix_index`` finds it."""
    return _BeginsWith(column, literal(prefix, Text()), literal(prefix + _LAST, Text()))
