"""Sessions at the dashboard, and the environments in which each LiveSystem was deployed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("tokens", sa.Column("refused_at", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "sessions",
        sa.Column("id_hash", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("word", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id_hash", name="pk_sessions"),
    )
    op.create_table(
        "live_system_environments",
        sa.Column("live_system_id", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("live_system_id", "environment", name="pk_live_system_environments"),
    )
    op.execute(
        "INSERT INTO live_system_environments (live_system_id, environment) SELECT id, environment FROM live_systems"
    )


def downgrade() -> None:
    """Step back."""
    op.drop_table("live_system_environments")
    op.drop_table("sessions")
    op.drop_column("tokens", "refused_at")
