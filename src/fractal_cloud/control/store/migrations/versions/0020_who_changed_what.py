"""What was changed outside of Fractal Cloud, and by whom, as far as the cloud records that."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("components", sa.Column("changed_by", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Step back."""
    op.drop_column("components", "changed_by")
