"""Indexes, storage and column types of tables, where SQLite and PostgreSQL need different words for the same."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Index, Integer, text
from sqlalchemy.types import TypeEngine

SEQUENCE_NUMBER: Final[TypeEngine[int]] = BigInteger().with_variant(Integer, "sqlite")
"""A primary key of 64 bits; SQLite has them for INTEGER only."""


def partial_index(name: str, *columns: str, where: str) -> Index:
    """An index of the rows for which a condition holds."""
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


def prefix_index(name: str, column: str, *more: str) -> Index:
    """An index by which ``begins_with`` finds texts, whatever the order of the database's language is."""
    return Index(name, column, *more, postgresql_ops={column: "text_pattern_ops"})


def page_fill(percent: int) -> dict[str, Any]:
    """Arguments of a table whose pages are filled up to so much: PostgreSQL then updates rows inside their page."""
    return {"postgresql_with": {"fillfactor": percent}}
