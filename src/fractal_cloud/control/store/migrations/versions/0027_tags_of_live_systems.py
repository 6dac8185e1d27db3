"""The tags that a LiveSystem declares for all its components (T1)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("live_systems", sa.Column("tags", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Step back."""
    op.drop_column("live_systems", "tags")
