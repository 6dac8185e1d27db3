"""Since when a name is bound to its realm, and which other realm was reached by it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_TABLE = "reaches"


def upgrade() -> None:
    """Step forward."""
    op.add_column(_TABLE, sa.Column("first_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(_TABLE, sa.Column("other", sa.Text(), nullable=True))
    op.add_column(_TABLE, sa.Column("other_by", sa.Text(), nullable=True))
    op.add_column(_TABLE, sa.Column("other_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Step back."""
    for name in ("other_at", "other_by", "other", "first_at"):
        op.drop_column(_TABLE, name)
