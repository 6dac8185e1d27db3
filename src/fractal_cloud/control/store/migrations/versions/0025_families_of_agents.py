"""The families of types that agents serve whole: none of their types is registered by itself."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    none = sa.text("'[]'")
    op.add_column("agents", sa.Column("families", sa.JSON(none_as_null=True), nullable=False, server_default=none))


def downgrade() -> None:
    """Step back."""
    op.drop_column("agents", "families")
