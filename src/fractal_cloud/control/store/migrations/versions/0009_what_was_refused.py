"""What was refused last and when it is tried again, and equal refusals as one row of the journal."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("components", sa.Column("refusal", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("journal", sa.Column("count", sa.BigInteger(), nullable=False, server_default="1"))
    op.add_column("journal", sa.Column("last_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Step back."""
    op.drop_column("journal", "last_at")
    op.drop_column("journal", "count")
    op.drop_column("components", "refusal")
