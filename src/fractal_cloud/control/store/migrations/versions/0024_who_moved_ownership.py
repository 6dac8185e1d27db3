"""Who moved a resource from one LiveSystem to another through the product, until somebody else moves it (O8)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("resources", sa.Column("transfer", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Step back."""
    op.drop_column("resources", "transfer")
