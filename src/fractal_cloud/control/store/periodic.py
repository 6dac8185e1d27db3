"""How work that is due by time is done: read first, write only where something is due, in one process at a time."""

from __future__ import annotations

from collections.abc import Callable

from fractal_cloud.control.store.database import Database, Tx
from fractal_cloud.control.store.driver import is_only_housekeeper


def when_due(database: Database, is_due: Callable[[Tx], object], do: Callable[[Tx], None]) -> None:
    """Do something if it is due, and if no other process does housekeeping right now.

    Much may have changed between the read and the write: ``do`` reads again.
    """
    with database.read() as tx:
        if not is_due(tx):
            return
    with database.write() as tx:
        if is_only_housekeeper(tx.connection):
            do(tx)
