"""Brings a database to the newest schema. The history is one for both databases, and lies inside the package."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

_HISTORY = Path(__file__).parent / "migrations"


def config(connection: Connection) -> Config:
    """Alembic's settings, without a file of its own."""
    settings = Config()
    settings.set_main_option("script_location", str(_HISTORY).replace("%", "%%"))
    settings.set_main_option("path_separator", "os")
    settings.attributes["connection"] = connection
    return settings


class NewerSchema(Exception):
    """The database was brought up to date by a newer version of this product."""

    def __init__(self, revision: str) -> None:
        super().__init__(revision)
        self.revision = revision


def migrate(connection: Connection) -> None:
    """Run every migration that is missing, inside the caller's transaction and lock. Raises ``NewerSchema``."""
    settings = config(connection)
    known = ScriptDirectory.from_config(settings)
    for revision in MigrationContext.configure(connection).get_current_heads():
        if revision not in {one.revision for one in known.walk_revisions()}:
            raise NewerSchema(revision)
    command.upgrade(settings, "head")
