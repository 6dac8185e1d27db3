"""Brings a database to the newest schema. The history is one for both databases, and lies inside the package."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

_HISTORY = Path(__file__).parent / "migrations"


def config(connection: Connection) -> Config:
    """Alembic's settings, without a file of its own."""
    settings = Config()
    settings.set_main_option("script_location", str(_HISTORY).replace("%", "%%"))
    settings.set_main_option("path_separator", "os")
    settings.attributes["connection"] = connection
    return settings


def migrate(connection: Connection) -> None:
    """Run every migration that is missing, inside the caller's transaction and lock."""
    command.upgrade(config(connection), "head")
