"""Run by Alembic: migrates over the connection it is given, inside that connection's own transaction."""

from __future__ import annotations

from alembic import context

from fractal_cloud.control.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
