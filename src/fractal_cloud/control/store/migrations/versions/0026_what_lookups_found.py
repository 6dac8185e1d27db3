"""What lookups found when a generation was first reconciled: kept until the next deploy (C12)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("components", sa.Column("found", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Step back."""
    op.drop_column("components", "found")
