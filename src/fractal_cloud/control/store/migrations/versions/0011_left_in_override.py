"""Whether a resource that was left in the cloud was in override; what was left before this counts as such."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Step forward."""
    op.add_column("resources", sa.Column("overridden", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.execute(sa.text("UPDATE resources SET overridden = (1 = 1) WHERE left_by IS NOT NULL"))


def downgrade() -> None:
    """Step back."""
    op.drop_column("resources", "overridden")
