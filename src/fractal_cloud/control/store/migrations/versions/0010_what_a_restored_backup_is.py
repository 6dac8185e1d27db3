"""Incarnations of the database, ids of events, and what waits for a person after a backup was restored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.create_table(
        "incarnations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("first_event", sa.BigInteger(), nullable=False),
        sa.Column("as_of", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incarnations")),
        sa.UniqueConstraint("number", name=op.f("uq_incarnations_number")),
    )
    op.add_column("events", sa.Column("id", sa.Text(), nullable=False, server_default=""))
    op.add_column("live_systems", sa.Column("in_recovery", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("live_systems", sa.Column("recovery_plan", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("components", sa.Column("restored", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("tokens", sa.Column("waits", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Step back."""
    op.drop_column("tokens", "waits")
    op.drop_column("components", "restored")
    op.drop_column("live_systems", "recovery_plan")
    op.drop_column("live_systems", "in_recovery")
    op.drop_column("events", "id")
    op.drop_table("incarnations")
