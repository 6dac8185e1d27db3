"""The one place that knows the database driver and which database it is; all else is plain SQLAlchemy, written once.

What is here is here for speed or for a difference between SQLite and PostgreSQL (decision 0085):

connections     connect, begin, lock; let SQLite's writers queue; send the last statements with the COMMIT
clock           moments in UTC, and the database's own time
prepared        statements compiled once and executed by the driver's own cursor
texts           conditions on texts: what they contain or begin with, and their order byte by byte
membership      conditions on a list of any length that travels as one parameter
rows            many rows written by one statement
notifications   LISTEN/NOTIFY, by which processes on one PostgreSQL wake each other
causes          what an error of a driver means
ddl             indexes and storage of tables, where the databases differ

It uses documented API of SQLAlchemy and of the drivers only. The rest of the store imports from this package and never
from its modules, and does not ask for the name of a dialect; an import contract and a test hold both. No table and no
rule of the product belongs here.
"""

from __future__ import annotations

from fractal_cloud.control.store.driver.causes import Cause, cause_of
from fractal_cloud.control.store.driver.clock import Now, UtcTime, has_clock, now
from fractal_cloud.control.store.driver.connections import (
    Connections,
    connect,
    is_only_housekeeper,
    lock_for_migration,
    sent_with_commit,
    shown_address,
)
from fractal_cloud.control.store.driver.ddl import SEQUENCE_NUMBER, page_fill, partial_index, prefix_index
from fractal_cloud.control.store.driver.membership import CHUNK, among, among_found, among_many, chunks, pair_among
from fractal_cloud.control.store.driver.prepared import PreparedStatement, observe_statements
from fractal_cloud.control.store.driver.rows import (
    Numbered,
    append_numbered,
    begin_numbering,
    insert_missing,
    insert_rows,
    update_rows,
    upsert,
)
from fractal_cloud.control.store.driver.texts import begins_with, binary, contains

__all__ = [
    "CHUNK",
    "SEQUENCE_NUMBER",
    "Cause",
    "Connections",
    "Now",
    "Numbered",
    "PreparedStatement",
    "UtcTime",
    "among",
    "among_found",
    "among_many",
    "append_numbered",
    "begin_numbering",
    "begins_with",
    "binary",
    "cause_of",
    "chunks",
    "connect",
    "contains",
    "has_clock",
    "insert_missing",
    "insert_rows",
    "is_only_housekeeper",
    "lock_for_migration",
    "now",
    "observe_statements",
    "page_fill",
    "pair_among",
    "partial_index",
    "prefix_index",
    "sent_with_commit",
    "shown_address",
    "update_rows",
    "upsert",
]
