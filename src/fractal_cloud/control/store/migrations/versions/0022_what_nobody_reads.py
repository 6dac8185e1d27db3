"""What nobody has read for two cycles: scopes, and components in them (C11)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from fractal_cloud.control.store.driver import UtcTime

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("agents", sa.Column("cycles", sa.JSON(none_as_null=True), nullable=False, server_default="{}"))
    op.add_column("components", sa.Column("unread", sa.Boolean(), nullable=False, server_default=sa.false()))
    _partial_index("ix_components_unread", "components", ["scope_key", "type"], "unread")
    op.create_table(
        "scope_reads",
        sa.Column("scope_key", sa.Text(), nullable=False),
        sa.Column("read_at", UtcTime(), nullable=True),
        sa.Column("unread", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("waiting_since", UtcTime(), nullable=True),
        sa.Column("stale_since", UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("scope_key", name="pk_scope_reads"),
    )
    _partial_index("ix_scope_reads_stale", "scope_reads", ["scope_key"], "stale_since IS NOT NULL")


def _partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, postgresql_where=condition, sqlite_where=condition)


def downgrade() -> None:
    """Step back."""
    op.drop_index("ix_scope_reads_stale", "scope_reads")
    op.drop_table("scope_reads")
    op.drop_index("ix_components_unread", "components")
    op.drop_column("components", "unread")
    op.drop_column("agents", "cycles")
