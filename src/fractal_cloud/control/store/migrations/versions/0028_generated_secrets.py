"""The secrets that were made for a component, or are about to be: by component and parameter (A8)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("components", sa.Column("generated", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Step back."""
    op.drop_column("components", "generated")
